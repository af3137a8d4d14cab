"""Decoded video frames as upright RGB arrays, the same bytes on every processor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import av
import numpy as np
from av.buffer import Buffer
from av.video.reformatter import Interpolation, VideoReformatter
from numpy.typing import NDArray

from shards.kinds.samples import Pixels

# Without these flags swscale takes shortcuts that differ with the CPU's instruction set (measured: the mean level of
# a frame by 0.5 between AVX2 and plain C). With them all paths agree bit for bit, and chroma is interpolated.
EXACT = Interpolation.BICUBIC | Interpolation.ACCURATE_RND | Interpolation.BITEXACT | Interpolation.FULL_CHR_H_INT


class RgbConverter:
    """Converts frames of one video; swscale is set up once."""

    def __init__(self) -> None:
        self._reformatter = VideoReformatter()

    def __call__(self, frame: av.VideoFrame) -> Pixels:
        """(height, width, 3) uint8 RGB, full range, turned as the frame's display matrix says.

        Matrix and range are the stream's own; as in ffmpeg, BT.601 where it names none. Raises `av.FFmpegError` for
        pixel formats that swscale cannot read.
        """
        rgb = self._reformatter.reformat(frame, format="rgb24", interpolation=EXACT, threads=1)
        pixels: Pixels = np.asarray(rgb.to_ndarray(), dtype=np.uint8)
        # PyAV's annotation knows of motion vectors only.
        matrix = cast(Mapping[str, Buffer], frame.side_data).get("DISPLAYMATRIX")
        return pixels if matrix is None else turned(pixels, np.frombuffer(bytes(matrix), np.int32).reshape(3, 3))


def turned(pixels: Pixels, matrix: NDArray[np.int32]) -> Pixels:
    """Apply a display matrix (3 × 3, libavutil's layout: x' = m00 x + m10 y, y' = m01 x + m11 y) to an image.

    Quarter turns and mirrors, which is all that cameras write; any other angle goes to the nearest of these.
    """
    (a, b), (c, d) = (int(value) for value in matrix[0, :2]), (int(value) for value in matrix[1, :2])
    if abs(b) + abs(c) > abs(a) + abs(d):
        pixels = pixels.transpose(1, 0, 2)
        across, down = c, b
    else:
        across, down = a, d
    if across < 0:
        pixels = pixels[:, ::-1]
    if down < 0:
        pixels = pixels[::-1]
    return np.ascontiguousarray(pixels)
