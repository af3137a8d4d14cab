"""The kitchen counter from above: vessels in its middle, tools and hands."""

from __future__ import annotations

import math

import numpy as np

from generators.builtin.canvas import HEIGHT, WIDTH, Canvas, Colour, Point, shade
from generators.builtin.miniature.room import add_grain

MIDDLE: Point = (150.0, 112.0)
SKIN, SLEEVE = (226, 176, 140), (70, 96, 140)
STEEL = (186, 192, 200)
GOLDEN = math.pi * (3 - math.sqrt(5))


def paint_counter(top: Colour, seed: int) -> Canvas:
    """An empty counter of stone or wood."""
    canvas = Canvas.blank(top)
    random = np.random.Generator(np.random.PCG64(seed))
    for _ in range(60):
        x, y, long = random.uniform(0, WIDTH), random.uniform(0, HEIGHT), random.uniform(20, 90)
        canvas.stroke([(x, y), (x + long, y + random.uniform(-4, 4))], 1.5, shade(top, random.uniform(0.9, 1.06)))
    add_grain(canvas, random)
    return canvas


def scatter(count: int, radius: float) -> list[Point]:
    """Evenly spread points of a disc around the origin, on a sunflower spiral."""
    spiral = ((radius * math.sqrt((n + 0.5) / count), n * GOLDEN) for n in range(count))
    return [(out * math.cos(turn), out * math.sin(turn)) for out, turn in spiral]


def board(canvas: Canvas) -> None:
    """A wooden cutting board, 190 x 120."""
    here = canvas.at((160, 112))
    here.box(-93, -57, 97, 65, (96, 70, 48))
    here.box(-95, -60, 95, 60, (206, 162, 106))
    here.strokes([[(-90, row), (90, row + 3)] for row in range(-50, 60, 14)], 1.2, (188, 142, 88))
    here.ellipse((82, -46), 6, 6, (120, 88, 58))


def bowl(canvas: Canvas, glaze: Colour, filling: Colour | None = None) -> None:
    """A bowl; ``filling`` is the colour of what it holds."""
    here = canvas.at(MIDDLE)
    here.ellipse((4, 5), 80, 80, (92, 88, 84))
    here.discs((80, glaze), (72, shade(glaze, 0.82)))
    if filling:
        here.discs((64, shade(filling, 0.9)), (80 * 0.74, filling))


def pan(canvas: Canvas) -> None:
    """A black frying pan, its handle towards the upper right."""
    here, radius = canvas.at(MIDDLE), 74.0
    here.stroke([(radius * 0.6, -radius * 0.6), (radius * 1.75, -radius * 1.2)], 17, (34, 34, 38))
    here.stroke([(radius * 0.9, -radius * 0.76), (radius * 1.7, -radius * 1.17)], 9, (60, 60, 66))
    here.discs((radius, (40, 40, 44)), (radius * 0.93, (104, 104, 110)), (radius * 0.87, (56, 56, 62)))


def pot(canvas: Canvas, filling: Colour | None = None) -> None:
    """A steel pot with two handles."""
    here, radius = canvas.at(MIDDLE), 78.0
    here.stroke([(-radius - 14, 0), (radius + 14, 0)], 22, shade(STEEL, 0.6))
    here.discs((radius, STEEL), (radius * 0.93, shade(STEEL, 0.72)))
    if filling:
        here.discs((radius * 0.88, filling))
        here.ellipses(scatter(7, radius * 0.6), 5, 3, shade(filling, 1.18))


def plate(canvas: Canvas) -> None:
    """A white plate with a blue rim."""
    here = canvas.at(MIDDLE)
    here.ellipse((4, 5), 80, 80, (96, 92, 88))
    here.discs((80, (86, 130, 192)), (76, (246, 247, 250)), (80 * 0.68, (226, 230, 236)), (80 * 0.66, (250, 250, 252)))


def fist(canvas: Canvas, where: Point, elbow: Point) -> None:
    """A hand that grips something, with its forearm from ``elbow`` (outside the picture)."""
    cuff = (where[0] + (elbow[0] - where[0]) * 0.45, where[1] + (elbow[1] - where[1]) * 0.45)
    canvas.limb([cuff, where], 27, 21, SKIN)
    canvas.limb([elbow, cuff], 42, 33, SLEEVE)
    here = canvas.at(where, math.atan2(where[1] - elbow[1], where[0] - elbow[0]) + math.pi / 2)
    here.ellipse((0, 0), 17, 15, shade(SKIN, 0.84))
    here.ellipse((0, 0), 16, 14, SKIN)
    for x in (-12, -4, 4, 12):
        here.limb([(x, -12), (x + 0.5, 2)], 8.5, 8, SKIN)
    here.limb([(15, 6), (10, -6)], 8, 7, SKIN)


def knife(canvas: Canvas, tip: Point, angle: float) -> None:
    """A chef's knife that points along ``angle`` (clockwise from the right), its tip at ``tip``."""
    here = canvas.at(tip, angle)
    here.polygon([(0, 0), (-14, -11), (-92, -12), (-92, 3), (-30, 4)], STEEL)
    here.polygon([(0, 0), (-30, 4), (-92, 3), (-92, -1), (-30, 0)], (232, 236, 242))
    here.limb([(-92, -5), (-134, -5)], 14, 15, (50, 40, 38))


def spoon(canvas: Canvas, bowl_at: Point, hand: Point) -> None:
    """A wooden spoon from its bowl to the hand."""
    canvas.stroke([bowl_at, hand], 7, (150, 104, 58))
    here = canvas.at(bowl_at, math.atan2(bowl_at[1] - hand[1], bowl_at[0] - hand[0]))
    here.ellipse((0, 0), 19, 12, (136, 92, 50))
    here.ellipse((1, 0), 15, 9, (178, 130, 78))


def whisk(canvas: Canvas, end: Point, hand: Point) -> None:
    """A wire whisk from its round end to the hand."""
    along = math.atan2(end[1] - hand[1], end[0] - hand[0])
    here = canvas.at(end, along)
    for width in (-14, -7, 0, 7, 14):
        here.stroke([(-50, 0), (-24, width), (-8, width), (0, width * 0.4)], 1.6, (236, 240, 244))
    canvas.stroke([(end[0] - 48 * math.cos(along), end[1] - 48 * math.sin(along)), hand], 9, (70, 74, 84))


def jug(canvas: Canvas, spout: Point, colour: Colour, liquid: Colour, target: Point) -> None:
    """A jug or bottle that pours a stream from its spout to ``target``."""
    canvas.stroke([spout, ((spout[0] + target[0]) / 2 - 3, (spout[1] + target[1]) / 2), target], 7, liquid)
    canvas.ellipse(target, 13, 9, shade(liquid, 1.12))
    here = canvas.at(spout, -0.5)
    here.limb([(6, 0), (34, 0)], 14, 30, shade(colour, 0.9))
    here.limb([(36, 0), (92, 0)], 46, 46, colour)
    here.limb([(44, -8), (84, -8)], 8, 8, shade(colour, 1.3))
    here.box(50, -2, 80, 16, shade(liquid, 0.95))
