"""How far two pictures of one size are from each other: registration shift, structural similarity, differences.

Figures are rounded, so that they are the same whatever instructions of the processor OpenCV takes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twinset.contracts.kinds.samples import Pixels

Bools = NDArray[np.bool_]
TILE = 64  # pixels of a side: what is looked for in the other picture
RADIUS = 8  # pixels around it
SMALL_TILE = 32
TEXTURE = 8.0  # standard deviation of grey levels in a tile, below which noise alone would be matched
CLOSER = 0.64  # of the squared difference in place that a match elsewhere must have
UNKNOWN = -1.0


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle of whole pixels."""

    left: int
    top: int
    width: int
    height: int

    @property
    def area(self) -> int:
        """In pixels."""
        return self.width * self.height

    def overlaps(self, box: Box) -> bool:
        """Whether a pixel is in both."""
        across = max(self.left, box.left) < min(self.left + self.width, box.left + box.width)
        return across and max(self.top, box.top) < min(self.top + self.height, box.top + box.height)

    def around(self, boxes: Sequence[Box]) -> Box:
        """The smallest box that holds this one and others."""
        every = (self, *boxes)
        left, top = min(box.left for box in every), min(box.top for box in every)
        right, bottom = max(box.left + box.width for box in every), max(box.top + box.height for box in every)
        return Box(left, top, right - left, bottom - top)

    def at_least(self, side: int, width: int, height: int) -> Box:
        """The box grown to ``side`` pixels each way, as far as a picture of that width and height has them."""
        wide, high = min(max(self.width, side), width), min(max(self.height, side), height)
        left = min(max(self.left - (wide - self.width) // 2, 0), width - wide)
        top = min(max(self.top - (high - self.height) // 2, 0), height - high)
        return Box(left, top, wide, high)


@dataclass(frozen=True, slots=True)
class Likeness:
    """Of two pictures where they are compared.

    ssim: mean structural similarity of grey levels (Wang et al. 2004: Gaussian window of 11 pixels, sigma 1.5).
    difference: mean absolute difference of colour channels, in levels (0-255). worst: that of the tile of 32 x 32
    pixels, at least half of which is compared, where it is largest. All are `UNKNOWN` where nothing is compared.
    """

    ssim: float
    difference: float
    worst: float


def box_of(mask: Bools) -> Box:
    """The smallest box that holds a mask, which must not be empty."""
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    left, top = int(columns[0]), int(rows[0])
    return Box(left, top, int(columns[-1]) + 1 - left, int(rows[-1]) + 1 - top)


def grown(mask: Bools, pixels: int) -> Bools:
    """A mask with all that is at most that far from it, diagonals too."""
    import cv2

    kernel = np.ones((2 * pixels + 1, 2 * pixels + 1), np.uint8)
    return np.asarray(cv2.dilate(mask.astype(np.uint8), kernel), np.bool_)


def differences(first: Pixels, second: Pixels) -> NDArray[np.float64]:
    """(height, width) mean absolute difference over colour channels, in levels."""
    return np.asarray(np.abs(first.astype(np.int16) - second).sum(axis=2) / 3)


def likeness(first: Pixels, second: Pixels, where: Bools) -> Likeness:
    """How alike two pictures are; where: (height, width) what is compared."""
    if not where.any():
        return Likeness(UNKNOWN, UNKNOWN, UNKNOWN)
    apart = differences(first, second)
    tiles = [
        float(apart[tile][inside].mean())
        for tile in _tiles(where.shape, SMALL_TILE)
        if 2 * (inside := where[tile]).sum() >= inside.size
    ]
    mean = float(apart[where].mean())
    return Likeness(
        round(float(_ssim(first, second)[where].mean()), 4), round(mean, 3), round(max(tiles, default=mean), 3)
    )


def tile_differences(first: Pixels, second: Pixels) -> NDArray[np.float64]:
    """The mean difference of each tile of 32 x 32 pixels."""
    apart = differences(first, second)
    return np.array([apart[tile].mean() for tile in _tiles(apart.shape, SMALL_TILE)])


def regions(first: Pixels, second: Pixels, threshold: float, grain: int, least: float = 1) -> list[Box]:
    """Where two pictures of one size differ, as boxes that do not overlap, the largest first.

    Args:
        first, second: (height, width, 3) uint8 RGB.
        threshold: mean difference of colour channels (0-255) from which a window counts, and a pixel in it.
        grain: pixels of the window's radius; what is at most twice as far apart is one region.
        least: pixels that a box has.
    """
    import cv2

    total = np.abs(first.astype(np.int16) - second).sum(axis=2)
    side = 2 * grain + 1
    # Sums of whole numbers, which are exact: the same whatever instructions of the processor OpenCV takes.
    sums = cv2.boxFilter(total.astype(np.float64), -1, (side, side), normalize=False, borderType=cv2.BORDER_REPLICATE)
    near = np.asarray(sums >= threshold * 3 * side * side)
    count, labels = cv2.connectedComponents(grown(near, grain).astype(np.uint8))
    rows, columns = np.nonzero(near & (total >= threshold * 3))
    of = np.asarray(labels[rows, columns], np.intp)
    first_of, last_of = np.full((2, count), labels.size), np.full((2, count), -1)
    for axis, at in enumerate((columns, rows)):
        np.minimum.at(first_of[axis], of, at)
        np.maximum.at(last_of[axis], of, at)
    edges = zip(*first_of.tolist(), *(last_of - first_of + 1).tolist(), strict=True)
    boxes = [Box(*edge) for edge, last in zip(edges, last_of[0], strict=True) if last >= 0]
    boxes = [box for box in boxes if box.area >= least]  # few, so that they can be compared with each other
    return sorted(_apart(boxes), key=lambda box: (-box.area, box.top, box.left))


def _apart(boxes: list[Box]) -> list[Box]:
    """Boxes of which those that overlap are one, until none do."""
    apart: list[Box] = []
    for box in boxes:
        while overlapping := [kept for kept in apart if kept.overlaps(box)]:
            apart = [kept for kept in apart if kept not in overlapping]
            box = box.around(overlapping)
        apart.append(box)
    return apart


def shifts(first: Pixels, second: Pixels, where: Bools | None = None) -> NDArray[np.float64]:
    """How many pixels each textured tile of 64 x 64 has moved, at most some `RADIUS`; a zoom moves the outer ones most.

    The middle of a tile is looked for in the other picture by the sum of squared differences, which unlike phase
    correlation finds soft shapes too. NaN where it is not found again. where: only tiles wholly in it.
    """
    import cv2

    greys = [cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY) for picture in (first, second)]
    moved = []
    for tile in _tiles(greys[0].shape, TILE, whole=True):
        middle = greys[0][tile][RADIUS:-RADIUS, RADIUS:-RADIUS]
        texture = float(middle.std())
        if texture < TEXTURE or (where is not None and not where[tile].all()):
            continue
        apart = np.asarray(cv2.matchTemplate(greys[1][tile], middle, cv2.TM_SQDIFF), np.float64) / middle.size
        down, right = divmod(int(apart.argmin()), apart.shape[1])
        if apart[down, right] >= CLOSER * apart[RADIUS, RADIUS]:
            moved.append(0.0 if apart[RADIUS, RADIUS] < texture**2 else math.nan)
        else:
            at = down + _vertex(apart[:, right], down) - RADIUS, right + _vertex(apart[down], right) - RADIUS
            moved.append(round(math.hypot(*at), 1))
    return np.array(moved)


def _vertex(values: NDArray[np.float64], at: int) -> float:
    """How far the lowest point of the parabola through a smallest value and its neighbours lies from it."""
    if not 0 < at < len(values) - 1:
        return 0.0
    before, here, after = (float(value) for value in values[at - 1 : at + 2])
    bend = before - 2 * here + after
    return 0.5 * (before - after) / bend if bend > 0 else 0.0


def _tiles(shape: tuple[int, ...], side: int, whole: bool = False) -> Iterator[tuple[slice, slice]]:
    """Tiles of a picture, row by row; those at its right and lower border may be smaller unless they must be whole."""
    height, width = shape[:2]
    less = side - 1 if whole else 0
    for top in range(0, height - less, side):
        for left in range(0, width - less, side):
            yield slice(top, top + side), slice(left, left + side)


def _ssim(first: Pixels, second: Pixels) -> NDArray[np.float64]:
    import cv2

    def smooth(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(cv2.GaussianBlur(values, (11, 11), 1.5))

    grey0, grey1 = (cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY).astype(np.float64) for pixels in (first, second))
    mean0, mean1 = smooth(grey0), smooth(grey1)
    var0, var1 = smooth(grey0 * grey0) - mean0**2, smooth(grey1 * grey1) - mean1**2
    covariance = smooth(grey0 * grey1) - mean0 * mean1
    c1, c2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2
    # (2 m0 m1 + c1)(2 cov + c2) / ((m0^2 + m1^2 + c1)(var0 + var1 + c2))
    top = (2 * mean0 * mean1 + c1) * (2 * covariance + c2)
    return np.asarray(top / ((mean0**2 + mean1**2 + c1) * (var0 + var1 + c2)))
