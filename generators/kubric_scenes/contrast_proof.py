"""Proof that objects stand out from what is around and beneath them: a black pan on a black keyboard does not.

EqBen (section B.4) has no such rule. Colours are compared along an object's outline, where a viewer tells it from the
rest, and not as a whole: what is patterned has the colour of its ground in places.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import cv2
import numpy as np
from numpy.typing import NDArray

from twinset.generators.kubric_scenes.proof import Instance, Refuted
from twinset.generators.kubric_scenes.scene.parts import Picture

STRIP = 0.016  # of the picture's width: how far to either side of an outline colours are averaged
TOLD_APART = 10.0  # CIELAB ΔE*ab (CIE 1976) between the two sides of an outline, from which it is seen
MIN_TOLD_APART = 0.4  # of each piece of an outline: a person lost black objects at 0.38, and saw a grey hat at 0.45
MIN_PIECE = 0.1  # of an object's outline: shorter pieces do not hide what it is
_NEIGHBOURS = np.ones((3, 3), np.uint8)


def prove_contrast(named: Sequence[Instance], picture: Picture) -> Refuted | None:
    """None when every named object stands out from the ground, and from every other one that it borders on.

    Args:
        named: what captions name, the first instances of the picture, in the order of its numbers.
        picture: a render; `generators.kubric_scenes.proof.foresee` has no colours.
    """
    colours = np.asarray(cv2.cvtColor(picture.pixels.astype(np.float32) / 255.0, cv2.COLOR_RGB2LAB), np.float32)
    outlines = [_outline(colours, picture.instances == number) for number in range(1, len(named) + 1)]
    areas = [_grown(picture.instances == number) for number in range(len(named) + 1)]
    for outline, one in zip(outlines, named, strict=True):
        if (share := _told_apart(outline, areas[0])) < MIN_TOLD_APART:
            return Refuted("blends-in", f"{share:.0%} of the outline of {one.name} differs in colour from the ground")
    for first, second in combinations(range(len(named)), 2):
        # Two objects meet in one line. It is seen when it is seen from either side of it.
        shares = _told_apart(outlines[first], areas[second + 1]), _told_apart(outlines[second], areas[first + 1])
        if max(shares) < MIN_TOLD_APART:
            seen = f"{max(shares):.0%} of the line between {named[first].name} and {named[second].name}"
            return Refuted("blends-in", f"{seen} differs in colour")
    return None


#: Innermost pixels along the border of a mask, (height, width), and for each of these ΔE*ab between its two sides.
_Outline = tuple[NDArray[np.bool_], NDArray[np.float32]]


def _outline(colours: NDArray[np.float32], mask: NDArray[np.bool_]) -> _Outline:
    """colours: (height, width, 3), CIELAB, L* 0-100. mask: (height, width), of one object."""
    edge = mask & _grown(~mask)
    size = 2 * max(1, round(STRIP * mask.shape[1])) + 1
    inside, outside = (_mean(colours, side, size)[edge] for side in (mask, ~mask))
    return edge, np.linalg.norm(inside - outside, axis=1)


def _told_apart(outline: _Outline, area: NDArray[np.bool_]) -> float:
    """Share of an outline's piece along an area that is seen (0-1); 1 where the piece is too short to count."""
    edge, differences = outline
    piece = differences[area[edge]]
    return float((piece >= TOLD_APART).mean()) if len(piece) > MIN_PIECE * len(differences) else 1.0


def _grown(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    return cv2.dilate(mask.astype(np.uint8), _NEIGHBOURS).astype(bool)


def _mean(colours: NDArray[np.float32], part: NDArray[np.bool_], size: int) -> NDArray[np.float32]:
    """For each pixel the mean colour of a part of the square around it, ``size`` pixels wide."""
    weight = part.astype(np.float32)
    count, total = (
        cv2.boxFilter(each, -1, (size, size), normalize=False, borderType=cv2.BORDER_CONSTANT)
        for each in (weight, colours * weight[..., None])
    )
    return np.asarray(total / np.maximum(count, 1.0)[..., None], np.float32)
