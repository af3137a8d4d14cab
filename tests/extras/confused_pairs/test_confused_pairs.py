"""Pairs that one encoder confuses: those of all cosines are planned; what is made and refused."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

from tests.generators.finished_stage import write_index
from twinset.contracts.canonical import canonical_json
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.pair import Pair
from twinset.contracts.recipe import parse_recipe
from twinset.generators.contract import check_source
from twinset.generators.neighbours.table import read_features
from twinset.models.encoders.contract import unit
from twinset.shards.contracts import Context
from twinset.shards.finished_stage import FinishedStage
from twinset.shards.storage.store import Store
from twinset.shards.storage.tar_reader import BrokenTar
from twinset.stages.build import build_here
from twinset_extras.caption_twins import choice
from twinset_extras.confused_pairs import source as generator
from twinset_extras.confused_pairs.source import ConfusedCandidate, ConfusedPairs, Floats, alike

NAMES = ("key", "identity", "image_sha256")
FEATURES = pa.schema([*((name, pa.string()) for name in NAMES), ("features", pa.list_(pa.float32()))])
IMAGES = 40
#: Seed of the features of each encoder, and how far they spread.
FIRST_SECOND = {"first": (1, 0.3), "second": (2, 1.0)}


def table(folder: Path, name: str, features: Mapping[str, Floats], rejected: Sequence[str] = ()) -> FinishedStage:
    rows = [
        {"key": f"{name}-{sha256}", "identity": json.dumps([sha256]), "image_sha256": sha256, "features": one.tolist()}
        for sha256, one in features.items()
    ]
    lost = [{"key": one, "identity": json.dumps([one]), "reason": "feature-not-finite"} for one in rejected]
    return write_index(pa.Table.from_pylist(rows, FEATURES), folder, name, len(rows) + len(lost), 7, lost)


def encoded(photos: FinishedStage, seed: int, spread: float) -> dict[str, Floats]:
    drawn, names = np.random.default_rng(seed), photos.read(["image_sha256"])["image_sha256"].to_pylist()
    return dict(zip(names, unit((drawn.normal(size=(len(names), 12)) * spread + 1).astype(np.float32)), strict=True))


def source(**settings: Any) -> ConfusedPairs:
    stages = {"images": "photos", "alike": "first", "apart": "second"}
    return ConfusedPairs(kind="confused-pairs", licence="CC0-1.0", **{**stages, **settings})


def context(*stages: FinishedStage) -> Context:
    return Context("confused", earlier=dict(zip(("photos", "first", "second"), stages, strict=True)).__getitem__)


def planned(settings: ConfusedPairs, stages: Context) -> list[ConfusedCandidate]:
    return list(settings.open(stages).plan())


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> FinishedStage:
    """A built stage of noise; every fourth image is of another split."""
    folder, drawn = tmp_path_factory.mktemp("photos"), np.random.default_rng(0)
    rows = []
    for number in range(IMAGES):
        name = f"{number:02d}.png"
        Image.fromarray(drawn.integers(0, 256, (20, 30, 3), np.uint8)).save(folder / name)
        split = "train" if number % 4 == 3 else "test"
        rows += [
            {"caption_id": f"{name}#{n}", "image": name, "caption": f"{n} of {name}", "split": split} for n in (0, 1)
        ]
    (folder / "captions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    source = {"kind": "image-captions", "captions": str(folder / "captions.jsonl"), "images": str(folder)}
    raw = {"name": "n", "subsets": {"photos": {"source": {**source, "licence": "CC0-1.0"}, "shard_size": 15}}}
    build_here(parse_recipe(raw), str(folder / "out"))
    return FinishedStage(Store(str(folder / "out")), "photos")


@pytest.fixture
def stages(photos: FinishedStage, tmp_path: Path) -> Context:
    first, second = (table(tmp_path, name, encoded(photos, *how)) for name, how in FIRST_SECOND.items())
    return context(photos, first, second)


def test_all_pairs_between_the_thresholds_are_planned_the_largest_difference_first(
    photos: FinishedStage, stages: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = source(above=0.9, uses_of_image=IMAGES)
    check_source(settings, stages)
    assert max(Counter(one.group for one in planned(settings, stages)).values()) == choice.MOST_PAIRS
    monkeypatch.setattr(choice, "MOST_PAIRS", 1000)
    monkeypatch.setattr(generator, "BLOCK", 7)
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


def test_every_pair_is_planned_or_counted(stages: Context) -> None:
    excluded = Counter[str]()
    for uses in (1, 30):
        opened = source(above=0.9, uses_of_image=uses).open(stages)
        assert isinstance(opened, ConfusedPairs)
        assert len(list(opened.plan())) + sum(opened.excluded.values()) == len(opened._found()[1])
        excluded.update(opened.excluded)
    assert {*excluded} == {"large-group", "other-split", "used-often"} <= ConfusedPairs.reasons.keys()


def test_no_photograph_is_used_too_often(stages: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "MOST_PAIRS", 1000)
    every = planned(source(above=0.9, uses_of_image=IMAGES), stages)
    for uses in (1, 2, 3):
        found = planned(source(above=0.9, uses_of_image=uses), stages)
        assert Counter(name for one in found for name in one.image_ids).most_common(1)[0][1] == uses
        left = Counter(name for one in found for name in one.image_ids)
        gone = [one for one in every if one.key not in {kept.key for kept in found}]
        assert all(max(left[name] for name in one.image_ids) >= uses for one in gone)


def test_a_pair_has_the_photographs_and_all_their_captions(photos: FinishedStage, stages: Context) -> None:
    opened = source(above=0.9).open(stages)
    candidates = list(opened.plan())[:5]
    for one, made in zip(candidates, opened.make(candidates), strict=True):
        assert isinstance(made, Pair) and made.captions1 == one.captions1 and made.scores == {
            "alike": one.alike, "apart": one.apart
        }  # fmt: skip
    wrong = replace(candidates[0], image_sha256s=("0" * 64, "1" * 64))
    with pytest.raises(BrokenTar, match=r"stage://photos/.* is not what was planned from; run this build again"):
        list(opened.make([wrong]))


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
    for features in ((first, fewer), (fewer, first)):
        with pytest.raises(WrongUse, match=f"fewer: has no features of 1 images of .*first, such as {name}"):
            planned(source(), context(photos, *features))
    alien = {canonical_json(one).hex().ljust(64, "0"): features for one, features in every.items()}
    both = [table(tmp_path, one, alien) for one in ("a", "b")]
    with pytest.raises(WrongUse, match=r"out/photos: lacks \d+ images of first, such as .*as source.images"):
        planned(source(above=-0.9, below=1), context(photos, *both))


@pytest.mark.parametrize("value", [np.nan, 0.0, 2.0])
def test_features_that_are_not_of_norm_1_are_named(photos: FinishedStage, tmp_path: Path, value: float) -> None:
    every = encoded(photos, 1, 1.0)
    broken = [*every][20]
    every[broken] = np.full(12, value, np.float32)
    with pytest.raises(WrongUse, match=f"bad: the features of image {broken} have norm .* instead of 1; remove the"):
        read_features(table(tmp_path, "bad", every))


def test_no_pair_and_too_many_pairs_say_what_to_do(stages: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    for given, pairs in (({"above": 0.9999}, "0"), ({"above": 0.8, "below": -0.99}, r"\d\d+")):
        with pytest.raises(WrongUse, match=f"none of {pairs} pairs of images with a cosine above {given['above']} "):
            planned(source(**given), stages)
    monkeypatch.setattr(generator, "MOST", 10)
    with pytest.raises(WrongUse, match=r"first: more than 10 pairs of images have a cosine above 0.8; set a higher"):
        planned(source(above=0.8), stages)


def test_a_cosine_at_the_threshold_is_not_above_it() -> None:
    features = np.array([[1, 0, 0], [0.5, 0.75, 0.4330127], [0.5, -0.75, 0.4330127]], np.float32)
    assert alike(features, 0.5)[0].tolist() == alike(features[:1], 0.1)[0].tolist() == []
    assert alike(features, np.nextafter(0.5, 0))[0].tolist() == [[0, 1], [0, 2]]
