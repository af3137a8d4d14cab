"""Kitchen things of metal: toaster, milk frother, pressure cooker, frying pan."""

import math

import numpy as np

from twinset_demo.procedural_assets.model import Model
from twinset_demo.procedural_assets.paint import BLACK, SILVER, STEEL, WHITE, brushed, canvas, lettering
from twinset_demo.procedural_assets.surface import Point2, Surface, box, lathe, rounded, sheet, tube

DARK = (26, 26, 28)


def label(radius: float, angle: float, columns: int, heights: Point2) -> Surface:
    """A label bent around the front of a cylinder, ``angle`` to both sides, between two heights."""
    turns = np.linspace(-angle, angle, columns) - math.pi / 2
    return sheet([[(radius * math.cos(a), radius * math.sin(a), z) for a in turns] for z in heights])


def toaster(model: Model) -> None:
    """A steel toaster for two slices: slots with toast in them, lever and dial on its black right end."""
    wide, deep, tall = 26.0, 16.0, 18.0
    shine = brushed(STEEL, 2)
    for side in box((wide, deep, tall), 3.2, 4).values():
        model.add(side.moved(0, 0, 1.2), shine, "steel")
    model.add_box((wide - 1, deep - 0.6, 2.0), (0, 0, 0), DARK, radius=0.6)
    for y in (-3.2, 3.2):
        model.add_box((18.5, 2.9, 0.5), (0, y, tall + 0.92), SILVER, "steel", 0.2)
        model.add_box((17.2, 1.9, 0.2), (0, y, tall + 1.28), BLACK, "matte", 0.08)
        model.add_box((11.5, 1.3, 4.2), (0, y, tall - 0.2), (222, 160, 84), "matte", 0.6, top=(236, 196, 130))
    for end in (-1, 1):
        model.add_box((1.6, deep - 3.4, tall - 3.2), (end * (wide / 2 - 0.1), 0, 1.4), DARK, radius=0.7)
    right = wide / 2 + 0.7
    model.add_box((0.3, 0.9, 9.0), (right, -2.6, 6.6), (4, 4, 4), radius=0.1)
    model.add_box((2.6, 3.6, 1.4), (right + 1.0, -2.6, 12.4), SILVER, "steel", 0.4)
    dial = lathe(rounded([(1.7, 0), (1.5, 1.4), (0, 1.4)], 0.3), 28).turned("y", 90)
    model.add(dial.moved(right, 3.0, 6.0), SILVER, "steel")
    model.add_box((0.2, 0.3, 1.4), (right + 1.4, 3.0, 6.2), (200, 30, 30), radius=0.08)
    plate, pen = canvas(160, 40, (206, 208, 212))
    lettering(pen, (80, 20), "TOASTER", 26, (40, 40, 44))
    model.add_box((7.0, 0.12, 1.7), (0, -deep / 2 - 0.02, 4.0), (206, 208, 212), radius=0.05, front=plate)
    model.collide_box((-12.5, 12.5), (-7.5, 7.5), (0, 2))
    model.collide(np.concatenate([side.moved(0, 0, 1.2).vertices for side in box((wide, deep, tall), 3.2).values()]))


def milk_frother(model: Model) -> None:
    """A steel jug with a spout, a black handle and a lid with a knob, on its black heating base with a lit button."""
    base: list[Point2] = [(0, 0), (7.0, 0), (7.4, 0.5), (7.2, 2.0), (5.6, 3.0), (0, 3.0)]
    model.add(lathe(rounded(base, 0.5), 40), DARK)
    jug: list[Point2] = [(5.3, 3.0), (5.5, 3.2), (5.5, 15.6), (5.7, 16.2)]
    model.add(lathe(rounded(jug, 0.3), 48), brushed(STEEL), "steel")
    lid = [(5.75, 16.2), (5.75, 16.9), (4.8, 17.7), (1.4, 18.1)]
    knob = [(1.1, 18.8), (1.5, 19.8), (1.2, 20.3), (0, 20.4)]
    model.add(lathe(rounded([*lid, *knob], 0.4), 40), DARK, "gloss")
    spout = tube([(-4.6, 0, 12.6), (-5.9, 0, 14.2), (-7.0, 0, 15.8)], (2.2, 1.9, 1.4), 12, up=(0, 1, 0))
    model.add(spout, STEEL, "steel")
    handle = [(x, 0.0, z) for x, z in rounded([(5.2, 14.8), (8.6, 15.2), (9.6, 13.6), (9.0, 6.4), (5.3, 5.6)], 1.6, 4)]
    model.add(tube(handle, 0.75, 10, flat=1.3, up=(0, 1, 0)), DARK)
    button = lathe(rounded([(1.0, 0), (1.0, 0.5), (0, 0.6)], 0.2), 24).turned("x", 90).moved(0, -6.9, 1.4)
    model.add(button, SILVER, "steel")
    model.add(lathe([(0.5, 0.62), (0, 0.66)], 16).turned("x", 90).moved(0, -6.9, 1.4), (60, 160, 255), "gloss")
    sign, pen = canvas(200, 84, (206, 208, 212))
    lettering(pen, (100, 24), "MILK", 34, (40, 40, 44))
    lettering(pen, (100, 60), "FROTHER", 30, (40, 40, 44))
    model.add(label(5.54, 0.62, 9, (8.4, 11.6)), sign, "satin")
    model.collide(lathe(base, 20).vertices)
    model.collide(lathe([(5.5, 3.0), (5.7, 16.9), (4.8, 17.7)], 20).vertices)
    model.collide(lathe([(1.4, 17.7), (1.5, 19.8), (1.2, 20.4)], 12).vertices)
    model.collide_along(handle, (0.6, 0.8, 0), 4)


