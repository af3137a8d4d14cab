"""Photographs and both encoders' features must fit together, and some pair must lie between the thresholds.

The search for pairs above a cosine against all cosines: thresholds and blocks.
"""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from extras.tests.confused_pairs.encoded_photos import (
    FIRST_SECOND,
    context,
    encoded,
    image_features,
    planned,
    source,
    table,
)
from twinset.contracts.canonical import canonical_json
from twinset.contracts.errors import WrongUse
from twinset.contracts.recipe import parse_recipe
from twinset.generators.neighbours.table import read_features
from twinset.models.encoders.contract import unit
from twinset.shards.contracts import Context
from twinset.shards.finished_stage import FinishedStage
from twinset_extras.confused_pairs import generator, search
from twinset_extras.confused_pairs.search import Floats, TooMany, alike, cosines


def test_images_that_an_encoder_failed_at_are_in_no_pair(
    photos: FinishedStage, stages: Context, tmp_path: Path
) -> None:
    every = encoded(photos, *FIRST_SECOND["second"])
    failed, others = next(iter(every)), dict(list(every.items())[1:])
    found = planned(source(above=0.9), context(photos, stages.earlier("first"), table(tmp_path, "s", others, [failed])))
    assert found and not any(failed in one.image_sha256s for one in found)


def test_stages_of_other_images_are_refused(photos: FinishedStage, stages: Context, tmp_path: Path) -> None:
    every = encoded(photos, *FIRST_SECOND["second"])
    name, first = next(iter(every)), stages.earlier("first")
    fewer = table(tmp_path, "fewer", dict(list(every.items())[1:]))
    for some in ((first, fewer), (fewer, first)):
        with pytest.raises(
            WrongUse, match=f"fewer: has no features of 1 images of .*first, such as {name}; name two st"
        ):
            planned(source(), context(photos, *some))
    alien = {canonical_json(one).hex().ljust(64, "0"): features for one, features in every.items()}
    both = [table(tmp_path, one, alien) for one in ("a", "b")]
    with pytest.raises(WrongUse, match=r"out/photos: lacks \d+ images of first, such as .*as source.images"):
        planned(source(above=-0.9, below=1), context(photos, *both))


@pytest.mark.parametrize("value", [np.nan, np.inf, 0.0, 2.0])
def test_features_that_are_not_of_norm_1_are_named(photos: FinishedStage, tmp_path: Path, value: float) -> None:
    every = encoded(photos, 1, 1.0)
    broken = [*every][20]
    every[broken] = np.full(12, value, np.float32)
    with pytest.raises(WrongUse, match=f"bad: the features of image {broken} have norm .* instead of 1; remove the"):
        read_features(table(tmp_path, "bad", every))


def test_no_pair_and_too_many_pairs_say_what_to_do(stages: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(WrongUse, match=r"none of 0 pairs of images with a cosine above 0.9999 in the first .* set a l"):
        planned(source(above=0.9999), stages)
    with pytest.raises(
        WrongUse, match=r"none of \d\d+ pairs of images with a cosine above 0.8 .* below -0.99 in the s"
    ):
        planned(source(above=0.8, below=-0.99), stages)
    for module in (search, generator):
        monkeypatch.setattr(module, "MOST", 10)
    with pytest.raises(WrongUse, match=r"first: more than 10 pairs of images have a cosine above 0.8; set a higher"):
        planned(source(above=0.8), stages)


def test_stages_of_other_kinds_are_refused() -> None:
    stages = {
        "photos": {"source": {"kind": "confused-pairs", "images": "a", "alike": "b", "apart": "c", "licence": "MIT"}}
    }
    with pytest.raises(WrongUse, match="confused-pairs gives neither photographs with captions nor features"):
        parse_recipe(
            {
                "name": "n",
                "stages": {**stages, **{name: image_features("./x/photos") for name in "abc"}},
                "subsets": {"pairs": {"source": {**stages["photos"]["source"], "images": "photos"}}},
            }
        )


def some_features(rows: int, width: int, shared: float) -> Floats:
    """Half of the rows are others, changed by little to much. shared: a part that all have in common."""
    drawn = np.random.default_rng(width)
    features = drawn.normal(size=(rows, width)) + shared
    features[rows // 2 :] = features[: rows - rows // 2] + drawn.normal(size=(rows - rows // 2, width)) * np.linspace(
        0, 0.6, rows - rows // 2
    ).reshape(-1, 1)
    return unit(features.astype(np.float32))


def exact(features: Floats) -> NDArray[np.longdouble]:
    """All cosines, in more digits."""
    wide = features.astype(np.longdouble)
    return np.asarray(wide @ wide.T)


@pytest.mark.parametrize("width", [1, 5, 16, 130])
@pytest.mark.parametrize("shared", [0.0, 2.0])
def test_pairs_are_those_of_all_cosines(monkeypatch: pytest.MonkeyPatch, width: int, shared: float) -> None:
    features = some_features(45, width, shared)
    every = exact(features)
    for above in (-0.2, 0.5, 0.9, 0.95, 0.999):
        expected = np.argwhere(np.triu(every > above, 1))
        assert len(expected) > 0
        for block in (1, 7, 2048):
            monkeypatch.setattr(search, "BLOCK", block)
            pairs, found = alike(features, above)
            assert np.array_equal(pairs, expected)
            assert np.array_equal(found, cosines(features, pairs))
            assert np.allclose(found, every[tuple(expected.T)].astype(float), atol=1e-14, rtol=0)


def test_a_cosine_at_the_threshold_is_not_above_it() -> None:
    features = np.array([[1, 0, 0], [0.5, 0.75, 0.4330127], [0.5, -0.75, 0.4330127]], np.float32)
    assert alike(features, 0.5)[0].tolist() == []
    assert alike(features, np.nextafter(0.5, 0))[0].tolist() == [[0, 1], [0, 2]]


def test_the_sum_of_a_cosine_does_not_depend_on_what_else_is_asked() -> None:
    features = some_features(40, 77, 0.0)
    pairs = np.stack(np.triu_indices(40, 1), axis=1)
    assert np.array_equal(cosines(features, pairs)[::7], cosines(features, pairs[::7]))
    assert cosines(features, pairs[:0]).shape == (0,)


def test_one_row_has_no_pair() -> None:
    assert len(alike(some_features(2, 4, 0.0)[:1], 0.1)[0]) == 0


def test_more_pairs_than_are_held_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    features = some_features(60, 8, 5.0)
    assert len(alike(features, 0.5)[0]) == 60 * 59 // 2
    monkeypatch.setattr(search, "MOST", 60 * 59 // 2 - 1)
    for block in (8, 512):
        monkeypatch.setattr(search, "BLOCK", block)
        with pytest.raises(TooMany):
            alike(features, 0.5)
