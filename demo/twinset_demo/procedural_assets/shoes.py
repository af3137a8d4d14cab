"""Shoes of all kinds: rings from the sole's outline up to the opening, and laces that follow the instep.

Toes point to -x, so that the side is seen from the front.
"""

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from PIL import Image

from twinset_demo.canvas import Colour, shade
from twinset_demo.procedural_assets.model import Model, Paint
from twinset_demo.procedural_assets.paint import BLACK, OFF_WHITE, WHITE, canvas, grain, woven
from twinset_demo.procedural_assets.surface import Floats, around, loft, tube

LENGTH, COLUMNS = 28.0, 48  # centimetres; points of a ring
FRONT = COLUMNS // 2  # the column at the toe and up the instep
LINING = (52, 48, 46)
# Distance from the heel and half width of the foot there, centimetres.
STATIONS, HALF_WIDTHS = (0, 3, 8, 13, 19, 23, 28), (3.0, 3.4, 3.2, 3.5, 4.7, 4.6, 4.0)


@dataclass(frozen=True, slots=True)
class Cut:
    """How a shoe is cut, in centimetres; rings lie one over the other from the sole up to the collar.

    Args:
        z: Height of each ring.
        heel: Distance of each ring's back from the heel.
        front: Likewise of its front.
        width: Its width as a share of the foot's.
        sole: Thickness under the toe and under the heel.
        laced: First and last ring between which laces cross.
    """

    z: tuple[float, ...]
    heel: tuple[float, ...]
    front: tuple[float, ...]
    width: tuple[float, ...]
    sole: tuple[float, float]
    laced: tuple[float, float]


LOW = Cut(
    z=(1.6, 2.8, 4.0, 5.0, 5.8, 6.4, 7.1, 7.9, 8.7, 9.5),
    heel=(0.1, -0.1, -0.1, 0.0, 0.1, 0.1, 0.2, 0.2, 0.3, 0.4),
    front=(28.0, 28.0, 27.4, 26.2, 24.2, 21.9, 19.6, 17.4, 15.4, 13.6),
    width=(0.96, 0.96, 0.93, 0.89, 0.85, 0.82, 0.79, 0.77, 0.76, 0.75),
    sole=(1.9, 2.7),
    laced=(4.9, 8.4),
)
RUNNING = Cut(
    z=(2.0, 3.4, 4.8, 5.8, 6.6, 7.3, 8.1, 8.9, 9.7, 10.7),
    heel=(0.2, -0.2, -0.2, 0.1, 0.4, 0.6, 0.7, 0.6, 0.4, -0.1),
    front=(28.0, 28.2, 27.4, 25.8, 23.6, 21.2, 19.0, 17.0, 15.2, 13.6),
    width=(0.97, 0.97, 0.94, 0.9, 0.86, 0.83, 0.8, 0.78, 0.77, 0.76),
    sole=(2.3, 3.9),
    laced=(4.4, 8.4),
)
BOOT = Cut(
    z=(2.0, 3.4, 4.8, 6.0, 6.9, 7.8, 8.8, 10.2, 12.2, 15.0, 18.0, 21.0),
    heel=(0.1, 0.0, 0.0, 0.0, 0.1, 0.2, 0.3, 0.4, 0.4, 0.2, 0.0, -0.2),
    front=(28.0, 28.0, 27.4, 26.0, 23.6, 20.8, 18.2, 16.0, 14.6, 14.0, 14.0, 14.2),
    width=(0.96, 0.96, 0.94, 0.9, 0.86, 0.83, 0.81, 0.8, 0.82, 0.86, 0.9, 0.94),
    sole=(2.0, 3.0),
    laced=(4.4, 10.4),
)
DIP = 1.5  # how much lower the collar is at the ankles than at the tongue, centimetres


def ring(z: float, heel: float, front: float, width: float) -> Floats:
    """A ring around the foot between two distances from the heel: (COLUMNS, 3), counter-clockwise, heel first."""
    angles = around(COLUMNS)
    along = heel + (front - heel) * (1 - np.cos(angles)) / 2
    half = np.interp(along, STATIONS, HALF_WIDTHS) * width
    across = half * np.sign(np.sin(angles)) * np.abs(np.sin(angles)) ** 0.62
    return np.column_stack([LENGTH / 2 - along, across, np.full(COLUMNS, z)])


def shoe(
    model: Model, cut: Cut, upper: Image.Image, sole: Paint, laces: Colour, tongue: Colour, outsole: Colour, finish: str
) -> None:
    """A shoe of a cut. upper: picture around it, u from the heel over the toe at 0.5; v from sole to collar."""
    rings = np.array([ring(*level) for level in zip(cut.z, cut.heel, cut.front, cut.width, strict=True)])
    # The collar dips at the ankles and rises at the heel.
    angles, share = around(COLUMNS), (np.linspace(0, 1, len(rings)) ** 3)[:, None]
    rings[:, :, 2] += DIP * share * (0.35 * np.cos(angles / 2) ** 8 - np.sin(angles) ** 2)
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
    steps = np.linspace(0, 1, 7)
    for low, high in pairwise(np.linspace(first, last, 6)):
        for reach, out in ((4.0, 0.28), (-4.0, 0.45)):
            path = [_on(rings, low + (high - low) * t, FRONT + reach * (2 * t - 1), out) for t in steps]
            model.add(tube(path, 0.3, 6, flat=0.6), colour, "cloth")
    knot = _on(rings, last, FRONT, 0.6)
    for sign in (1, -1):
        a = np.linspace(0, math.tau, 16)
        loop = np.stack([0.3 - 1.6 * np.sin(a), sign * 2.9 * np.sin(a / 2), 0.4 * np.sin(a)], 1)
        end = np.array([(0, 0, 0), (-1.6, sign * 1.2, -0.1), (-2.6, sign * 2.6, -1.0)])
        for lace in (loop, end):
            model.add(tube(knot + lace, 0.24, 6, flat=0.7), colour, "cloth")


