"""Scene cuts: twins from two different scenes differ in everything, not in one thing.

Opt-in: no paper asks for it. Histograms are compared as integers, so that the verdict is the same on every machine.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from twinset.contracts.kinds.pair import Pair
from twinset.contracts.kinds.samples import Drop, Keep, Pixels, Verdict
from twinset.contracts.parts import Filter, PairFilter
from twinset.contracts.source import Need
from twinset.models.device import check_opencv

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


class SceneCut(Filter):
    """Drops pairs whose twins come from two different scenes.

    similarity: least intersection of the two hue-saturation histograms (0 none, 1 equal).
    """

    kind: Literal["scene-cut"]
    similarity: float = Field(default=0.3, ge=0, le=1)

    judges = "pairs"
    reasons: ClassVar[Mapping[str, str]] = {"scene-cut": "the two frames come from different scenes"}

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        if "models" in needs:
            check_opencv(key)

    def open(self) -> SceneCutFilter:
        return SceneCutFilter(self)


class SceneCutFilter(PairFilter):
    """Drops pairs of less than ``similarity``; its score is `similarity`."""

    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ("numpy", "opencv-python")

    def __init__(self, settings: SceneCut) -> None:
        self.least = settings.similarity

    def __call__(self, samples: Sequence[Pair]) -> list[Verdict]:
        # Frames are shared by many pairs of a video.
        frames = {frame.id: frame for sample in samples for frame in (sample.image0, sample.image1)}
        histograms = {name: histogram(frame.pixels) for name, frame in frames.items()}
        scores = [similarity(histograms[sample.image0.id], histograms[sample.image1.id]) for sample in samples]
        return [Drop("scene-cut", score) if score < self.least else Keep() for score in scores]
