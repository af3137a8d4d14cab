"""Shoes of all kinds: leather, sneakers, running shoes, canvas, a boot."""

from __future__ import annotations

from PIL import Image, ImageDraw

from generators.builtin.canvas import Colour, shade
from generators.builtin.procedural_assets.cobbling import BOOT, LOW, RUNNING, shoe
from generators.builtin.procedural_assets.model import Model
from generators.builtin.procedural_assets.paint import BLACK, OFF_WHITE, WHITE, canvas, grain, woven


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
    light = sum(colour) > 330
    upper = grain(panels(colour, shade(colour, 0.82)), 5, 4)
    shoe(model, LOW, upper, OFF_WHITE if light else shade(OFF_WHITE, 0.93), WHITE, shade(colour, 0.8), (150, 110, 70))


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
    _toe_cap(pen)
    for side in (-1, 1):
        pen.line([(254 + side * x, y) for x, y in ((34, 84), (64, 78), (72, 0))], (170, 166, 156), 3)
        for y in (14, 31, 48, 65):
            x = 254 + side * 46
            pen.ellipse((x - 4, y - 4, x + 4, y + 4), (120, 120, 124))
    sole, line = canvas(508, 40, WHITE)
    line.rectangle((0, 12, 508, 17), (36, 60, 140))
    shoe(model, LOW, woven(picture, 3, 0.14), sole, WHITE, colour, (190, 150, 100), "cloth")


def _toe_cap(pen: ImageDraw.ImageDraw) -> None:
    pen.polygon([(176, 160), (190, 118), (254, 100), (318, 118), (332, 160)], (250, 250, 248))
    pen.line([(176, 160), (190, 118), (254, 100), (318, 118), (332, 160)], (150, 150, 146), 3)


def boot(model: Model, colour: Colour) -> None:
    """A laced leather boot with a high shaft and a heavy sole."""
    upper = panels(colour, shade(colour, 1.5))
    shoe(model, BOOT, upper, (34, 32, 32), (90, 80, 60), shade(colour, 1.3), BLACK, "gloss")