def _tongue(model: Model, rings: Floats, colour: Colour) -> None:
    """A padded tongue that rises from the instep out of the opening."""
    top = rings[-1, FRONT]
    back = rings[-4, FRONT] - top
    path = top + np.array([back * 0.7, back * 0.35, (0.15, 0, 0), (0.5, 0, 0.7), (0.7, 0, 1.2)])
    model.add(tube(path, (1.7, 1.9, 2.0, 1.9, 1.6), 12, flat=0.2, up=(1, 0, 0.4)), colour, "cloth")


def panels(colour: Colour, trim: Colour, stripes: Colour | None = None) -> Image.Image:
    """The picture around an upper of one colour: heel counter, eyelet stays with eyelets, seams, side stripes."""
    picture, pen = canvas(508, 160, colour)
    pen.rectangle((0, 30, 42, 160), trim)
    pen.rectangle((466, 30, 508, 160), trim)
    stitch = shade(colour, 0.6)
    for side in (-1, 1):
        stay = [(254 + side * x, y) for x, y in ((26, 100), (66, 92), (72, 20), (72, 0), (22, 0))]
        pen.polygon(stay, trim)
        pen.line([*stay[:4]], stitch, 2)
        for y in (14, 31, 48, 65, 82):
            x = 254 + side * 42
            pen.ellipse((x - 3, y - 3, x + 3, y + 3), BLACK)
        if stripes:
            for shift in (0, 26, 52):
                x = 254 + side * (96 + shift)
                pen.polygon([(x, 128), (x + side * 12, 128), (x + side * 34, 52), (x + side * 22, 52)], stripes)
    pen.line([(150, 160), (176, 116), (254, 104), (332, 116), (358, 160)], stitch, 2)
    return picture


def plain_shoe(model: Model, colour: Colour) -> None:
    """A casual low shoe of one colour on a light sole."""
    upper = grain(panels(colour, shade(colour, 0.82)), 5, 4)
    sole = OFF_WHITE if sum(colour) > 330 else shade(OFF_WHITE, 0.93)
    shoe(model, LOW, upper, sole, WHITE, shade(colour, 0.8), (150, 110, 70), "satin")


def dark_shoe(model: Model, colour: Colour) -> None:
    """A leather shoe: laces, sole and heel in the dark of its colour."""
    dark = shade(colour, 0.45) if sum(colour) > 150 else (30, 28, 28)
    shoe(model, LOW, panels(colour, shade(colour, 0.8)), dark, shade(colour, 0.5), shade(colour, 0.7), BLACK, "gloss")


def running_shoe(model: Model, colour: Colour, stripes: Colour) -> None:
    """A running shoe: thick wedge sole, mesh upper with slanted side stripes."""
    upper = woven(panels(colour, shade(colour, 0.88), stripes), 4, 0.18)
    midsole, pen = canvas(508, 40, WHITE)
    pen.rectangle((0, 24, 508, 30), stripes)
    shoe(model, RUNNING, upper, midsole, WHITE, shade(colour, 0.85), (60, 60, 64), "cloth")


def sneaker(model: Model, colour: Colour) -> None:
    """A dark sneaker on a white rubber sole, with white laces and stripes."""
    upper = grain(panels(colour, shade(colour, 1.6), WHITE), 4, 6)
    shoe(model, RUNNING, upper, WHITE, WHITE, shade(colour, 1.4), (70, 70, 74), "satin")


def canvas_shoe(model: Model, colour: Colour) -> None:
    """A canvas shoe: woven cloth, rubber toe cap, a coloured line around the white sole."""
    picture, pen = canvas(508, 160, colour)
    cap = [(176, 160), (190, 118), (254, 100), (318, 118), (332, 160)]
    pen.polygon(cap, (250, 250, 248))
    pen.line(cap, (150, 150, 146), 3)
    for side in (-1, 1):
        pen.line([(254 + side * x, y) for x, y in ((34, 84), (64, 78), (72, 0))], (170, 166, 156), 3)
        for y in (14, 31, 48, 65):
            x = 254 + side * 46
            pen.ellipse((x - 4, y - 4, x + 4, y + 4), (120, 120, 124))
    sole, line = canvas(508, 40, WHITE)
    line.rectangle((0, 12, 508, 17), (36, 60, 140))
    shoe(model, LOW, woven(picture, 3, 0.14), sole, WHITE, colour, (190, 150, 100), "cloth")


def boot(model: Model, colour: Colour) -> None:
    """A laced leather boot with a high shaft and a heavy sole."""
    upper = panels(colour, shade(colour, 1.5))
    shoe(model, BOOT, upper, (34, 32, 32), (90, 80, 60), shade(colour, 1.3), BLACK, "gloss")
