"""Drift: editors are known to zoom and to shift; then twins differ everywhere, not in one thing.

Nothing says where a pair may differ, so both figures are estimates. Opt-in: no paper asks for it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from twinset.contracts.kinds.pair import Pair
from twinset.contracts.kinds.samples import Drop, Keep, Verdict
from twinset.contracts.parts import Filter
from twinset.contracts.source import Need
from twinset.models.device import check_opencv
from twinset_extras.comparison import shifts, tile_differences

STILL = 0.75  # of the textured tiles, which must not have moved: the change may be in the others


class Drift(Filter):
    """Drops pairs whose second image has moved, is zoomed, or differs from the first one in most of it.

    shift: most pixels that three quarters of the textured tiles of 64 x 64 may have moved.
    difference: most mean difference of colours (0-255) in the half of the tiles of 32 x 32 that differ least.
    """

    kind: Literal["drift"]
    shift: float = Field(default=1.0, ge=0, le=32)
    difference: float = Field(default=5.0, ge=0, le=255)

    version: ClassVar[int] = 1
    libraries = ("numpy", "opencv-python")
    judges = "pairs"
    reasons: ClassVar[Mapping[str, str]] = {
        "other-size": "the two images have different sizes",
        "moved": "the second image has moved, or is zoomed; its score is a number of pixels",
        "changed-elsewhere": "the images differ in most of the picture; its score is a difference of colours (0-255)",
    }

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        if "media" in needs:
            check_opencv(key)

    def judge(self, pairs: Sequence[Pair]) -> list[Verdict]:
        return [self._verdict(pair) for pair in pairs]

    def _verdict(self, sample: Pair) -> Verdict:
        first, second = sample.image0.pixels, sample.image1.pixels
        if first.shape != second.shape:
            return Drop("other-size")
        tile_shifts = shifts(first, second)
        known = tile_shifts[~np.isnan(tile_shifts)]  # what changed is not found again
        moved = round(float(np.quantile(known, STILL)), 1) if len(known) else 0.0
        if moved > self.shift:
            return Drop("moved", moved)
        apart = np.sort(tile_differences(first, second))
        rest = round(float(apart[: (len(apart) + 1) // 2].mean()), 3)
        return Drop("changed-elsewhere", rest) if rest > self.difference else Keep()
