"""Near-identical twins: two frames that hardly differ cannot show the change that their captions tell of.

Opt-in: no paper asks for it. Integers only, so that the verdict is the same on every machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from twinset.contracts.kinds.pair import Pair
from twinset.contracts.kinds.samples import Drop, Keep, Pixels, Verdict
from twinset.contracts.parts import Filter, PairFilter

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


class NearIdentical(Filter):
    """Drops pairs whose two frames hardly differ.

    threshold: least mean absolute difference of the two frames, in grey levels (0-255), at 64 x 64 pixels.
    """

    kind: Literal["near-identical"]
    threshold: float = Field(default=2.0, ge=0, le=255)

    judges = "pairs"
    reasons: ClassVar[Mapping[str, str]] = {"near-identical": "the two frames hardly differ"}

    def open(self) -> NearIdenticalFilter:
        return NearIdenticalFilter(self)


class NearIdenticalFilter(PairFilter):
    """Drops pairs whose frames differ by less than ``threshold``; its score is `difference`."""

    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ("numpy",)

    def __init__(self, settings: NearIdentical) -> None:
        self.threshold = settings.threshold

    def __call__(self, samples: Sequence[Pair]) -> list[Verdict]:
        # Frames are shared by many pairs of a video.
        frames = {frame.id: frame for sample in samples for frame in (sample.image0, sample.image1)}
        thumbnails = {name: thumbnail(frame.pixels) for name, frame in frames.items()}
        scores = [difference(thumbnails[sample.image0.id], thumbnails[sample.image1.id]) for sample in samples]
        return [Drop("near-identical", score) if score < self.threshold else Keep() for score in scores]
