"""Filters of pixels: blank frames, twins that hardly differ, twins of two scenes.

Opt-in: no paper asks for them. Thumbnails and histograms are whole numbers, the same on every machine.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from pydantic import Field

from twinset.contracts.kinds.pair import Pair
from twinset.contracts.kinds.samples import Drop, Frame, Keep, Pixels, Verdict
from twinset.contracts.parts import Filter
from twinset.contracts.source import Need
from twinset.models.device import check_opencv


def contrast(pixels: Pixels) -> float:
    """Standard deviation of the channel that varies most, in grey levels (0-127.5); (height, width, 3) uint8."""
    return float(pixels.std(axis=(0, 1)).max())


class Blank(Filter):
    """Drops frames that are black, white or of one colour, as between two scenes or before a title.

    contrast: least standard deviation, in grey levels (0-255).
    """

    kind: Literal["blank"]
    contrast: float = Field(default=4.0, ge=0, le=128)

    version: ClassVar[int] = 2
    libraries = ("numpy",)
    judges = "frames"
    reasons: ClassVar[Mapping[str, str]] = {"blank": "a frame is black, white or of one colour"}

    def judge(self, frames: Sequence[Frame]) -> list[Verdict]:
        """The score of a frame that is dropped is its `contrast`."""
        contrasts = [contrast(frame.pixels) for frame in frames]
        return [Drop("blank", value) if value < self.contrast else Keep() for value in contrasts]


def reduced(pairs: Sequence[Pair], reduce: Callable[[Pixels], NDArray[Any]]) -> list[tuple[NDArray[Any], NDArray[Any]]]:
    """What is compared of both frames of each pair; a frame is reduced once, since pairs of a video share frames."""
    frames = {frame.id: frame for pair in pairs for frame in (pair.image0, pair.image1)}
    each = {name: reduce(frame.pixels) for name, frame in frames.items()}
    return [(each[pair.image0.id], each[pair.image1.id]) for pair in pairs]


def thumbnail(pixels: Pixels) -> NDArray[np.int64]:
    """Means of a 64 x 64 grid of cells in grey levels: (height, width, 3) uint8 to (64, 64, 3)."""
    small = Image.fromarray(pixels).resize((64, 64), Image.Resampling.BOX)
    return np.asarray(small, np.int64)


def difference(first: NDArray[np.int64], second: NDArray[np.int64]) -> float:
    """Mean absolute difference of two thumbnails over cells and colour channels, in grey levels (0-255)."""
    return float(np.abs(first - second).mean())


class NearIdentical(Filter):
    """Drops pairs whose two frames hardly differ: they cannot show the change that their captions describe.

    threshold: least mean absolute difference of the two frames, in grey levels (0-255), at 64 x 64 pixels.
    """

    kind: Literal["near-identical"]
    threshold: float = Field(default=2.0, ge=0, le=255)

    version: ClassVar[int] = 2
    judges = "pairs"
    libraries = ("numpy", "pillow")
    reasons: ClassVar[Mapping[str, str]] = {"near-identical": "the two frames hardly differ"}

    def judge(self, pairs: Sequence[Pair]) -> list[Verdict]:
        scores = [difference(*thumbnails) for thumbnails in reduced(pairs, thumbnail)]
        return [Drop("near-identical", score) if score < self.threshold else Keep() for score in scores]


# Coarse enough that noise stays in its bin: on the real clips of the tests frames of two scenes mostly share less than
# 0.3 of these bins, frames of one scene more.
BINS = [18, 16]  # of hue and saturation


def histogram(pixels: Pixels) -> NDArray[np.int64]:
    """How many pixels have each of 18 x 16 hues and saturations: (height, width, 3) uint8 RGB to (18, 16)."""
    import cv2

    hsv = cv2.cvtColor(pixels, cv2.COLOR_RGB2HSV)  # 8-bit hues end at 180
    return cv2.calcHist([hsv], [0, 1], None, BINS, [0, 180, 0, 256]).astype(np.int64)


def similarity(first: NDArray[np.int64], second: NDArray[np.int64]) -> float:
    """Intersection of two histograms as shares of their frames: 0 nothing in common, 1 equal."""
    pixels0, pixels1 = int(first.sum()), int(second.sum())
    return int(np.minimum(first * pixels1, second * pixels0).sum()) / (pixels0 * pixels1)


class SceneCut(Filter):
    """Drops pairs whose twins come from two different scenes: they differ in everything, not in one thing.

    similarity: least intersection of the two hue-saturation histograms (0 none, 1 equal).
    """

    kind: Literal["scene-cut"]
    similarity: float = Field(default=0.3, ge=0, le=1)

    version: ClassVar[int] = 1
    judges = "pairs"
    libraries = ("numpy", "opencv-python")
    reasons: ClassVar[Mapping[str, str]] = {"scene-cut": "the two frames come from different scenes"}

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        if "models" in needs:
            check_opencv(key)

    def judge(self, pairs: Sequence[Pair]) -> list[Verdict]:
        scores = [similarity(*histograms) for histograms in reduced(pairs, histogram)]
        return [Drop("scene-cut", score) if score < self.similarity else Keep() for score in scores]
