"""How a shoe is built: rings from the sole's outline up to the opening, laces that follow the instep.

Toes point to -x, so that the side is seen from the front.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from PIL import Image

from generators.builtin.procedural_assets.model import Colour, Model, Paint
from generators.builtin.procedural_assets.paint import shade
from generators.builtin.procedural_assets.surface import Floats, around, loft, tube

LENGTH = 28.0
COLUMNS = 48
FRONT = COLUMNS // 2  # the column at the toe and up the instep
LINING = (52, 48, 46)
# Distance from the heel and half width of the foot there, centimetres.
STATIONS, HALF_WIDTHS = (0, 3, 8, 13, 19, 23, 28), (3.0, 3.4, 3.2, 3.5, 4.7, 4.6, 4.0)


@dataclass(frozen=True, slots=True)
class Cut:
    """How a shoe is cut.

    levels: (z, x of the heel, x of the front, width factor) from the sole up to the collar, x from the heel.
    sole: (thickness under the toe, under the heel). laced: first and last level between which laces cross.
    dip: how much lower the collar is at the ankles than at the tongue, centimetres.
    """

    levels: tuple[tuple[float, float, float, float], ...]
    sole: tuple[float, float]
    laced: tuple[float, float]
    dip: float = 1.5


LOW = Cut(
    (
        (1.6, 0.1, 28.0, 0.96),
        (2.8, -0.1, 28.0, 0.96),
        (4.0, -0.1, 27.4, 0.93),
        (5.0, 0.0, 26.2, 0.89),
        (5.8, 0.1, 24.2, 0.85),
        (6.4, 0.1, 21.9, 0.82),
        (7.1, 0.2, 19.6, 0.79),
        (7.9, 0.2, 17.4, 0.77),
        (8.7, 0.3, 15.4, 0.76),
        (9.5, 0.4, 13.6, 0.75),
    ),
    (1.9, 2.7),
    (4.9, 8.4),
)
RUNNING = Cut(
    (
        (2.0, 0.2, 28.0, 0.97),
        (3.4, -0.2, 28.2, 0.97),
        (4.8, -0.2, 27.4, 0.94),
        (5.8, 0.1, 25.8, 0.9),
        (6.6, 0.4, 23.6, 0.86),
        (7.3, 0.6, 21.2, 0.83),
        (8.1, 0.7, 19.0, 0.8),
        (8.9, 0.6, 17.0, 0.78),
        (9.7, 0.4, 15.2, 0.77),
        (10.7, -0.1, 13.6, 0.76),
    ),
    (2.3, 3.9),
    (4.4, 8.4),
)
BOOT = Cut(
    (
        (2.0, 0.1, 28.0, 0.96),
        (3.4, 0.0, 28.0, 0.96),
        (4.8, 0.0, 27.4, 0.94),
        (6.0, 0.0, 26.0, 0.9),
        (6.9, 0.1, 23.6, 0.86),
        (7.8, 0.2, 20.8, 0.83),
        (8.8, 0.3, 18.2, 0.81),
        (10.2, 0.4, 16.0, 0.8),
        (12.2, 0.4, 14.6, 0.82),
        (15.0, 0.2, 14.0, 0.86),
        (18.0, 0.0, 14.0, 0.9),
        (21.0, -0.2, 14.2, 0.94),
    ),
    (2.0, 3.0),
    (4.4, 10.4),
)


def outline(heel: float, front: float, width: float) -> Floats:
    """A ring around the foot between two distances from the heel: (COLUMNS, 2), counter-clockwise, heel first."""
    angles = around(COLUMNS)
    along = heel + (front - heel) * (1 - np.cos(angles)) / 2
    half = np.interp(along, STATIONS, HALF_WIDTHS) * width
    across = half * np.sign(np.sin(angles)) * np.abs(np.sin(angles)) ** 0.62
    return np.stack([LENGTH / 2 - along, across], 1)


def ring(z: float, heel: float, front: float, width: float) -> Floats:
    """An outline at a height: (COLUMNS, 3)."""
    return np.column_stack([outline(heel, front, width), np.full(COLUMNS, z)])


def shoe(
    cut: Cut, upper: Image.Image, sole: Paint, laces: Colour, tongue: Colour, outsole: Colour, finish: str = "satin"
) -> Model:
    """A shoe of a cut. upper: picture around it, u from the heel over the toe at 0.5; v from sole to collar."""
    model = Model()
    rings = np.array([ring(*level) for level in cut.levels])
    # The collar dips at the ankles and rises at the heel.
    angles, share = around(COLUMNS), (np.linspace(0, 1, len(rings)) ** 3)[:, None]
    rings[:, :, 2] += cut.dip * share * (0.35 * np.cos(angles / 2) ** 8 - np.sin(angles) ** 2)
    model.add(loft(rings), upper, finish)
    middle = rings[-1].mean(axis=0)

    def inwards(share: float, lower: float) -> Floats:
        return np.asarray(middle + (rings[-1] - middle) * (1 - share, 1 - share, 1) - (0, 0, lower))

    model.add(loft([rings[-1], inwards(0.03, -0.25), inwards(0.09, 0.0)]), shade(tongue, 0.85), "cloth")
    inside = [inwards(0.09, 0.0), inwards(0.16, 3.0), inwards(0.2, 5.0)]
    model.add(loft([*inside, np.tile(inside[-1].mean(axis=0), (COLUMNS, 1))]), LINING, "cloth")
    _sole(model, cut, sole, outsole)
    _tongue(model, rings, tongue)
    _laces(model, rings, cut, laces)
    _collide(model, rings)
    return model


def _collide(model: Model, rings: Floats) -> None:
    """Solid up to the instep, above that hollow: walls around the opening."""
    half = len(rings) // 2
    model.collide(np.concatenate([ring(0, 0.3, 27.6, 1), rings[half - 4], rings[half - 2]]))
    model.collide(np.concatenate([rings[half - 2], rings[half]]))
    inner = rings.mean(axis=1, keepdims=True) + (rings - rings.mean(axis=1, keepdims=True)) * (0.84, 0.84, 1)
    for low, high in pairwise((half, (half + len(rings)) // 2, len(rings) - 1)):
        for column in range(0, COLUMNS, 4):
            columns = np.arange(column, column + 5) % COLUMNS
            corners = (rings[low], rings[high], inner[low], inner[high])
            model.collide(np.concatenate([corner[columns] for corner in corners]))


def _sole(model: Model, cut: Cut, sole: Paint, outsole: Colour) -> None:
    """A midsole that wraps the foot's edge, thicker under the heel, on a thin outsole."""
    toe, heel = cut.sole
    edge = ring(0, -0.3, 28.5, 1.03)
    rise = np.interp(LENGTH / 2 - edge[:, 0], (0, 10, 18, 28), (heel, heel, toe, toe + 0.4))
    spring = 0.5 * np.clip((LENGTH / 2 - edge[:, 0] - 22) / 6, 0, 1) ** 2  # toes curl up a little

    def at(height: float, grow: float) -> Floats:
        points = edge * (grow, grow, 1)
        points[:, 2] = rise * height + spring * (1 - height)
        return points

    model.add(loft([at(0.0, 0.97), at(0.08, 1.0), at(0.22, 1.0)]), outsole, "matte")
    model.add(loft([at(0.22, 1.0), at(0.3, 1.012), at(0.85, 1.005), at(1.0, 0.985), at(0.98, 0.9)]), sole, "matte")
    bottom = at(0.0, 0.97)
    model.add(loft([np.tile(bottom.mean(axis=0) * (1, 1, 0), (COLUMNS, 1)), bottom]), outsole, "matte")


