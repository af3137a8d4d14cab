"""Features of pairs are those of the encoder, come from the cache, and lack only broken images."""

from pathlib import Path

import numpy as np
import pytest

from tests.evaluation.blind_probes.made_benchmark import Made, pair, unreadable
from tests.evaluation.features.small_benchmark import PlainEncoder, Shelf, matchings
from twinset.contracts.errors import WrongUse
from twinset.evaluation.blind_probes.pairs import read_pairs
from twinset.evaluation.blind_probes.run import encoded, encoder_of, give_away
from twinset.evaluation.features.similarities import ByFeatures
from twinset.evaluation.features.store import FeatureStore


def test_features_are_the_encoders_and_not_normalised(tmp_path: Path) -> None:
    model = PlainEncoder()
    made = matchings(Shelf(), 12)
    broken = pair(99, ("frame 0", "frame 1"), images=(made[0].images[0], unreadable("gone.jpg")))
    single = pair(98, ("frame 0", "frame 1"), images=made[0].images[:1])
    similarities = ByFeatures(model, FeatureStore(tmp_path, "plain"), 4)
    texts, images = encoded(read_pairs(Made([*made, broken, single])), similarities)
    similarities.close()
    assert images is not None and texts.shape == images.shape == (14, 2, 6)
    assert np.array_equal(texts[3], model.text_features(made[3].captions)) and not np.isnan(texts).any()
    assert np.isnan(images[12:]).all() and not np.isnan(images[:12]).any()
    assert np.array_equal(images[0, 1], images[1, 0]), "neighbours share a picture"
    assert model.images == 6, "a picture is encoded twice"


def test_pairs_of_one_image_have_features_of_captions_alone(tmp_path: Path) -> None:
    similarities = ByFeatures(PlainEncoder(), FeatureStore(tmp_path, "plain"), 4)
    texts, images = encoded(read_pairs(Made([pair(0, ("a", "b"))])), similarities)
    assert images is None and texts.shape == (1, 2, 6)


def test_a_model_that_is_not_a_dual_encoder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twinset.evaluation.blind_probes.run.open_model", lambda model, running: object())
    with pytest.raises(WrongUse, match="--model vilt:x: probes need features"):
        encoder_of("vilt:x", tmp_path)


def test_probes_on_features_are_part_of_the_whole(tmp_path: Path) -> None:
    similarities = ByFeatures(PlainEncoder(), FeatureStore(tmp_path, "plain"), 8)
    found = give_away(Made(matchings(Shelf(), 24, 12)), encode=lambda pairs: encoded(pairs, similarities)).as_json()
    similarities.close()
    assert {"text features", "image features", "text and image features"} <= found["all"]["probes"].keys()
    assert found["all"]["detectors"].keys() >= {"text detector", "image detector", "i2t", "t2i", "group"}
    assert "images: not asked for" in found["notes"]
