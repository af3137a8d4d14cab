"""What the tests of video decoding compare: frames at addresses, and digests of all frames decoded in order."""

import hashlib
from functools import cache
from pathlib import Path

import numpy as np

from twinset.generators.video.decoding import upright_rgb
from twinset.generators.video.frames import VideoFrame, read_frames
from twinset.generators.video.video_file import VideoFile


def taken(path: Path, addresses: list[float], addressing: str = "seconds") -> list[VideoFrame]:
    found = read_frames(path, addresses, addressing)  # type: ignore[arg-type]
    frames = [found[at] for at in addresses]
    assert all(isinstance(frame, VideoFrame) for frame in frames), frames
    return frames  # type: ignore[return-value]


@cache
def sequential(path: Path) -> list[str]:
    """Digest of every frame, decoded one after the other."""
    with VideoFile(path) as file:
        return [digest(upright_rgb(frame)) for _, frame in file.decode(file.packets())]


def digest(pixels: np.ndarray) -> str:
    return hashlib.sha256(pixels.tobytes()).hexdigest()
