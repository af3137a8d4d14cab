"""Pill bottles and a drinking bottle."""

from __future__ import annotations

from PIL import Image

from generators.builtin.canvas import Colour, shade
from generators.builtin.procedural_assets.model import Model
from generators.builtin.procedural_assets.paint import BLACK, RED, WHITE, canvas, lettering
from generators.builtin.procedural_assets.surface import Point2, lathe, rounded


def ribbed(colour: Colour, ribs: int = 48) -> Image.Image:
    """Vertical grooves around a cap."""
    picture, pen = canvas(ribs * 8, 32, colour)
    for x in range(0, ribs * 8, 8):
        pen.rectangle((x, 0, x + 2, 32), shade(colour, 0.6))
    return picture


def drug_bottle(model: Model, colour: Colour) -> None:
    """A round pill bottle in ``colour`` with a ribbed white cap and a pharmacy label."""
    label, pen = canvas(508, 160, WHITE)
    pen.rectangle((0, 0, 508, 16), shade(colour, 0.8))
    for middle in (64, 191, 318, 445):
        pen.rectangle((middle - 50, 30, middle - 42, 54), RED)
        pen.rectangle((middle - 58, 38, middle - 34, 46), RED)
        lettering(pen, (middle + 14, 43), "DRUG", 28, BLACK)
        for row in (66, 82, 98):
            pen.rectangle((middle - 56, row, middle + 48, row + 5), (150, 150, 155))
        pen.rectangle((middle - 56, 120, middle + 10, 128), shade(colour, 0.8))
    body: list[Point2] = [(0, 0), (3.0, 0), (3.0, 7.6), (2.5, 8.6), (2.3, 8.8), (2.3, 9.2)]
    model.add(lathe(rounded(body, 0.7), 40), colour, "gloss")
    model.add(lathe([(3.03, 1.7), (3.03, 5.6)], 40), label, "satin")
    model.add(lathe([(2.3, 9.0), (2.85, 9.0), (2.85, 9.15)], 40), WHITE)
    model.add(lathe([(2.85, 9.15), (2.8, 11.1)], 40), ribbed(WHITE))
    model.add(lathe(rounded([(2.8, 11.1), (2.7, 11.5), (0, 11.5)], 0.2), 40), WHITE)
    model.collide(lathe(body, 20).vertices)
    model.collide(lathe([(2.85, 9.0), (2.8, 11.5)], 20).vertices)


def drinking_bottle(model: Model, colour: Colour) -> None:
    """A sports bottle: waisted body, shoulders, a black screw cap and a drinking spout."""
    body = [(0.0, 0.0), (3.6, 0.0), (3.7, 6.5), (3.2, 8.5)]
    body += [(3.2, 9.5), (3.7, 11.5), (3.7, 16.0), (2.2, 18.6), (2.2, 19.4)]
    model.add(lathe(rounded(body, 0.9), 40), colour, "gloss")
    model.add(lathe([(2.2, 19.0), (2.6, 19.0), (2.6, 19.2)], 40), BLACK)
    model.add(lathe([(2.6, 19.2), (2.6, 21.0)], 40), ribbed((32, 32, 36)))
    spout = rounded([(2.6, 21.0), (2.4, 21.4), (1.1, 21.7), (1.0, 22.6), (1.2, 23.2), (0.9, 23.6), (0, 23.6)], 0.3)
    model.add(lathe(spout, 32), BLACK)
    model.collide(lathe(body, 20).vertices)
    model.collide(lathe([(2.6, 19.0), (2.6, 21.2), (1.1, 23.6)], 16).vertices)