def pressure_cooker(model: Model) -> None:
    """A black electric pressure cooker: steel band, control panel with display, domed lid with handle and valve."""
    pot: list[Point2] = [(0, 0), (11.5, 0), (12.4, 1.0), (13.0, 3.0), (13.0, 17.6)]
    model.add(lathe(rounded(pot, 0.6), 56), (24, 24, 26), "gloss")
    model.add(lathe([(13.05, 4.0), (13.15, 4.2), (13.15, 6.0), (13.05, 6.2)], 56), STEEL, "steel")
    model.add(lathe(rounded([(13.0, 17.4), (13.8, 17.6), (13.8, 19.0), (13.0, 19.2)], 0.3), 56), STEEL, "steel")
    lid: list[Point2] = [(13.2, 19.0), (13.2, 20.2), (11.0, 22.6), (6.5, 24.0), (0, 24.4)]
    model.add(lathe(rounded(lid, 1.5, 4), 56), (30, 30, 32), "gloss")
    model.add_box((13.0, 3.6, 1.6), (0, 0, 26.2), DARK, radius=0.7)
    for x in (-5.2, 5.2):
        model.add_box((2.0, 3.0, 3.4), (x, 0, 23.6), DARK, radius=0.6)
    valve = lathe(rounded([(1.2, 0), (1.2, 1.2), (0.8, 2.2), (0, 2.2)], 0.3), 20)
    model.add(valve.moved(0, 7.6, 23.2), SILVER, "steel")
    model.add(lathe(rounded([(0.8, 0), (0.8, 0.9), (0, 0.9)], 0.2), 16).moved(4.0, 6.0, 23.4), (200, 30, 30))
    panel, pen = canvas(260, 230, (44, 44, 48))
    pen.rounded_rectangle((4, 4, 256, 226), 16, outline=(150, 152, 156), width=4)
    pen.rectangle((70, 22, 190, 76), (20, 60, 40))
    lettering(pen, (130, 49), "12:30", 46, (120, 255, 150))
    lettering(pen, (130, 100), "PRESSURE COOKER", 22, WHITE)
    for number, word in enumerate(("SOUP", "MEAT", "RICE", "FISH", "BEAN", "SLOW", "TIME", "STOP", "WARM")):
        x, y = 26 + number % 3 * 74, 122 + number // 3 * 34
        pen.rounded_rectangle((x, y, x + 60, y + 22), 8, (90, 92, 98))
        lettering(pen, (x + 30, y + 11), word, 15, WHITE)
    model.add(label(13.3, 0.48, 11, (6.4, 17.0)), panel)
    for side in (-1, 1):
        model.add_box((3.2, 5.4, 1.8), (side * 14.0, 0, 14.4), DARK, radius=0.7)
        model.collide_box((side * 12, side * 15.5), (-2.6, 2.6), (14.4, 16.2))
    model.collide(lathe([(11.5, 0), (13.0, 3.0), (13.8, 19.0), (11.0, 22.6), (6.5, 24.2)], 24).vertices)
    model.collide_box((-6.4, 6.4), (-1.8, 1.8), (23.8, 27.8))


def frying_pan(model: Model) -> None:
    """A black frying pan: flared wall, dull coating, long handle with a steel neck and a hanging hole."""
    wall: list[Point2] = [(0, 0), (9.8, 0), (10.4, 0.3), (13.2, 4.4), (13.2, 4.8), (12.8, 4.8), (10.0, 0.9)]
    model.add(lathe(rounded(wall, 0.5), 56), (24, 24, 26), "satin")
    coat, pen = canvas(64, 128, (36, 36, 40))
    for row in range(8, 128, 12):
        pen.line((0, row, 64, row), (46, 46, 50), 2)
    model.add(lathe([(10.0, 0.9), (0, 0.85)], 56), coat, "satin")
    model.add(lathe([(13.22, 4.4), (13.26, 4.85), (12.78, 4.85)], 56), (120, 122, 126), "steel")
    neck = [(12.2, 0, 3.2), (14.4, 0, 4.4), (16.4, 0, 5.2)]
    model.add(tube(neck, (1.5, 1.1, 1.0), 10, flat=0.5, up=(0, 0, 1)), STEEL, "steel")
    grip = [(15.8, 0, 5.0), (18.5, 0, 5.9), (23, 0, 6.6), (28, 0, 6.7), (31.5, 0, 6.4)]
    model.add(tube(grip, (1.2, 1.35, 1.3, 1.5, 1.6), 14, flat=0.55), (20, 20, 22))
    ring = [(31.2 + 0.8 * math.cos(a), 0.8 * math.sin(a), 7.2) for a in np.arange(20) * math.tau / 20]
    model.add(tube(ring, 0.25, 6, closed=True), SILVER, "steel")
    model.add(lathe([(0.7, 0), (0, 0)], 16).moved(31.2, 0, 7.28), (4, 4, 4), "matte")
    rivet = lathe(rounded([(0.45, 0), (0.3, 0.3), (0, 0.35)], 0.1), 12).turned("y", -60)
    for y in (-1.0, 1.0):
        model.add(rivet.moved(11.6, y, 2.6), SILVER, "steel")
    model.collide_walls([(9.8, 0.0), (10.4, 0.4), (13.2, 4.8)], [(9.6, 0.9), (10.0, 0.9), (12.8, 4.8)])
    model.collide_along([neck[0], neck[2], grip[1]], (0, 1, 0.5), 2)
    model.collide_along(grip[1:], (0, 1.3, 0.7), 3)
    # A heavy bottom keeps it from tipping over its handle.
    for _ in range(3):
        model.collide(lathe([(9.8, 0), (9.8, 0.9)], 20).vertices)
