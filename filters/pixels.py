"""Filters of pixels: blank frames, twins that hardly differ, twins of two scenes.

Opt-in: no paper asks for them. They compute with integers, so that the verdict is the same on every machine.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from math import sqrt
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from twinset.contracts.kinds.pair import Pair
from twinset.contracts.kinds.samples import Drop, Frame, Keep, Pixels, Verdict
from twinset.contracts.parts import Filter
from twinset.contracts.source import Need
from twinset.models.device import check_opencv

LEVELS = np.arange(256)


def contrast(pixels: Pixels) -> float:
    """Standard deviation of the channel that varies most, in grey levels (0-127.5); (height, width, 3) uint8."""
    largest = 0.0
    for channel in range(pixels.shape[2]):
        counts = np.bincount(pixels[..., channel].ravel(), minlength=256)
        count, total, squares = int(counts.sum()), int(counts @ LEVELS), int(counts @ LEVELS**2)
        largest = max(largest, sqrt(count * squares - total * total) / count)
    return largest


class Blank(Filter):
    """Drops frames that are black, white or of one colour, as between two scenes or before a title.

    contrast: least standard deviation, in grey levels (0-255).
    """

    kind: Literal["blank"]
    contrast: float = Field(default=4.0, ge=0, le=128)

    version: ClassVar[int] = 1
    libraries = ("numpy",)
    judges = "frames"
    reasons: ClassVar[Mapping[str, str]] = {"blank": "a frame is black, white or of one colour"}

    def judge(self, frames: Sequence[Frame]) -> list[Verdict]:
        """The score of a frame that is dropped is its `contrast`."""
        contrasts = [contrast(frame.pixels) for frame in frames]
        return [Drop("blank", value) if value < self.contrast else Keep() for value in contrasts]


class TwinFilter(Filter):
    """A base of filters that reduce each frame once, since pairs of a video share frames, and compare two of them."""

    version: ClassVar[int] = 1
    judges = "pairs"

    @abstractmethod
    def reduced(self, pixels: Pixels) -> NDArray[np.int64]:
        """What is compared of a frame."""

    @abstractmethod
    def verdict(self, first: NDArray[Any], second: NDArray[Any]) -> Verdict:
        """On two reduced frames."""

    def judge(self, pairs: Sequence[Pair]) -> list[Verdict]:
        frames = {frame.id: frame for pair in pairs for frame in (pair.image0, pair.image1)}
        reduced = {name: self.reduced(frame.pixels) for name, frame in frames.items()}
        return [self.verdict(reduced[pair.image0.id], reduced[pair.image1.id]) for pair in pairs]


SIDE = 64
PARTS = 256  # of a grey level, so that the mean of a cell keeps its fraction


def thumbnail(pixels: Pixels) -> NDArray[np.int64]:
    """Means of a 64 x 64 grid of cells, in 1/256 grey levels: (height, width, 3) uint8 to (64, 64, 3)."""
    height, width = pixels.shape[:2]
    rows, columns = np.arange(SIDE) * height // SIDE, np.arange(SIDE) * width // SIDE
    sums = np.add.reduceat(np.add.reduceat(pixels, rows, axis=0, dtype=np.int64), columns, axis=1)
    # Where a frame has fewer than 64 rows or columns, reduceat takes the same one for several cells.
    heights = np.maximum(np.diff(rows, append=height), 1)
    widths = np.maximum(np.diff(columns, append=width), 1)
    means: NDArray[np.int64] = sums * PARTS // (heights[:, None, None] * widths[None, :, None])
    return means


def difference(first: NDArray[np.int64], second: NDArray[np.int64]) -> float:
    """Mean absolute difference of two thumbnails over cells and colour channels, in grey levels (0-255)."""
    return int(np.abs(first - second).sum()) / (first.size * PARTS)


class NearIdentical(TwinFilter):
    """Drops pairs whose two frames hardly differ: they cannot show the change that their captions tell of.

    threshold: least mean absolute difference of the two frames, in grey levels (0-255), at 64 x 64 pixels.
    """

    kind: Literal["near-identical"]
    threshold: float = Field(default=2.0, ge=0, le=255)

    libraries = ("numpy",)
    reasons: ClassVar[Mapping[str, str]] = {"near-identical": "the two frames hardly differ"}

    def reduced(self, pixels: Pixels) -> NDArray[np.int64]:
        return thumbnail(pixels)

    def verdict(self, first: NDArray[np.int64], second: NDArray[np.int64]) -> Verdict:
        score = difference(first, second)
        return Drop("near-identical", score) if score < self.threshold else Keep()


# Coarse enough that noise stays in its bin: on the real clips of the tests frames of two scenes mostly share less than
# 0.3 of these bins, frames of one scene more.
HUE_BINS, SATURATION_BINS = 18, 16
HUES, SATURATIONS = 180, 256  # OpenCV's 8-bit ranges


def histogram(pixels: Pixels) -> NDArray[np.int64]:
    """How many pixels have each of 18 x 16 hues and saturations: (height, width, 3) uint8 RGB to (288,)."""
    import cv2

    hsv = cv2.cvtColor(pixels, cv2.COLOR_RGB2HSV)
    hue = hsv[..., 0] // (HUES // HUE_BINS)
    saturation = hsv[..., 1] // (SATURATIONS // SATURATION_BINS)
    bins = hue.astype(np.intp) * SATURATION_BINS + saturation
    return np.bincount(bins.ravel(), minlength=HUE_BINS * SATURATION_BINS)


def similarity(first: NDArray[np.int64], second: NDArray[np.int64]) -> float:
    """Intersection of two histograms as shares of their frames: 0 nothing in common, 1 equal."""
    pixels0, pixels1 = int(first.sum()), int(second.sum())
    return int(np.minimum(first * pixels1, second * pixels0).sum()) / (pixels0 * pixels1)


class SceneCut(TwinFilter):
    """Drops pairs whose twins come from two different scenes: they differ in everything, not in one thing.

    similarity: least intersection of the two hue-saturation histograms (0 none, 1 equal).
    """

    kind: Literal["scene-cut"]
    similarity: float = Field(default=0.3, ge=0, le=1)

    libraries = ("numpy", "opencv-python")
    reasons: ClassVar[Mapping[str, str]] = {"scene-cut": "the two frames come from different scenes"}

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        if "models" in needs:
            check_opencv(key)

    def reduced(self, pixels: Pixels) -> NDArray[np.int64]:
        return histogram(pixels)

    def verdict(self, first: NDArray[np.int64], second: NDArray[np.int64]) -> Verdict:
        score = similarity(first, second)
        return Drop("scene-cut", score) if score < self.similarity else Keep()
