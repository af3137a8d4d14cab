"""The kitchen counter from above: vessels in its middle, food, tools and hands."""

import math

import numpy as np

from twinset_demo.canvas import HEIGHT, WIDTH, Canvas, Colour, Point, shade
from twinset_demo.miniature.room import add_grain

MIDDLE: Point = (150.0, 112.0)
SKIN, SLEEVE = (226, 176, 140), (70, 96, 140)
STEEL = (186, 192, 200)
CRUST, CRUMB, CHEESE = (160, 100, 48), (240, 214, 164), (250, 204, 72)
GOLDEN = math.pi * (3 - math.sqrt(5))  # angle that spreads points of a spiral evenly


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
    wires = [[(-50, 0), (-24, out), (-8, out), (0, out * 0.4)] for out in (-14, -7, 0, 7, 14)]
    here.strokes(wires, 1.6, (236, 240, 244))
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


def cucumber(canvas: Canvas, start: Point, length: float) -> None:
    """What is left of a cucumber, from its cut end to the right."""
    canvas.limb([start, (start[0] + length, start[1])], 30, 26, (52, 126, 58))
    canvas.stroke([(start[0] + 6, start[1] - 5), (start[0] + length, start[1] - 5)], 3, (92, 166, 84))
    canvas.ellipse(start, 6, 14, (206, 232, 170))


def pepper(canvas: Canvas, start: Point, length: float) -> None:
    """What is left of a red bell pepper, from its cut end to its green stalk on the right."""
    canvas.limb([start, (start[0] + length, start[1])], 40, 50, (204, 40, 36))
    canvas.limb([(start[0] + 4, start[1] - 10), (start[0] + length, start[1] - 12)], 8, 10, (232, 84, 72))
    canvas.limb([(start[0] + length + 22, start[1]), (start[0] + length + 36, start[1] - 4)], 9, 7, (70, 130, 50))
    canvas.ellipse(start, 7, 18, (244, 190, 170))


def slices(canvas: Canvas, end: Point, count: int, rim: Colour, flesh: Colour) -> None:
    """A row of ``count`` slices that ends at ``end``, the first cut lying leftmost."""
    for n in range(count):
        here = canvas.at((end[0] - 15 * (count - n), end[1] + 6 * math.sin(2.0 * n)))
        here.ellipse((0, 0), 14, 15, rim)
        here.ellipse((0, 0), 11.5, 12.5, flesh)
        here.ellipses(scatter(5, 7), 1.4, 1.4, shade(flesh, 0.82))


def tomato(canvas: Canvas, centre: Point, radius: float = 24.0) -> None:
    """A whole tomato with its green star."""
    here = canvas.at(centre)
    here.discs((radius, (190, 32, 28)))
    here.ellipse((-1, -1), radius * 0.93, radius * 0.93, (222, 52, 40))
    here.ellipse((-radius * 0.4, -radius * 0.4), radius * 0.25, radius * 0.18, (246, 150, 130))
    for tip in _fifths(radius * 0.5):
        here.limb([(0, 0), tip], 5, 2.5, (64, 130, 50))


def _fifths(radius: float) -> list[Point]:
    return [(radius * math.cos(n * 2 * math.pi / 5), radius * math.sin(n * 2 * math.pi / 5)) for n in range(5)]


def tomato_slice(canvas: Canvas, centre: Point, radius: float = 22.0) -> None:
    """A round slice of tomato."""
    here = canvas.at(centre)
    here.discs((radius, (200, 36, 30)), (radius * 0.88, (236, 92, 70)))
    here.ellipses(_fifths(radius * 0.5), radius * 0.22, radius * 0.22, (250, 196, 120))


def leaves(canvas: Canvas, centre: Point, radius: float, count: int, green: Colour = (104, 176, 66)) -> None:
    """A heap of salad or herb leaves."""
    for n, (x, y) in enumerate(scatter(count, radius)):
        here = canvas.at((centre[0] + x, centre[1] + y), n * 1.3)
        size = 17 if count < 20 else 12
        here.ellipse((0, 0), size, size * 0.62, shade(green, 0.8 + 0.3 * ((n * 7) % 5) / 5))
        here.stroke([(-size * 0.8, 0), (size * 0.8, 0)], 1.4, shade(green, 1.35))


def crumbs(canvas: Canvas, centre: Point, radius: float, count: int, colour: Colour) -> None:
    """Grated cheese or the like."""
    for n, (x, y) in enumerate(scatter(count, radius)):
        canvas.at((centre[0] + x, centre[1] + y), n * 0.9).limb([(-6, 0), (6, 0)], 4.5, 4.5, colour)


def eggs(canvas: Canvas, centre: Point, radius: float) -> None:
    """Beaten egg that sets in a pan."""
    here = canvas.at(centre)
    here.discs((radius, (232, 176, 60)), (radius * 0.94, (250, 212, 92)))
    here.ellipses(scatter(9, radius * 0.75), 6, 4, (252, 228, 140))


def pancake(canvas: Canvas, centre: Point, radius: float = 50.0, done: float = 1.0) -> None:
    """A pancake, pale batter (``done`` 0) to brown (1)."""
    pale, brown = (244, 224, 168), (196, 128, 58)
    red, green, blue = (round(p + (b - p) * done) for p, b in zip(pale, brown, strict=True))
    here, colour = canvas.at(centre), (red, green, blue)
    here.discs((radius, shade(colour, 0.84)), (radius * 0.93, colour))
    here.ellipse((-3, -2), radius * 0.7, radius * 0.66, shade(colour, 1.1))


def bread(canvas: Canvas, centre: Point, scale: float = 1.0) -> None:
    """A slice of toast bread."""
    here = canvas.at(centre)
    for inset, colour in ((0.0, CRUST), (5.0, CRUMB)):
        size = 58 * scale - inset
        top, foot = size * 0.9, size * 0.86
        here.polygon([(-top, -size * 0.5), (top, -size * 0.5), (foot, size), (-foot, size)], colour)
        here.ellipses([(side * size * 0.5, -size * 0.55) for side in (-1, 1)], size * 0.52, size * 0.4, colour)


def cheese(canvas: Canvas, centre: Point) -> None:
    """A square slice of cheese with holes."""
    here = canvas.at(centre, 0.12)
    here.box(-42, -40, 42, 40, (226, 168, 40))
    here.box(-40, -38, 40, 38, CHEESE)
    here.ellipses(((-20, -14), (14, -22), (22, 14), (-12, 18)), 6, 5, (230, 174, 48))
