"""Where the sun does not shine because things stand before it: their shadows on the floor and on other things."""

import math
from collections.abc import Sequence
from dataclasses import replace

import cv2
import numpy as np
from numpy.typing import NDArray

from twinset.generators.kubric_scenes.scene.camera import paint
from twinset.generators.kubric_scenes.scene.composition import Standing
from twinset.generators.kubric_scenes.scene.parts import Points, Vector, View

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
