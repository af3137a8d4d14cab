"""Proof that named objects stand out, and that two renders differ by what their captions say and hardly anywhere else.

Light is real: a thing darkens, colours and mirrors itself in what is near. What it is or stands in, and its shadow, may
differ as it likes; everything else may differ so little that nobody sees it.
"""

from collections.abc import Sequence
from itertools import combinations

import cv2
import numpy as np
from numpy.typing import NDArray

from twinset.generators.kubric_scenes.proof import Instance
from twinset.generators.kubric_scenes.scene.camera import paint, project
from twinset.generators.kubric_scenes.scene.composition import Standing
from twinset.generators.kubric_scenes.scene.parts import Drawn, Picture, Refuted, View

STRIP = 0.016  # of the picture's width: how far to either side of an outline colours are averaged
TOLD_APART = 10.0  # CIELAB ΔE*ab (CIE 1976) between the two sides of an outline, from which it is seen
MIN_TOLD_APART = 0.4  # of each piece of an outline: a person lost black objects at 0.38, and saw a grey hat at 0.45
MIN_PIECE = 0.1  # of an object's outline: shorter pieces do not hide what it is
_NEIGHBOURS = np.ones((3, 3), np.uint8)


def prove_contrast(named: Sequence[Instance], picture: Picture) -> None:
    """Raise `Refuted` unless every named object stands out from the ground and from every one that it borders on.

    Args:
        named: what captions name, the first instances of the picture, in the order of its numbers.
        picture: a render; `generators.kubric_scenes.proof.foresee` has no colours.
    """
    colours = np.asarray(cv2.cvtColor(picture.pixels.astype(np.float32) / 255.0, cv2.COLOR_RGB2LAB), np.float32)
    outlines = [_outline(colours, picture.instances == number) for number in range(1, len(named) + 1)]
    areas = [_grown(picture.instances == number) for number in range(len(named) + 1)]
    for outline, one in zip(outlines, named, strict=True):
        if (share := _told_apart(outline, areas[0])) < MIN_TOLD_APART:
            raise Refuted("blends-in", f"{share:.0%} of the outline of {one.name} differs in colour from the ground")
    for first, second in combinations(range(len(named)), 2):
        # Two objects meet in one line. It is seen when it is seen from either side of it.
        shares = _told_apart(outlines[first], areas[second + 1]), _told_apart(outlines[second], areas[first + 1])
        if max(shares) < MIN_TOLD_APART:
            seen = f"{max(shares):.0%} of the line between {named[first].name} and {named[second].name}"
            raise Refuted("blends-in", f"{seen} differs in colour")


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


CHANGED = 24  # steps of 255 by which a pixel must differ to be told from noise
MIN_CHANGED = 0.35  # of the changed thing's pixels
SEEN = 8  # steps of 255: less is not seen when two pictures are shown in turn
MAX_FLOOR = 0.05  # of the pixels beside all things and shadows of changed things
MAX_UNCHANGED = 0.2  # of the pixels of a thing that does not change
NEARBY = 0.03  # of the picture's width around a changed thing and its shadow that counts as these: the sun has a width
MAX_MOVED = 0.15  # of the length of the smaller member of a set: how far from each other both may stand
Both = tuple[Sequence[Standing], Sequence[Standing]]


def prove_spot(drawn: Drawn, first: Standing, second: Standing) -> None:
    """Raise `Refuted` unless the members of an attribute pair stand on one spot: the middles of their bounds."""
    if drawn.aspect != "attribute":
        return
    lows, highs = (np.array([edge(one.points, axis=0) for one in (first, second)]) for edge in (np.min, np.max))
    apart = float(np.linalg.norm(np.diff((lows + highs)[:, :2] / 2, axis=0)))
    moved = apart / float((highs - lows).max(axis=1).min())
    if moved > MAX_MOVED:
        raise Refuted("moved", f"{second.thing.name} lies {moved:.0%} of its length beside {first.thing.name}'s place")


def prove_change(drawn: Drawn, view: View, things: Both, pictures: tuple[Picture, Picture]) -> None:
    """Raise `Refuted` unless two pictures differ where the changed things are, and almost nowhere else.

    What carries another thing takes its shadow, and is not looked at.

    Args:
        things: what stands in each, in the order of its mask's numbers.
    """
    first, second = pictures
    difference = np.abs(first.pixels.astype(np.int16) - second.pixels.astype(np.int16)).max(axis=2)
    changed, shadow = np.zeros(difference.shape, bool), np.zeros(difference.shape, bool)
    for these, others, picture in ((*things, first), (*things[::-1], second)):
        placements = [other.placement for other in others]
        for number, standing in enumerate(these, start=1):
            if standing.placement not in placements:
                changed |= picture.instances == number
                shadow |= _shadow(standing, view, difference.shape)
    if drawn.aspect == "attribute" and (share := float((difference[changed] >= CHANGED).mean())) < MIN_CHANGED:
        raise Refuted("change-not-seen", f"{drawn.object0.name} and {drawn.object1.name} differ in {share:.0%}")
    seen, unchanged = difference > SEEN, ~_around(changed)
    floor = ~_around(changed | shadow) & (first.instances == 0) & (second.instances == 0)
    if (share := _share(seen, floor)) > MAX_FLOOR:
        raise Refuted("differs-elsewhere", f"{share:.1%} of the surroundings differs too")
    carries = any(standing.carried for image in things for standing in image)
    places = {standing.placement: place for place, standing in enumerate(things[1], start=1)}
    for place, standing in enumerate(things[0], start=1):
        if carries or standing.placement not in places:
            continue
        part = unchanged & (first.instances == place) & (second.instances == places[standing.placement])
        if (share := _share(seen, part)) > MAX_UNCHANGED:
            raise Refuted("differs-elsewhere", f"{share:.1%} of {standing.thing.name} differs too")


def _shadow(thing: Standing, view: View, shape: tuple[int, int]) -> NDArray[np.bool_]:
    """Where in a picture the shadow of a thing's convex hull falls on the floor."""
    points, sun = thing.points, np.asarray(view.sun)
    pixels, _ = project(points - sun * (points[:, 2:] / sun[2]), view, shape[1])
    hull = np.asarray(cv2.convexHull(pixels.astype(np.float32))[:, 0], np.float64)
    return paint(hull[None], [0], shape) >= 0


def _around(part: NDArray[np.bool_]) -> NDArray[np.bool_]:
    margin = max(1, round(NEARBY * part.shape[1]))
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * margin + 1, 2 * margin + 1))
    return cv2.dilate(part.astype(np.uint8), kernel).astype(bool)


def _share(seen: NDArray[np.bool_], part: NDArray[np.bool_]) -> float:
    return float(seen[part].mean()) if part.any() else 0.0
