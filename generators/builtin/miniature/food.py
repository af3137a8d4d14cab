"""Food on the kitchen counter, seen from above."""

from __future__ import annotations

import math

from generators.builtin.canvas import Canvas, Colour, Point, shade
from generators.builtin.miniature.kitchen import scatter

CRUST, CRUMB, CHEESE = (160, 100, 48), (240, 214, 164), (250, 204, 72)


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
