"""Where two pictures differ.

Media are found by name, inside their folder, and only where they can be read to an end.
"""

import os
from pathlib import Path

import numpy as np
import pytest

from twinset.contracts.kinds.samples import Pixels
from twinset.shards.media.media_folder import EscapesRoot, MediaFolder
from twinset.shards.storage.path_ends import walk
from twinset_extras.comparison import Box, regions


def picture(*places: tuple[int, int, int, int]) -> Pixels:
    """Noise of some levels, with rectangles (left, top, width, height) of another colour."""
    pixels = np.random.default_rng(0).integers(100, 108, (90, 120, 3), dtype=np.uint8)
    for left, top, width, height in places:
        pixels[top : top + height, left : left + width] = 160
    return pixels


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        ([], []),
        ([(10, 20, 30, 12)], [Box(10, 20, 30, 12)]),
        ([(0, 0, 10, 10), (80, 50, 40, 40)], [Box(80, 50, 40, 40), Box(0, 0, 10, 10)]),
        ([(10, 20, 10, 10), (24, 20, 10, 10)], [Box(10, 20, 24, 10)]),  # four pixels apart
        ([(10, 10, 60, 4), (10, 10, 4, 60), (40, 40, 12, 12)], [Box(10, 10, 60, 60)]),  # within the frame of an L
        ([(10, 20, 1, 1)], []),
        ([(0, 0, 120, 90)], [Box(0, 0, 120, 90)]),
    ],
)
def test_regions(places: list[tuple[int, int, int, int]], expected: list[Box]) -> None:
    assert regions(picture(), picture(*places), 12, 2) == expected
    assert regions(picture(*places), picture(), 12, 2) == expected


def test_a_small_difference_everywhere_is_none() -> None:
    noise = np.random.default_rng(1).integers(0, 11, (90, 120, 3), dtype=np.uint8)
    assert regions(picture(), picture() + noise, 12, 2) == []


@pytest.mark.parametrize(
    ("box", "side", "grown"),
    [
        (Box(50, 40, 10, 10), 20, Box(45, 35, 20, 20)),
        (Box(0, 85, 10, 5), 20, Box(0, 70, 20, 20)),
        (Box(5, 5, 40, 8), 20, Box(5, 0, 40, 20)),
        (Box(5, 5, 40, 8), 500, Box(0, 0, 120, 90)),
    ],
)
def test_a_box_grows_within_its_picture(box: Box, side: int, grown: Box) -> None:
    assert box.at_least(side, 120, 90) == grown


def put(file: Path, content: bytes = b"x") -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)


def found(root: Path, name: str) -> str | None:
    stored = MediaFolder(root).find(name)
    return stored.name if stored is not None else None


def test_what_can_never_be_read_to_an_end_is_not_found(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.mp4")
    (tmp_path / "device.mp4").symlink_to("/dev/zero")
    (tmp_path / "dangling.mp4").symlink_to("nowhere")
    (tmp_path / "loop.mp4").symlink_to("loop.mp4")
    (tmp_path / "folder.mp4").mkdir()
    media = MediaFolder(tmp_path)
    for name in ("pipe", "device", "dangling", "loop", "folder", "x" * 5000):
        assert media.find(name) is None


def test_nested_videos_are_found_by_name(tmp_path: Path) -> None:
    put(tmp_path / "training" / "101" / "-Abc.mkv")
    assert found(tmp_path, "-Abc") == "training/101/-Abc.mkv"


@pytest.mark.parametrize("file", ["ID.MP4", "a/ID.Mkv", "ID.mp4.webm", "a/ID.mkv.mp4", "ID.mov.WEBM"])
def test_suffixes_are_found_in_any_letters_and_as_downloads_leave_them(tmp_path: Path, file: str) -> None:
    put(tmp_path / file)
    assert found(tmp_path, "ID") == file


def test_a_name_that_several_videos_have_is_that_of_none(tmp_path: Path) -> None:
    put(tmp_path / "a" / "ID.mp4", b"first")
    put(tmp_path / "b" / "ID.mp4", b"first")
    assert found(tmp_path, "ID") == "a/ID.mp4", "copies"
    put(tmp_path / "b" / "ID.mp4", b"other")
    assert found(tmp_path, "ID") is None
    assert MediaFolder(tmp_path).absent("ID", "").startswith("ID may be a/ID.mp4 or b/ID.mp4, which differ")
    assert (found(tmp_path, "a/ID"), found(tmp_path, "b/ID.mp4")) == ("a/ID.mp4", "b/ID.mp4")


def test_of_one_video_in_two_formats_the_first_suffix_counts(tmp_path: Path) -> None:
    for suffix in ("webm", "mp4"):
        put(tmp_path / f"ID.{suffix}", suffix.encode())
    assert (found(tmp_path, "ID"), found(tmp_path, "ID.webm")) == ("ID.mp4", "ID.webm")


def test_links_of_the_folder_s_owner_are_followed_and_loops_end(tmp_path: Path) -> None:
    put(tmp_path / "disk2" / "clips" / "ID.mp4")
    media = tmp_path / "media"
    (media / "sub").mkdir(parents=True)
    (media / "clips").symlink_to(tmp_path / "disk2" / "clips")
    (media / "sub" / "up").symlink_to(media)
    (media / "out").symlink_to(tmp_path)
    (tmp_path / "disk2" / "clips" / "round").symlink_to(tmp_path / "disk2")
    assert found(media, "ID") == "clips/ID.mp4"
    assert sorted(walk(media)) == [("clips", "ID.mp4")]


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a\0b", "..\\b", ""])
def test_names_that_lead_out_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(EscapesRoot):
        MediaFolder(tmp_path).find(name)
