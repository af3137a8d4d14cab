"""Whole files have no broken place, damaged ones have it where the damage is."""

from pathlib import Path

import pytest

from tests.generators.video.numbered_videos import make_video
from twinset.generators.video.container.video_file import VideoFile, broken_places

CLIPS = Path(__file__).parents[3] / "../shared/data/videos"
KINDS = {
    "matroska,webm": ("a.mkv", "libx264"),
    "webm": ("a.webm", "libvpx"),
    "avi": ("a.avi", "mpeg4"),
    "mpegts": ("a.ts", "libx264"),
}


def broken(path: Path) -> list[int]:
    with VideoFile(path) as file:
        return broken_places(path, file.container.format.name)


@pytest.mark.parametrize("name", KINDS)
def test_broken_places(name: str, tmp_path: Path) -> None:
    file, codec = KINDS[name]
    path = make_video(tmp_path / file, count=100, codec=codec, options={"g": "10"})
    assert broken(path) == []
    data = bytearray(path.read_bytes())
    start, end = len(data) // 2, len(data) // 2 + 6000
    path.write_bytes(data[:start] + bytes(end - start) + data[end:])
    found = broken(path)
    assert found and all(start <= place < end for place in found)


def test_other_formats_are_not_examined(tmp_path: Path) -> None:
    assert broken(make_video(tmp_path / "a.mp4")) == []


@pytest.mark.skipif(not CLIPS.is_dir(), reason="no ../shared/data/videos beside this checkout")
def test_real_clips_are_whole() -> None:
    assert {path.name: places for path in sorted(CLIPS.iterdir()) if (places := broken(path))} == {}
