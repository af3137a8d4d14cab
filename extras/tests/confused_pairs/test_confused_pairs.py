"""Pairs that one encoder confuses: what is planned and made, and all pairs of real photographs.

Photographs and both encoders' features must fit together, and some pair must lie between the thresholds.

The search for pairs above a cosine against all cosines: thresholds and blocks.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from extras.tests.confused_pairs.encoded_photos import (
    FIRST_SECOND,
    IMAGES,
    context,
    encoded,
    image_features,
    planned,
    source,
    table,
)
from twinset.contracts.canonical import canonical_json
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.pair import Pair
from twinset.contracts.recipe import parse_recipe
from twinset.generators.contract import check_source
from twinset.generators.neighbours.table import read_features
from twinset.models.encoders.contract import unit
from twinset.shards.contracts import Context
from twinset.shards.finished_stage import FinishedStage
from twinset.shards.media.decode import decode
from twinset.shards.storage.store import Store
from twinset.shards.storage.tar_reader import BrokenTar
from twinset.stages.build import build_here
from twinset_extras.caption_twins import choice
from twinset_extras.confused_pairs import source as generator
from twinset_extras.confused_pairs.source import ConfusedPairs, Floats, TooMany, alike, cosines

SHARED = Path(__file__).resolve().parents[4] / "shared" / "data"
PHOTOS, TOKENS = SHARED / "images" / "flickr8k", SHARED / "captions" / "flickr8k_token.txt"


def test_all_pairs_between_the_thresholds_are_planned_the_largest_difference_first(
    photos: FinishedStage, stages: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = source(above=0.9, uses_of_image=IMAGES)
    check_source(settings, stages)
    assert max(Counter(one.group for one in planned(settings, stages)).values()) == choice.MOST_PAIRS
    monkeypatch.setattr(choice, "MOST_PAIRS", 1000)
    rows = photos.read(["image_sha256", "image_id", "split"]).to_pylist()
    near, far = (encoded(photos, *how) for how in FIRST_SECOND.values())
    expected = {}
    for at, one in enumerate(rows):
        for other in rows[at + 1 :]:
            both = one["image_sha256"], other["image_sha256"]
            cosines = [float(np.dot(*(every[sha256].astype(float) for sha256 in both))) for every in (near, far)]
            if cosines[0] > 0.9 and cosines[1] < 0.6 and one["split"] == other["split"]:
                expected[tuple(sorted((one["image_id"], other["image_id"])))] = cosines
    found = planned(settings, stages)
    assert len(expected) > 20 and {one.image_ids for one in found} == expected.keys()
    for one in found:
        assert (one.alike, one.apart) == pytest.approx(expected[one.image_ids], abs=1e-12)
        assert one.split == ("train" if int(one.image_ids[0][:2]) % 4 == 3 else "test")
        assert one.captions0 == tuple(f"{n} of {one.image_ids[0]}" for n in (0, 1))
    gaps = [one.alike - one.apart for one in found]
    firsts = [gap for gap, one in zip(gaps, found, strict=True) if one.group == one.key]
    assert gaps[0] == max(gaps) and firsts == sorted(firsts, reverse=True) and 1 < len(firsts) < len(found)


def test_every_pair_is_planned_or_counted(photos: FinishedStage, stages: Context) -> None:
    settings = source(above=0.9, uses_of_image=30)
    opened = settings.open(stages)
    found = list(opened.plan())
    assert isinstance(opened, generator.ConfusedPairs)
    assert len(found) + sum(opened.excluded.values()) == len(opened._found()[1])
    assert opened.excluded.keys() <= settings.reasons.keys()
    assert opened.excluded["large-group"] > 0 and opened.excluded["other-split"] > 0
    assert "used-often" in planned_out(source(above=0.9, uses_of_image=1), stages)


def planned_out(settings: ConfusedPairs, stages: Context) -> Mapping[str, int]:
    opened = settings.open(stages)
    list(opened.plan())
    return opened.excluded


def test_photographs_are_decoded_when_their_pair_is_taken(stages: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded = list[str]()

    def counted(content: bytes, where: str) -> Image.Image:
        decoded.append(where)
        return decode(content, where)

    monkeypatch.setattr(generator, "decode", counted)
    opened = source(above=0.9).open(stages)
    made = opened.make(list(opened.plan())[:5])
    next(iter(made))
    assert len(decoded) == 2


def test_no_photograph_is_used_too_often(stages: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "MOST_PAIRS", 1000)
    every = planned(source(above=0.9, uses_of_image=IMAGES), stages)
    for uses in (1, 2, 3):
        found = planned(source(above=0.9, uses_of_image=uses), stages)
        assert Counter(name for one in found for name in one.image_ids).most_common(1)[0][1] == uses
        left = Counter(name for one in found for name in one.image_ids)
        gone = [one for one in every if one.key not in {kept.key for kept in found}]
        assert all(max(left[name] for name in one.image_ids) >= uses for one in gone)


def test_blocks_and_order_of_the_other_table_change_nothing(
    photos: FinishedStage, stages: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = planned(source(above=0.9), stages)
    turned = table(tmp_path, "turned", dict(reversed(encoded(photos, *FIRST_SECOND["second"]).items())))
    monkeypatch.setattr(generator, "BLOCK", 5)
    assert planned(source(above=0.9), context(photos, stages.earlier("first"), turned)) == expected


def test_a_pair_has_the_photographs_and_all_their_captions(photos: FinishedStage, stages: Context) -> None:
    opened = source(above=0.9).open(stages)
    candidates = list(opened.plan())[:5]
    for one, made in zip(candidates, opened.make(candidates), strict=True):
        assert isinstance(made, Pair) and made.captions1 == one.captions1 and made.scores == {
            "alike": one.alike, "apart": one.apart
        }  # fmt: skip
        pixels = np.asarray(Image.open(Path(photos.store.root).parent / one.image_ids[0]))
        assert made.image0.pixels.shape == pixels.shape
        assert np.abs(made.image0.pixels.astype(int) - pixels).mean() < 12  # JPEG of noise
    wrong = replace(candidates[0], image_sha256s=("0" * 64, "1" * 64))
    with pytest.raises(BrokenTar, match=r"stage://photos/.* is not what was planned from; run this build again"):
        list(opened.make([wrong]))


@pytest.mark.slow  # two encoders over 800 photographs
@pytest.mark.skipif(not PHOTOS.is_dir(), reason="the photographs of Flickr8k are not here")
def test_pairs_of_real_photographs_are_those_of_all_cosines(tmp_path: Path) -> None:
    names = {path.name for path in PHOTOS.iterdir()}
    lines = [line for line in TOKENS.read_text().splitlines() if line.partition("#")[0] in names]
    (tmp_path / "tokens.txt").write_text("\n".join(lines) + "\n")
    photos = {
        "kind": "image-captions",
        "captions": str(tmp_path / "tokens.txt"),
        "images": str(PHOTOS),
        "licence": "MIT",
    }
    pairs = {"kind": "confused-pairs", "images": "photos", "alike": "first", "apart": "second", "licence": "MIT"}
    raw = {
        "name": "n",
        "stages": {
            "photos": {"source": photos},
            "first": image_features("photos", "small-clip"),
            "second": image_features("photos"),
        },
        "subsets": {"pairs": {"source": pairs}},
    }
    counts = build_here(parse_recipe(raw), str(tmp_path / "out"), 1)["subsets"]
    store = Store(str(tmp_path / "out"))
    (first, near), (second, far) = (
        read_features(FinishedStage(store, f"_stages/{one}")) for one in ("first", "second")
    )
    assert first == second and len(first) == 800
    near, far = (one.astype(np.longdouble) @ one.T.astype(np.longdouble) for one in (near, far))
    expected = np.argwhere(np.triu((near > 0.95) & (far < 0.6), 1))
    settings = source(alike="first", apart="second")
    opened = settings.open(Context("c", earlier=lambda one: FinishedStage(store, f"_stages/{one}")))
    names_found, found, *_ = opened._found()
    assert names_found == first and np.array_equal(found, expected) and len(found) > 1000
    assert counts["pairs"]["kept"] > 100
    used = FinishedStage(store, "pairs").read(["image0_sha256", "image1_sha256"])
    assert max(Counter([*used[0].to_pylist(), *used[1].to_pylist()]).values()) == 2


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
    monkeypatch.setattr(generator, "MOST", 10)
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
            monkeypatch.setattr(generator, "BLOCK", block)
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
    monkeypatch.setattr(generator, "MOST", 60 * 59 // 2 - 1)
    for block in (8, 512):
        monkeypatch.setattr(generator, "BLOCK", block)
        with pytest.raises(TooMany):
            alike(features, 0.5)
