"""The room that the actors play in, with the grain of a photo, and the things that they play with."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import cv2
import numpy as np

from twinset_demo.canvas import HEIGHT, SCALE, WIDTH, Canvas, Colour, shade

SKIRTING = 172.0  # picture row where wall and floor meet
WOOD = (150, 104, 62)


@dataclass(frozen=True)
class Room:
    """A room by the colours of its wall and floor, the columns of its window and its picture, and its grain's seed."""

    wall: Colour
    floor: Colour
    window: float
    picture: float
    seed: int

    @cached_property
    def empty(self) -> Canvas:
        """The room with nothing in it."""
        wall, floor = self.wall, self.floor
        canvas = Canvas.blank(wall)
        canvas.boxes([(column, 0, column + 8, SKIRTING) for column in range(0, WIDTH, 16)], shade(wall, 0.965))
        _window(canvas.at((self.window, 60)))
        _picture(canvas.at((self.picture, 52)))
        canvas.box(0, SKIRTING, WIDTH, HEIGHT, floor)
        random = np.random.Generator(np.random.PCG64(self.seed))
        for row, (top, bottom) in enumerate(pairwise((SKIRTING, 181, 194, 212, 233, HEIGHT))):
            for plank in range(-1, 5):
                left = plank * 90 + (row % 3) * 31 - 20
                canvas.box(left, top, left + 89, bottom - 0.7, shade(floor, float(random.uniform(0.88, 1.06))))
        canvas.box(0, SKIRTING - 8, WIDTH, SKIRTING, shade(wall, 1.12))
        canvas.box(0, SKIRTING - 1.5, WIDTH, SKIRTING, shade(wall, 0.7))
        add_grain(canvas, random)
        return canvas


