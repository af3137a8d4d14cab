"""Of several video streams ffmpeg's is taken: Action Genome's frame numbers are those of an ffmpeg dump."""

import shutil
import subprocess
from pathlib import Path

import av
import numpy as np
import pytest
from av.stream import Disposition

from twinset.generators.video.container.video_file import VideoFile

SMALL, LARGE = (64, 48), (128, 96)
# Sizes, frames and default flags of the streams, and which one ffmpeg 4.2.2 took.
CHOICES = {
    "larger": ("a.mkv", [SMALL, LARGE], [30, 30], [False, False], 1),
    "first-of-equals": ("a.mkv", [SMALL, SMALL], [30, 30], [False, False], 0),
    "length-does-not-count": ("a.mkv", [SMALL, SMALL], [3, 30], [False, False], 0),
    "default-before-larger": ("a.mkv", [SMALL, LARGE], [30, 30], [True, False], 0),
    "larger-default": ("a.mkv", [SMALL, LARGE], [30, 30], [True, True], 1),
    "first-track-of-mp4-is-default": ("a.mp4", [SMALL, LARGE], [30, 30], [False, False], 0),
    "default-of-mp4": ("a.mp4", [LARGE, SMALL], [30, 30], [False, True], 1),
}


def make(path: Path, sizes: list[tuple[int, int]], counts: list[int], default: list[bool]) -> Path:
    with av.open(str(path), "w") as container:
        streams = [container.add_stream("libx264", rate=25) for _ in sizes]
        for stream, size, flag in zip(streams, sizes, default, strict=True):
            (stream.width, stream.height), stream.pix_fmt = size, "yuv420p"
            stream.disposition = Disposition.default if flag else Disposition(0)
        for n in range(max(counts)):
            for stream, count in zip(streams, counts, strict=True):
                if n < count:
                    picture = np.full((stream.height, stream.width, 3), n, np.uint8)
                    container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        for stream in streams:
            container.mux(stream.encode())
    return path


@pytest.mark.parametrize("name", CHOICES)
def test_the_stream_that_ffmpeg_chooses_is_read(name: str, tmp_path: Path) -> None:
    file, sizes, counts, default, chosen = CHOICES[name]
    with VideoFile(make(tmp_path / file, sizes, counts, default)) as video:
        assert video.stream.index == chosen


def test_a_title_that_is_not_utf_8_is_no_reason_to_refuse_a_video(tmp_path: Path) -> None:
    path = tmp_path / "titled.mp4"
    with av.open(str(path), "w") as container:
        container.metadata["title"] = "a-title"
        stream = container.add_stream("mpeg4", rate=25)
        (stream.width, stream.height), stream.pix_fmt = SMALL, "yuv420p"
        picture = np.zeros((SMALL[1], SMALL[0], 3), np.uint8)
        container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode())
    whole = path.read_bytes()
    assert whole.count(b"a-title") == 1
    path.write_bytes(whole.replace(b"a-title", b"\xff\xfetitle"))
    with VideoFile(path) as video:
        assert video.stream.width == SMALL[0]


@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="no ffmpeg on this machine; its recorded choices are tested")
@pytest.mark.parametrize("name", CHOICES)
def test_the_choices_are_those_of_the_ffmpeg_of_this_machine(name: str, tmp_path: Path) -> None:
    file, sizes, counts, default, chosen = CHOICES[name]
    path = make(tmp_path / file, sizes, counts, default)
    command = ["ffmpeg", "-nostdin", "-i", str(path), "-f", "null", "-"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    assert f"Stream #0:{chosen}" in next(line for line in said.splitlines() if "->" in line)
