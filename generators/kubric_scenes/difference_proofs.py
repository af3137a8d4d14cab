"""Proof that named objects stand out, and that two renders differ by what their captions say and hardly anywhere else.

Light is real: a thing darkens, colours and mirrors itself in what is near. What it is or stands in, and its shadow, may
differ as it likes; everything else may differ so little that nobody sees it.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import cv2
import numpy as np
from numpy.typing import NDArray

from twinset.generators.kubric_scenes.proof import Instance
from twinset.generators.kubric_scenes.scene.camera import paint, unproject
from twinset.generators.kubric_scenes.scene.composition import Refuted, Standing
from twinset.generators.kubric_scenes.scene.parts import Drawn, Picture, Points, Vector, View

GRID = 160  # cells along the longer side of what the sun sees of the things that throw a shadow
SOFT = 0.12  # scene units around a shadow that count as the shadow: the sun has a width
TURNS = tuple(math.radians(turn) for turn in (0, 20, -20, 40, -40, 60, -60, 80, -80))  # of the sun, that are tried
VIEWERS_SIDE = math.radians(75)  # at most so far from behind the viewer may it be turned
SHADED = 0.01  # of the surface of an unchanged thing is as good as none
ABOVE = 0.02  # scene units that a surface must lie nearer to the sun: a thing does not shade itself


Mesh = tuple[Points, NDArray[np.int32]]  # (n, 3) corners in the scene, and (m, 3) which of them make a face
Things = Sequence[Standing]


class Shadow:
    """The shadow of some things, as seen from the sun: how near to it the nearest of their surfaces lies, cell by cell.

    Args:
        casters: the things.
        sun: where the light shines from, of any length.
    """

    def __init__(self, casters: Sequence[Mesh], sun: Vector) -> None:
        self._axes = _towards(sun)
        corners = [points @ self._axes for points, _ in casters]
        everything = np.concatenate(corners)
        extent = float(np.ptp(everything[:, :2], axis=0).max())
        self._cell = max(extent, SOFT) / GRID
        self._low = everything[:, :2].min(axis=0) - 2 * SOFT
        columns, rows = np.ceil((everything[:, :2].max(axis=0) + 2 * SOFT - self._low) / self._cell).astype(int) + 1
        triangles = np.concatenate([own[faces] for own, (_, faces) in zip(corners, casters, strict=True)])
        nearness = triangles[:, :, 2].max(axis=1)
        order = np.argsort(nearness, kind="stable")
        painted = paint((triangles[:, :, :2] - self._low) / self._cell, order, (rows, columns))
        near = np.where(painted < 0, -np.inf, nearness[painted]).astype(np.float32)
        reach = max(1, round(SOFT / self._cell))
        kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * reach + 1, 2 * reach + 1))
        self._near = cv2.dilate(near, kernel, borderType=cv2.BORDER_REPLICATE)

    def covers(self, points: Points) -> NDArray[np.bool_]:
        """Which points (…, 3) of the scene lie in it; points that are not finite do not."""
        seen = np.where(np.isfinite(points), points, 1e9) @ self._axes
        places = np.floor((seen[..., :2] - self._low) / self._cell)
        rows, columns = self._near.shape
        inside = (places >= 0).all(axis=-1) & (places[..., 0] < columns) & (places[..., 1] < rows)
        place = np.where(inside[..., None], places, 0).astype(int)
        covered: NDArray[np.bool_] = inside & (self._near[place[..., 1], place[..., 0]] > seen[..., 2] + ABOVE)
        return covered


def _towards(sun: Vector) -> Points:
    """Two axes across the light and one towards it, the columns of a (3, 3) matrix."""
    light = np.asarray(sun) / np.linalg.norm(sun)
    across = np.cross([0.0, 1.0, 0.0] if abs(light[1]) < 0.9 else [1.0, 0.0, 0.0], light)
    across /= np.linalg.norm(across)
    return np.stack([across, np.cross(light, across), light], axis=1)


def changed(thing: Standing, others: Things) -> bool:
    """Whether a thing of one image does not stand in the other one too."""
    return all(thing.placement != other.placement for other in others)


def carries(place: int, things: Things) -> bool:
    """Whether another thing lies on the one at a place (from 0)."""
    return any(place in thing.rests_on for thing in things)


def turn_sun(view: View, things0: Things, things1: Things) -> View:
    """The view with its sun turned around Z, as little as it takes to keep the shadow of changed things off the others.

    What carries a changed thing cannot be left out. Where no turn will do, the one that shades least is taken.
    """
    azimuth = math.atan2(view.sun[1], view.sun[0])
    turns = [turn for turn in TURNS if not turn or abs(azimuth + turn + math.pi / 2) <= VIEWERS_SIDE]
    best, least = view, math.inf
    for turn in turns:
        sun = _turned(view.sun, turn)
        shaded = max(_shaded(things0, things1, sun), _shaded(things1, things0, sun))
        if shaded < least:
            best, least = replace(view, sun=sun), shaded
        if least <= SHADED:
            break
    return best


def _shaded(things: Things, others: Things, sun: Vector) -> float:
    """The largest share of the surface of an unchanged thing that lies in the shadow of the changed ones."""
    casters = [(one.points, one.model.faces) for one in things if changed(one, others)]
    if not casters:
        return 0.0
    shadow = Shadow(casters, sun)
    shares = [0.0]
    for place, one in enumerate(things):
        if not (changed(one, others) or carries(place, things)):
            corners = one.points[one.model.faces]
            areas = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
            shares.append(float(np.average(shadow.covers(corners.mean(axis=1)), weights=areas)))
    return max(shares)


def _turned(sun: Vector, turn: float) -> Vector:
    cos, sin = math.cos(turn), math.sin(turn)
    return cos * sun[0] - sin * sun[1], sin * sun[0] + cos * sun[1], sun[2]


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
NEARBY = 0.03  # of the picture's width around a changed thing that counts as the thing: its contact shadow
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

    Args:
        things: what stands in each, in the order of its mask's numbers.
    """
    first, second = pictures
    difference = np.abs(first.pixels.astype(np.int16) - second.pixels.astype(np.int16)).max(axis=2)
    shadow = np.zeros(difference.shape, bool)
    numbers: list[list[int]] = []
    for these, others, picture in ((*things, first), (*things[::-1], second)):
        numbers.append([number for number, one in enumerate(these, start=1) if changed(one, others)])
        casters = [these[number - 1] for number in numbers[-1]]
        if casters and (view.sun_strength > 0 or view.background is not None):
            shadow |= Shadow([(one.points, one.model.faces) for one in casters], view.sun).covers(
                unproject(picture.depth, view)
            )
    thing = np.isin(first.instances, numbers[0]) | np.isin(second.instances, numbers[1])
    if drawn.aspect == "attribute" and (share := float((difference[thing] >= CHANGED).mean())) < MIN_CHANGED:
        raise Refuted("change-not-seen", f"{drawn.object0.name} and {drawn.object1.name} differ in {share:.0%}")
    seen = (difference > SEEN) & ~_around(thing)
    floor = ~_around(thing) & ~shadow & (first.instances == 0) & (second.instances == 0)
    if (share := _share(seen, floor)) > MAX_FLOOR:
        raise Refuted("differs-elsewhere", f"{share:.1%} of the surroundings differs too")
    for number, one in enumerate(things[0], start=1):
        if number in numbers[0]:
            continue
        again = next(place for place, other in enumerate(things[1], start=1) if other.placement == one.placement)
        part = ~_around(thing) & (first.instances == number) & (second.instances == again)
        if carries(number - 1, things[0]) or carries(again - 1, things[1]):
            part &= ~shadow  # what lies on a thing throws its shadow there
        if (share := _share(seen, part)) > MAX_UNCHANGED:
            raise Refuted("differs-elsewhere", f"{share:.1%} of {one.thing.name} differs too")


def _around(thing: NDArray[np.bool_]) -> NDArray[np.bool_]:
    margin = max(1, round(NEARBY * thing.shape[1]))
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * margin + 1, 2 * margin + 1))
    return cv2.dilate(thing.astype(np.uint8), kernel).astype(bool)


def _share(found: NDArray[np.bool_], part: NDArray[np.bool_]) -> float:
    return float(found[part].mean()) if part.any() else 0.0