def add_grain(canvas: Canvas, random: np.random.Generator) -> None:
    """Soft light from above and a still, blotchy grain (integer arithmetic from the noise on)."""
    height, width = HEIGHT * SCALE, WIDTH * SCALE
    noise = np.rint(random.normal(0, 3.5, (height // 2, width // 2))).astype(np.int16)
    blotches = cv2.resize(noise, (width, height), interpolation=cv2.INTER_NEAREST)
    light = np.linspace(10, -16, height).astype(np.int16)[:, None]
    canvas.large[:] = np.clip(canvas.large.astype(np.int16) + (blotches + light)[..., None], 0, 255).astype(np.uint8)


def _window(canvas: Canvas) -> None:
    frame = (240, 240, 236)
    canvas.box(-34, -40, 34, 32, frame)
    canvas.box(-29, -35, 29, 27, (170, 208, 236))
    canvas.ellipse((-12, 22), 17, 12, (118, 160, 96))
    canvas.ellipse((16, 26), 15, 14, (98, 146, 84))
    canvas.boxes([(-29, 27, 29, 32), (-29, 27, 29, 42)], frame)  # twice, which makes its soft edge firmer
    canvas.box(-38, 32, 38, 37, (222, 222, 216))
    canvas.box(-34, 37, 34, 42, (200, 200, 194))
    canvas.boxes([(-1.5, -35, 1.5, 27), (-29, -5, 29, -2)], frame)


def _picture(canvas: Canvas) -> None:
    canvas.box(-20, -16, 20, 16, (120, 84, 52))
    canvas.box(-16, -12, 16, 12, (236, 226, 200))
    canvas.polygon([(-16, 12), (-6, -6), (2, 4), (8, -3), (16, 12)], (96, 120, 150))
    canvas.ellipse((9, -7), 3, 3, (238, 190, 80))


@dataclass(frozen=True, slots=True)
class Thing:
    """One kind of thing.

    Args:
        name: Its class in Action Genome.
        paint: Paints it around the point where it is held (furniture: where it stands); the flag says whether it is
            in use.
        width: Its extent in pixels; likewise ``height``.
        grip: Height of the hold above the base.
    """

    name: str
    paint: Callable[[Canvas, bool], None]
    width: float
    height: float
    grip: float = 0.0


def _bottle(canvas: Canvas, used: bool) -> None:
    canvas.limb([(0, 9), (0, -8)], 12, 12, (52, 132, 84))
    canvas.limb([(0, -10), (0, -24)], 6, 5, (52, 132, 84))
    canvas.box(-2.8, -28, 2.8, -24, (226, 190, 60))
    canvas.box(-6, -5, 6, 6, (244, 240, 220))
    canvas.box(-6, -1, 6, 2, (208, 60, 50))


def _book(canvas: Canvas, used: bool) -> None:
    if not used:
        canvas.box(-14, -4, 14, 4, (36, 64, 140))
        canvas.box(-12, -2.4, 14, 2.4, (244, 240, 228))
        return
    canvas.polygon([(-3, 8), (-7, -15), (15, -22), (17, 2)], (36, 64, 140))
    canvas.polygon([(-2, 6), (-5.5, -14), (13, -20), (15, 1)], (250, 246, 234))
    canvas.strokes([[(-2.5, -10 + 4 * line), (12, -15 + 4 * line)] for line in range(4)], 0.8, (150, 150, 156))
    canvas.polygon([(-3, 8), (-7, -15), (-15, -20), (-12, 4)], shade((36, 64, 140), 0.8))
    canvas.polygon([(-3.5, 6), (-7, -14), (-13, -18), (-10.5, 3)], (232, 226, 208))


def _pillow(canvas: Canvas, used: bool) -> None:
    canvas.polygon([(-22, -14), (0, -12), (22, -14), (20, 0), (22, 14), (0, 12), (-22, 14), (-20, 0)], (206, 160, 40))
    canvas.polygon([(-19, -11), (0, -9), (19, -11), (17, 0), (19, 11), (0, 9), (-19, 11), (-17, 0)], (242, 202, 72))
    canvas.strokes([[(column, -8.5), (column, 8.5)] for column in (-10, 0, 10)], 2, (226, 120, 60))


def _dish(canvas: Canvas, used: bool) -> None:
    if used:
        rim, well = ((150, 176, 206), (244, 246, 250)), ((206, 220, 236), (250, 250, 252))
        for radius, colour in zip((16, 15, 10, 9), (*rim, *well), strict=True):
            canvas.ellipse((0, -8), radius, radius, colour)
        return
    canvas.polygon([(-17, -4), (17, -4), (9, 4), (-9, 4)], (244, 246, 250))
    canvas.box(-17, -4.5, 17, -2.5, (96, 140, 196))


def _towel(canvas: Canvas, used: bool) -> None:
    blue, white = (54, 150, 158), (236, 246, 240)
    if used:
        canvas.polygon([(-9, -3), (8, -4), (11, 12), (8, 27), (2, 24), (-4, 28), (-11, 25), (-10, 10)], blue)
        canvas.strokes([[(-10, 14), (10.5, 14)], [(-10.5, 20), (9.5, 20)]], 2, white)
    else:
        canvas.polygon([(-16, 5), (-14, -4), (0, -6), (14, -4), (16, 5)], blue)
        canvas.stroke([(-15, 1), (15, 1)], 2, white)


def _box(canvas: Canvas, used: bool) -> None:
    canvas.box(-21, -17, 21, 17, (150, 110, 66))
    canvas.box(-20, -16, 20, 16, (196, 150, 96))
    canvas.box(-4, -16, 4, 16, (224, 196, 150))
    canvas.box(-20, -16, 20, -12, (176, 132, 82))
    canvas.polygon([(8, 4), (16, 4), (16, 12), (8, 12)], (90, 64, 40))


def _sandwich(canvas: Canvas, used: bool) -> None:
    canvas.polygon([(-11, 5), (11, 5), (11, 8), (-11, 8)], (206, 150, 82))
    canvas.polygon([(-13, 1), (13, 1), (11, 5), (-11, 5)], (90, 170, 60))
    canvas.box(-11, -2, 11, 1.5, (214, 60, 50))
    canvas.box(-11, -4, 11, -2, (246, 206, 80))
    canvas.ellipse((0, -4), 11, 6, (214, 158, 88))


def _laptop(canvas: Canvas, used: bool) -> None:
    canvas.polygon([(-20, 1), (16, 1), (16, 4), (-20, 4)], (88, 92, 100))
    canvas.polygon([(14, 1), (24, -24), (27, -24), (18, 3)], (60, 62, 70))
    canvas.polygon([(13, 0), (23, -24), (24.5, -24), (15, 1)], (150, 210, 246) if used else (96, 120, 150))


def _broom(canvas: Canvas, used: bool) -> None:
    canvas.stroke([(0, -38), (0, 40)], 3, (186, 132, 66))
    canvas.polygon([(-4, 38), (4, 38), (12, 62), (-12, 62)], (226, 186, 84))
    canvas.box(-6, 38, 6, 42, (200, 50, 50))
    canvas.strokes([[(bristle * 0.6, 44), (bristle * 1.5, 61)] for bristle in (-6, -2, 2, 6)], 0.8, (180, 138, 50))


def _ball(canvas: Canvas, used: bool) -> None:
    canvas.ellipse((0, 0), 13, 13, (170, 70, 20))
    canvas.ellipse((-0.5, -0.5), 12, 12, (236, 122, 44))
    canvas.strokes([[(-12, 0), (0, 2), (12, 0)], [(0, -12), (2, 0), (0, 12)]], 1.2, (70, 36, 20))


def _dumbbell(canvas: Canvas, used: bool) -> None:
    canvas.stroke([(-15, 0), (15, 0)], 4, (130, 134, 142))
    for outer, inner, right in ((-21, -15, -11), (11, 11, 21)):
        canvas.box(outer, -11, right, 11, (40, 42, 50))
        canvas.box(inner, -11, inner + 4, 11, (74, 76, 88))


def _chair(canvas: Canvas, used: bool) -> None:
    # A side view that is open to the right; feet at the origin's row.
    canvas.strokes([[(-17, 0), (-17, -78)], [(16, 0), (16, -32)]], 5, shade(WOOD, 0.72))
    canvas.stroke([(-15, -14), (15, -14)], 3, shade(WOOD, 0.6))
    canvas.box(-20, -36, 20, -30, WOOD)
    canvas.boxes([(-20.5, -80, -14, -46), (-18, -39, 19, -35)], (184, 66, 58))


def _table(canvas: Canvas, used: bool) -> None:
    canvas.boxes([(left, -58, left + 6, 0) for left in (-38, 32)], shade(WOOD, 0.75))
    canvas.box(-42, -60, 42, -52, shade(WOOD, 0.85))
    canvas.box(-46, -66, 46, -59, WOOD)
    canvas.box(-46, -66, 46, -64, shade(WOOD, 1.25))


def _sofa(canvas: Canvas, used: bool) -> None:
    blue = (74, 104, 150)
    canvas.boxes([(foot, -6, foot + 6, 0) for foot in (-70, 64)], (70, 46, 30))
    canvas.box(-74, -72, 74, -20, shade(blue, 0.82))
    canvas.box(-2, -70, 1, -30, shade(blue, 0.66))
    canvas.box(-74, -32, 74, -5, blue)
    canvas.box(-70, -36, 70, -28, shade(blue, 1.22))
    for left in (-84, 68):
        canvas.limb([(left + 8, -42), (left + 8, -12)], 17, 17, shade(blue, 0.94))


THINGS = {
    "bottle": Thing("cup/glass/bottle", _bottle, 12, 44, 15),
    "book": Thing("book", _book, 32, 30, 4),
    "pillow": Thing("pillow", _pillow, 44, 28, 13),
    "dish": Thing("dish", _dish, 34, 30, 4),
    "towel": Thing("towel", _towel, 30, 30, 5),
    "box": Thing("box", _box, 42, 34, 17),
    "sandwich": Thing("sandwich", _sandwich, 26, 18, 8),
    "laptop": Thing("laptop", _laptop, 48, 30, 4),
    "broom": Thing("broom", _broom, 24, 100, 62),
    "ball": Thing("ball", _ball, 26, 26, 13),
    "dumbbell": Thing("dumbbell", _dumbbell, 42, 22, 11),
    "chair": Thing("chair", _chair, 40, 80),
    "table": Thing("table", _table, 92, 66),
    "sofa": Thing("sofa/couch", _sofa, 168, 72),
}
TABLE_TOP, CHAIR_SEAT, SOFA_SEAT = 66.0, 39.0, 36.0  # heights above the floor
