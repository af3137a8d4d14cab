"""The built-in miniature: the same bytes every time, and pictures that show what its annotations say."""

import hashlib
import json
import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from tests.cached_builds import drawn_miniature
from twinset.contracts.kinds.samples import Drop, Frame, MediaFile, Pixels
from twinset.contracts.recipe import Recipe, load_recipe
from twinset.filters.faces import Faces
from twinset.generators.video import safe_pickle
from twinset.generators.video.frame_pairs import FramePairCandidate
from twinset.generators.video.frames import VideoFrame, read_frames
from twinset.shards.contracts import Context
from twinset.shards.media.media_folder import MediaFolder
from twinset_demo import miniature
from twinset_demo.canvas import Canvas
from twinset_demo.miniature.actor import joint
from twinset_demo.miniature.cooking_videos import COOKING_VIDEOS
from twinset_demo.miniature.event_videos import EVENT_VIDEOS
from twinset_demo.miniature.film import Film, write_video
from twinset_demo.miniature.home_videos import HOME_VIDEOS
from twinset_demo.miniature.scene_captions import write_scenes


@pytest.fixture(scope="module")
def drawn() -> Path:
    """The whole miniature, as this code draws it; not to be changed."""
    return drawn_miniature()


@pytest.fixture
def demo(drawn: Path) -> Recipe:
    """The shipped demo recipe, whose miniature is there."""
    return load_recipe("demo")


#: Every film by subset and video name.
FILMS: dict[str, dict[str, Film[Any]]] = {
    "eq-ag": {**HOME_VIDEOS},
    "eq-gebc": {**EVENT_VIDEOS},
    "eq-youcook2": {**COOKING_VIDEOS},
}


def planned(recipe: Recipe, name: str) -> list[FramePairCandidate]:
    source: Any = recipe.subsets[name].source
    candidates = list(source.open(Context(name)).plan())
    assert all(isinstance(candidate, FramePairCandidate) for candidate in candidates)
    return candidates  # type: ignore[return-value]


def shown(recipe: Recipe, name: str) -> Iterator[tuple[str, float, VideoFrame]]:
    """Video, address and decoded frame of everything that a subset's plan asks for."""
    source = recipe.subsets[name].source
    wanted: dict[str, set[float]] = {}
    for candidate in planned(recipe, name):
        wanted.setdefault(candidate.video, set()).update((candidate.at0, candidate.at1))
    for video, addresses in wanted.items():
        stored = MediaFolder(source.media).find(video)
        assert stored is not None, video
        found = read_frames(stored.path, addresses, "numbers" if name == "eq-ag" else "seconds")
        for address, frame in found.items():
            assert isinstance(frame, VideoFrame), (video, address, frame)
            yield video.removesuffix(".mp4"), address, frame


def face_found(pictures: list[Pixels]) -> list[bool]:
    """Verdicts of the face filter; runs in a child process, because dlib must have one of its own."""
    judge = Faces(kind="faces").open()
    frames = [Frame(str(n), pixels, -1.0, MediaFile("miniature", 0, "")) for n, pixels in enumerate(pictures)]
    return [isinstance(verdict, Drop) for verdict in judge(frames)]


@pytest.mark.slow
def test_painting_twice_gives_the_same_bytes(drawn: Path, tmp_path: Path) -> None:
    again = tmp_path / "action_genome"
    again.mkdir()
    miniature.write_action_genome(again)
    for name in ("-Ball0mini_", "_chair-Mini"):  # one mp4, one mkv
        EVENT_VIDEOS[name].write(tmp_path, name)
    pairs = [(path, drawn / path.relative_to(tmp_path)) for path in again.rglob("*") if path.is_file()]
    pairs += [(path, drawn / "gebc/videos" / path.name) for path in tmp_path.glob("*.m*")]
    assert len(pairs) == 9
    for path, first in pairs:
        assert hashlib.sha256(path.read_bytes()).digest() == hashlib.sha256(first.read_bytes()).digest(), path.name


def test_a_finished_folder_is_kept_and_nothing_is_left_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TWINSET_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "cache" / "miniature-6"
    monkeypatch.setattr(miniature, "SUBFOLDERS", {"scenes": write_scenes})
    assert miniature.ensure() == folder
    assert list(folder.rglob("captions.json"))
    inode = folder.stat().st_ino
    assert miniature.ensure() == folder
    assert folder.stat().st_ino == inode
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def test_a_drawing_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(folder: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(miniature, "SUBFOLDERS", {"gebc": full})
    monkeypatch.setenv("TWINSET_CACHE", str(tmp_path))
    with pytest.raises(OSError, match="No space left"):
        miniature.ensure()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "pairs", "pictures"), [("eq-ag", 87, 52), ("eq-gebc", 32, 44), ("eq-youcook2", 60, 27)]
)
def test_every_planned_frame_shows_what_was_painted_for_it(demo: Recipe, name: str, pairs: int, pictures: int) -> None:
    assert len(planned(demo, name)) == pairs  # as the recipe's header says
    expected, judged = FILMS[name], 0
    for video, address, frame in shown(demo, name):
        film = expected[video]
        times = film.times()
        index = int(address) - 1 if name == "eq-ag" else min(range(len(times)), key=lambda n: abs(times[n] - address))
        off = np.abs(frame.pixels.astype(int) - film.show.picture(times[index])).mean()
        assert off < 6, (video, address, off)
        judged += 1
    assert judged == pictures


