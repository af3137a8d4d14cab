"""Cropping one object out of its image, with some of what is around it (GeneCIS, A.2)."""

from typing import Literal

import numpy as np

from twinset.generators.galleries.vaw import Box
from twinset.shards.kinds.samples import Pixels

DILATION = 0.7

Crops = Literal["corrected", "published"]


class OutsideImage(Exception):
    """A box of which nothing lies in its image."""


def crop(pixels: Pixels, box: Box, how: Crops) -> Pixels:
    """The object in ``box`` (x, y, width, height; pixels) and its surroundings, padded to a square with zeros.

    pixels: (height, width, 3); the crop is (side, side, 3), the object's picture in the middle. Both ways make the
    box 1.7 times as wide and as high, cut it off at the image, and keep the aspect ratio.

    ``published``: as the released evaluation does: by 0.7 of width and height to the left and the top; right and bottom
    are then 1.7 times the size from the new corner, which is cut off first. So nothing is seen to the right of and
    below an object that is far from the border.
    ``corrected``: the same size around the same centre, 0.35 on each side, which is what "dilate the box by a factor of
    0.7 in height and width" to give context says; the factor was chosen for the size, so the size stays.

    Raises `OutsideImage`.
    """
    height, width = pixels.shape[:2]
    left, right = _span(box[0], box[2], width, how)
    top, bottom = _span(box[1], box[3], height, how)
    if right <= left or bottom <= top:
        shown = ", ".join(f"{number:g}" for number in box)
        raise OutsideImage(f"box [{shown}] has no pixel in an image of {width} x {height}")
    cut = pixels[top:bottom, left:right]
    side = max(cut.shape[:2])
    y, x = (side - cut.shape[0]) // 2, (side - cut.shape[1]) // 2
    return np.pad(cut, ((y, side - cut.shape[0] - y), (x, side - cut.shape[1] - x), (0, 0)))


def _span(start: float, length: float, limit: int, how: Crops) -> tuple[int, int]:
    """First pixel and the one after the last, along one side; rounded as Pillow does, half to even."""
    if not (start < limit and start + length > 0):
        return 0, 0  # though its surroundings may be seen, the object is not
    if how == "published":
        first = max(0.0, start - DILATION * length)
        last = min(float(limit), first + (1 + DILATION) * length)
    else:
        first = max(0.0, start - DILATION / 2 * length)
        last = min(float(limit), start + (1 + DILATION / 2) * length)
    return round(first), round(last)
