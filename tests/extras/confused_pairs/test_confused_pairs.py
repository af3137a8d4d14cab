"""Pairs that one encoder confuses: those of all cosines are planned; what is made and refused."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

import twinset
from tests.generators.finished_stage import write_index
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.pair import Pair
from twinset.contracts.recipe import parse_recipe
from twinset.generators.contract import check_source
from twinset.models.encoders.contract import unit
from twinset.shards.contracts import Context
from twinset.shards.finished_stage import FinishedStage
from twinset.shards.storage.store import Store
from twinset.shards.storage.tar_reader import BrokenTar
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
        {"key": f"{name}-{sha256}", "identity": json.dumps([sha256]), "image_sha256": sha256, "features": row.tolist()}
        for sha256, row in features.items()
    ]
    lost = [{"key": key, "identity": json.dumps([key]), "reason": "feature-not-finite"} for key in rejected]
    return write_index(pa.Table.from_pylist(rows, FEATURES), folder, name, len(rows) + len(lost), 7, lost)


def encoded(photos: FinishedStage, seed: int, spread: float) -> dict[str, Floats]:
    random, names = np.random.default_rng(seed), photos.read(["image_sha256"])["image_sha256"].to_pylist()
    return dict(zip(names, unit((random.normal(size=(len(names), 12)) * spread + 1).astype(np.float32)), strict=True))


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
    folder, random = tmp_path_factory.mktemp("photos"), np.random.default_rng(0)
    rows = []
    for number in range(IMAGES):
        name = f"{number:02d}.png"
        Image.fromarray(random.integers(0, 256, (20, 30, 3), np.uint8)).save(folder / name)
        split = "train" if number % 4 == 3 else "test"
        rows += [
            {"caption_id": f"{name}#{n}", "image": name, "caption": f"{n} of {name}", "split": split} for n in (0, 1)
        ]
    (folder / "captions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    images = {"kind": "image-captions", "captions": str(folder / "captions.jsonl"), "images": str(folder)}
    raw = {"name": "n", "subsets": {"photos": {"source": {**images, "licence": "CC0-1.0"}, "shard_size": 15}}}
    twinset.build(parse_recipe(raw), str(folder / "out"))
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
    assert max(Counter(pair.group for pair in planned(settings, stages)).values()) == choice.MOST_PAIRS
    monkeypatch.setattr(choice, "MOST_PAIRS", 1000)
    monkeypatch.setattr(generator, "BLOCK", 7)
    near, far = (encoded(photos, *how) for how in FIRST_SECOND.values())
    expected = {}
    for rows in combinations(photos.read(["image_sha256", "image_id", "split"]).to_pylist(), 2):
        left, right = (row["image_sha256"] for row in rows)
        cosines = [float(features[left].astype(float) @ features[right].astype(float)) for features in (near, far)]
        if cosines[0] > 0.9 and cosines[1] < 0.6 and rows[0]["split"] == rows[1]["split"]:
            expected[tuple(sorted(row["image_id"] for row in rows))] = cosines
    pairs = planned(settings, stages)
    assert len(expected) > 20 and {pair.image_ids for pair in pairs} == expected.keys()
    for pair in pairs:
        assert (pair.alike, pair.apart) == pytest.approx(expected[pair.image_ids], abs=1e-12)
        assert pair.split == ("train" if int(pair.image_ids[0][:2]) % 4 == 3 else "test")
        assert pair.captions0 == tuple(f"{n} of {pair.image_ids[0]}" for n in (0, 1))
    gaps = [pair.alike - pair.apart for pair in pairs]
    firsts = [gap for gap, pair in zip(gaps, pairs, strict=True) if pair.group == pair.key]
    assert gaps[0] == max(gaps) and firsts == sorted(firsts, reverse=True) and 1 < len(firsts) < len(pairs)


def test_every_pair_is_planned_or_counted_and_no_photograph_is_used_too_often(stages: Context) -> None:
    excluded = Counter[str]()
    for uses in (1, 2, 16):
        opened = source(above=0.9, uses_of_image=uses).open(stages)
        assert isinstance(opened, ConfusedPairs)
        pairs = list(opened.plan())
        assert len(pairs) + sum(opened.excluded.values()) == len(opened._found()[1])
        assert max(Counter(name for pair in pairs for name in pair.image_ids).values()) == uses
        excluded.update(opened.excluded)
    assert {*excluded} == {"large-group", "other-split", "used-often"} <= ConfusedPairs.reasons.keys()


def test_a_pair_has_the_photographs_and_all_their_captions(stages: Context) -> None:
    opened = source(above=0.9).open(stages)
    candidates = list(opened.plan())[:5]
    for pair, made in zip(candidates, opened.make(candidates), strict=True):
        assert isinstance(made, Pair) and made.captions1 == pair.captions1
        assert made.scores == {"alike": pair.alike, "apart": pair.apart}
    wrong = replace(candidates[0], image_sha256s=("0" * 64, "1" * 64))
    with pytest.raises(BrokenTar, match=r"stage://photos/.* is not what was planned from; run this build again"):
        list(opened.make([wrong]))


def test_images_that_an_encoder_failed_at_are_in_no_pair(
    photos: FinishedStage, stages: Context, tmp_path: Path
) -> None:
    features = encoded(photos, *FIRST_SECOND["second"])
    failed, _ = features.popitem()
    rest = context(photos, stages.earlier("first"), table(tmp_path, "s", features, [failed]))
    pairs = planned(source(above=0.9), rest)
    assert pairs and not any(failed in pair.image_sha256s for pair in pairs)


def test_stages_of_other_images_are_refused(photos: FinishedStage, stages: Context, tmp_path: Path) -> None:
    features = encoded(photos, *FIRST_SECOND["second"])
    alien = [table(tmp_path, name, {key[::-1]: row for key, row in features.items()}) for name in ("a", "b")]
    with pytest.raises(WrongUse, match=r"out/photos: lacks \d+ images of first"):
        planned(source(above=-0.9, below=1), context(photos, *alien))
    absent, _ = features.popitem()
    first, fewer = stages.earlier("first"), table(tmp_path, "fewer", features)
    for pair in ((first, fewer), (fewer, first)):
        with pytest.raises(WrongUse, match=f"fewer: has no features of 1 images of .*first, such as {absent}"):
            planned(source(), context(photos, *pair))


def test_features_that_are_not_of_norm_1_are_named(photos: FinishedStage, stages: Context, tmp_path: Path) -> None:
    features = encoded(photos, 1, 1.0)
    broken = [*features][20]
    features[broken] = np.full(12, np.nan, np.float32)
    with pytest.raises(WrongUse, match=f"bad: the features of image {broken} have norm "):
        planned(source(), context(photos, table(tmp_path, "bad", features), stages.earlier("second")))


def test_no_pair_and_too_many_pairs_are_refused(stages: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    for given, pairs in (({"above": 0.9999}, "0"), ({"above": 0.8, "below": -0.99}, r"\d\d+")):
        with pytest.raises(WrongUse, match=f"none of {pairs} pairs of images with a cosine above {given['above']} "):
            planned(source(**given), stages)
    monkeypatch.setattr(generator, "MOST", 10)
    with pytest.raises(WrongUse, match="first: more than 10 pairs of images"):
        planned(source(above=0.8), stages)


def test_a_cosine_at_the_threshold_is_not_above_it() -> None:
    features = np.array([[1, 0, 0], [0.5, 0.75, 0.4330127], [0.5, -0.75, 0.4330127]], np.float32)
    assert alike(features, 0.5)[0].tolist() == alike(features[:1], 0.1)[0].tolist() == []
    assert alike(features, np.nextafter(0.5, 0))[0].tolist() == [[0, 1], [0, 2]]