def test_the_demo_gives_every_filter_of_the_paper_work(demo: Recipe) -> None:
    reasons = []
    for candidate in planned(demo, "eq-gebc"):
        judged: Any = candidate
        for chosen in demo.subsets["eq-gebc"].filters:
            settings: Any = chosen
            judged = settings.open()(judged)
            if isinstance(judged, Drop):
                reasons.append(judged.reason)
                break
    assert sorted(set(reasons)) == ["equal-captions", "motion-word"]


def test_the_face_filter_finds_the_presenter_and_nobody_else(demo: Recipe) -> None:
    pictures, expected = [], []
    for video, address, frame in shown(demo, "eq-youcook2"):
        cooking = COOKING_VIDEOS[video].show
        middles = [(start + end) / 2 for start, end in cooking.segments]
        step = min(range(len(middles)), key=lambda n: abs(middles[n] - address))
        pictures.append(frame.pixels)
        expected.append(cooking.steps[step][1] is None)
    assert sum(expected) == 3
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as child:
        assert child.submit(face_found, pictures).result() == expected


def test_annotations_have_the_sources_own_structure(drawn: Path) -> None:
    frames: Any = safe_pickle.load(drawn / "action_genome/annotations.pkl")
    for tag, objects in frames.items():
        assert (drawn / "action_genome/videos" / tag.split("/")[0]).is_file()
        for one in objects:
            assert set(one) == {
                "class",
                "bbox",
                "attention_relationship",
                "spatial_relationship",
                "contacting_relationship",
                "visible",
                "metadata",
            }
            if one["visible"]:
                left, top, width, height = one["bbox"]
                assert -width < left < 320 and -height < top < 240
            else:
                assert one["bbox"] is None
    events = json.loads((drawn / "gebc/annotations.json").read_text())
    letters = {record["boundary_id"][-1] for records in events.values() for record in records}
    assert letters == {"A", "B"}
    database = json.loads((drawn / "youcook2/annotations.json").read_text())["database"]
    assert {entry["subset"] for entry in database.values()} == {"training", "validation"}


def test_some_files_are_odd_on_purpose(drawn: Path) -> None:
    rotations, gaps, kinds = set(), {}, set()
    for path in sorted(drawn.glob("*/videos/*")):
        with av.open(path) as container:
            decoded = list(container.decode(video=0))
        rotations.add(decoded[0].rotation)
        gaps[path.stem] = len({round((b.time or 0) - (a.time or 0), 2) for a, b in pairwise(decoded)})
        kinds |= {frame.pict_type for frame in decoded}
    assert rotations == {0, -90}
    assert [name for name, found in gaps.items() if found > 2] == ["Bottle1mini"]
    assert len(kinds) == 3  # I, P and B


def test_a_rotation_flag_turns_the_picture_upright(tmp_path: Path) -> None:
    picture = np.zeros((240, 320, 3), np.uint8)
    picture[:60] = 255  # white at the top
    for turns in range(4):
        path = tmp_path / f"{turns}.mp4"
        write_video(path, [(n / 10, picture) for n in range(5)], Fraction(10), turns)
        frame = read_frames(path, [1.0], "numbers")[1.0]
        assert isinstance(frame, VideoFrame)
        assert frame.pixels.shape == picture.shape
        assert np.abs(frame.pixels.astype(int) - picture).mean() < 6


def test_a_limb_reaches_as_far_as_its_bones() -> None:
    middle, end = joint((0, 0), (100, 0), 20, 20, 1)
    assert end[0] == pytest.approx(39.9) and middle[0] == pytest.approx(19.95)
    middle, end = joint((0, 0), (20, 0), 20, 20, -1)
    assert end == pytest.approx((20, 0)) and middle[1] == pytest.approx(-17.32, abs=0.01)


def test_a_local_frame_turns_and_mirrors_its_drawing() -> None:
    canvas = Canvas.blank((0, 0, 0))
    canvas.at((100, 100), angle=np.pi / 2).box(10, -5, 30, 5, (255, 0, 0))  # turned clockwise: right becomes down
    canvas.at((200, 100), flip=True).box(10, -5, 30, 5, (0, 255, 0))  # mirrored: right becomes left
    pixels = canvas.pixels()
    assert pixels[120, 100].tolist() == [255, 0, 0] and pixels[100, 120].tolist() == [0, 0, 0]
    assert pixels[100, 180].tolist() == [0, 255, 0] and pixels[100, 220].tolist() == [0, 0, 0]