def _on(rings: Floats, level: float, column: float, out: float) -> Floats:
    """A point on the upper between its rings and columns, pushed outwards."""
    i, j = min(int(level), len(rings) - 2), math.floor(column)
    s, t = level - i, column - j
    a, b, c, d = rings[i, j], rings[i, j + 1], rings[i + 1, j], rings[i + 1, j + 1]
    normal = np.cross(b - a + d - c, c - a + d - b)
    point = (1 - s) * ((1 - t) * a + t * b) + s * ((1 - t) * c + t * d)
    return np.asarray(point + out * normal / np.linalg.norm(normal))


def _laces(model: Model, rings: Floats, cut: Cut, colour: Colour) -> None:
    """Laces that cross over the instep and end in a bow."""
    first, last = cut.laced
    rows = np.linspace(first, last, 6)
    reach = 4.0
    for low, high in pairwise(rows):
        for sign, out in ((1, 0.28), (-1, 0.45)):
            path = [
                _on(rings, low + (high - low) * t, FRONT + sign * reach * (2 * t - 1), out)
                for t in np.linspace(0, 1, 7)
            ]
            model.add(tube(path, 0.3, 6, flat=0.6), colour, "cloth")
    knot = _on(rings, last, FRONT, 0.6)
    for sign in (1, -1):
        loop = [
            knot + np.array((0.3 - 1.6 * math.sin(a), sign * 2.9 * math.sin(a / 2), 0.4 * math.sin(a)))
            for a in np.linspace(0, math.tau, 16)
        ]
        model.add(tube(loop, 0.24, 6, flat=0.7), colour, "cloth")
        end = [knot + np.array(step) for step in ((0, 0, 0), (-1.6, sign * 1.2, -0.1), (-2.6, sign * 2.6, -1.0))]
        model.add(tube(end, 0.24, 6, flat=0.7), colour, "cloth")


def _tongue(model: Model, rings: Floats, colour: Colour) -> None:
    """A padded tongue that rises from the instep out of the opening."""
    top = rings[-1, FRONT]
    back = rings[-4, FRONT] - top
    path = top + np.array([back * 0.7, back * 0.35, (0.15, 0, 0), (0.5, 0, 0.7), (0.7, 0, 1.2)])
    model.add(tube(path, (1.7, 1.9, 2.0, 1.9, 1.6), 12, flat=0.2, up=(1, 0, 0.4)), colour, "cloth")
