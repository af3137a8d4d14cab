"""Blank frames: black, white or of one colour, as between two scenes or before a title.

Opt-in: no paper asks for it. Integers until the last square root, so that the verdict is the same on every machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from twinset.contracts.kinds.samples import Drop, Frame, Keep, Pixels, Verdict
from twinset.contracts.parts import Filter

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
    """Drops frames that are black, white or of one colour.

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
