"""Where two pictures differ."""

import numpy as np
import pytest

from twinset.contracts.kinds.samples import Pixels
from twinset_extras.comparison import Box, regions


def picture(*places: tuple[int, int, int, int]) -> Pixels:
    """Noise of some levels, with rectangles (left, top, width, height) of another colour."""
    pixels = np.random.default_rng(0).integers(100, 108, (90, 120, 3), dtype=np.uint8)
    for left, top, width, height in places:
        pixels[top : top + height, left : left + width] = 160
    return pixels


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        ([], []),
        ([(0, 0, 10, 10), (80, 50, 40, 40)], [Box(80, 50, 40, 40), Box(0, 0, 10, 10)]),
        ([(10, 20, 10, 10), (24, 20, 10, 10)], [Box(10, 20, 24, 10)]),  # four pixels apart
        ([(10, 10, 60, 4), (10, 10, 4, 60), (40, 40, 12, 12)], [Box(10, 10, 60, 60)]),  # within the frame of an L
        ([(10, 20, 1, 1)], []),
    ],
)
def test_regions(places: list[tuple[int, int, int, int]], expected: list[Box]) -> None:
    assert regions(picture(), picture(*places), 12, 2) == expected
    assert regions(picture(*places), picture(), 12, 2) == expected


def test_a_box_grows_within_its_picture() -> None:
    assert Box(50, 40, 10, 10).at_least(20, 120, 90) == Box(45, 35, 20, 20)
    assert Box(0, 85, 10, 5).at_least(20, 120, 90) == Box(0, 70, 20, 20)
    assert Box(5, 5, 40, 8).at_least(500, 120, 90) == Box(0, 0, 120, 90)
