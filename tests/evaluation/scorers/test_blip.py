"""BLIP's and BLIP-2's two heads: their scores are those of transformers' own forward pass, an image is seen once."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.evaluation.features.small_benchmark import Shelf, SmallBenchmark
from tests.evaluation.scorers.opened import FAST, TEXTS, encoder
from tests.evaluation.scorers.tiny_models import images, save_tokenizer
from twinset.contracts.errors import WrongUse
from twinset.evaluation.examples import Matching, Query
from twinset.evaluation.features.pictures import decode
from twinset.evaluation.features.similarities import cosines
from twinset.evaluation.run import run
from twinset.evaluation.scorers.kinds import open_model
from twinset.models.encoders.contract import Matcher
from twinset.models.encoders.fusion_models import FusionScorer
from twinset.training.fusion.models import open_start
from twinset.training.fusion.settings import FusionSettings

NETWORKS = {"blip": "BlipForImageTextRetrieval", "blip2": "Blip2ForImageTextRetrieval"}


def reference(kind: str, folder: Path, image: Any, text: str, matching: bool) -> torch.Tensor:
    """The output of the network for one pair, by its own processor and tokenizer."""
    import transformers

    model = getattr(transformers, NETWORKS[kind]).from_pretrained(folder).eval()
    read = transformers.AutoTokenizer.from_pretrained(folder)(
        [text], return_tensors="pt", truncation=True, max_length=48
    )
    pixels = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")([image], return_tensors="pt")
    asked = {"input_ids": read["input_ids"], "attention_mask": read["attention_mask"], **pixels}
    with torch.inference_mode():
        if kind == "blip":
            return model(**asked, use_itm_head=matching).itm_score[0]
        return model(**asked, use_image_text_matching_head=matching).logits_per_image[0]


@pytest.mark.parametrize("kind", NETWORKS)
def test_both_heads_score_as_transformers_own_forward_pass(saved: dict[str, Path], kind: str) -> None:
    folder, shown = saved[f"{kind}-itm"], images(3)
    matcher, contrast = open_model(f"{kind}-itm:{folder}", FAST), encoder(f"{kind}-itc:{folder}")
    assert isinstance(matcher, Matcher)
    found = [matcher.score([image] * len(TEXTS), TEXTS) for image in shown]
    logits = [[reference(kind, folder, image, text, True) for text in TEXTS] for image in shown]
    assert np.allclose(found, [[float(one[1] - one[0]) for one in row] for row in logits], atol=1e-5)
    similar = cosines(contrast.image_features([contrast.prepare(one) for one in shown]), contrast.encode_texts(TEXTS))
    if kind == "blip":
        similar = contrast.encode_images(shown) @ contrast.encode_texts(TEXTS).T
    expected = [[float(reference(kind, folder, image, text, False)) for text in TEXTS] for image in shown]
    assert np.allclose(similar, expected, atol=1e-5)
    assert np.array_equal(contrast.text_features(TEXTS[::-1])[::-1], contrast.text_features(TEXTS))
    assert contrast.too_long([*TEXTS, "a " * 46]) == TEXTS[2:] and contrast.digest() != matcher.digest()


@pytest.mark.parametrize("kind", ["blip-itm", "blip2-itm"])
def test_an_image_is_seen_once_for_the_texts_that_it_is_scored_with(
    saved: dict[str, Path], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, (one, two) = open_model(f"{kind}:{saved[kind]}", FAST), images(2)
    assert isinstance(found, FusionScorer)
    texts = [f"a {word} on the mat" for word in ("cat", "dog", "red", "blue")]
    alone = np.array([found.score([one] * 10, [text] * 10)[0] for text in texts])
    seen, see = list[int](), found.see
    monkeypatch.setattr(found, "see", lambda pixels: seen.append(len(pixels["pixel_values"])) or see(pixels))
    scores = found.score([one, one, one, one, two, two, two, two, two, two], [*texts, *texts, *texts[:2]])
    assert seen == [8] and np.array_equal(scores[:4], alone) and np.array_equal(scores[8:], scores[4:6])


def test_pairs_and_galleries_are_scored_by_the_nearest_of_several_features(
    saved: dict[str, Path], tmp_path: Path
) -> None:
    import pyarrow.parquet as pq

    model, shelf = f"blip2-itc:{saved['blip2-itm']}", Shelf()
    pictures, texts = [shelf.picture(n) for n in range(4)], ["a cat", "the red dog"]
    found = encoder(model)
    features = found.image_features([found.prepare(decode(one.where, one.read())) for one in pictures])
    assert features.shape == (4, 24) and found.text_features(texts).shape == (2, 8)
    each = features.reshape(4, 3, 8)
    each = each / np.linalg.norm(each, axis=2, keepdims=True)
    by_hand = (each @ found.encode_texts(texts).T).max(1)
    assert np.allclose(cosines(features, found.encode_texts(texts)), by_hand, atol=1e-6)
    pair = Matching(
        key="m", subset="s", group="g", images=(pictures[0], pictures[1]), captions=("a cat", "the red dog")
    )
    captions = Query(
        key="i", subset="s", group="g", image=pictures[0], text=None, gallery=texts, targets=frozenset({0})
    )
    shown = Query(key="t", subset="s", group="g", image=None, text="a cat", gallery=pictures, targets=frozenset({2}))
    tables = []
    for name, examples in (("pairs", [pair]), ("queries", [captions, shown])):
        (written,) = run([SmallBenchmark(examples.copy)], [model], tmp_path / name, tmp_path / "cache", FAST)
        tables.append(pq.read_table(written.path).to_pylist())
    assert [tables[0][0][f"s{n}{m}"] for n in (0, 1) for m in (0, 1)] == pytest.approx(by_hand[:2].ravel(), abs=1e-6)
    assert tables[1][0]["higher"] == int(by_hand[0, 1] > by_hand[0, 0])
    assert tables[1][1]["higher"] == int((by_hand[:, 0] > by_hand[2, 0]).sum())
    with pytest.raises(WrongUse, match="one feature an image"):
        open_model(f"image+text:{model}", FAST)


def test_a_tokenizer_of_another_model_and_a_training_are_refused(saved: dict[str, Path], tmp_path: Path) -> None:
    import json
    import shutil

    folder = shutil.copytree(saved["blip2-itm"], tmp_path / "other")
    save_tokenizer(folder, "blip")
    tokens = json.loads((folder / "tokenizer.json").read_text())
    tokens["model"]["vocab"]["purple"] = len(tokens["model"]["vocab"])
    (folder / "tokenizer.json").write_text(json.dumps(tokens))
    with pytest.raises(WrongUse, match="15 tokens and its Q-Former 14"):
        open_model(f"blip2-itc:{folder}", FAST)
    with pytest.raises(WrongUse, match="is not trained by its matching head"):
        open_start(FusionSettings(model=f"blip2-itm:{saved['blip2-itm']}", data=("x",)))
