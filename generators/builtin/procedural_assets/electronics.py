"""A handheld game and a rack for mobile devices."""

from __future__ import annotations

import math
from itertools import product

import numpy as np

from generators.builtin.canvas import Colour, shade
from generators.builtin.procedural_assets.model import Model
from generators.builtin.procedural_assets.paint import BLACK, RED, WHITE, canvas, lettering
from generators.builtin.procedural_assets.surface import lathe, rounded, slab


def handheld_game(model: Model) -> None:
    """A black handheld game with red buttons and trim: screen, cross, two round buttons, speaker grill."""
    black = (26, 26, 29)
    corners = rounded([(-4.5, -7.4), (4.5, -7.4), (4.5, 7.4), (-4.5, 7.4)], 1.4, 5, closed=True)
    face, pen = canvas(270, 444, black)
    pen.rounded_rectangle((24, 30, 246, 226), 18, RED)
    pen.rounded_rectangle((36, 42, 234, 214), 10, (58, 60, 66))
    pen.rectangle((62, 58, 208, 196), (150, 178, 60))
    for x, y, w, h in ((72, 164, 126, 10), (84, 140, 40, 8), (140, 120, 44, 8), (92, 148, 14, 16), (156, 150, 18, 14)):
        pen.rectangle((x, y, x + w, y + h), (44, 74, 30))
    pen.ellipse((44, 106, 54, 116), (240, 40, 40))
    lettering(pen, (135, 242), "GAME", 20, WHITE)
    for slot in range(6):
        pen.line((176 + slot * 13, 424, 196 + slot * 13, 382), (90, 20, 22), 5)
    pen.rectangle((0, 0, 270, 8), RED)
    body = slab(corners, 2.6, 0.35)
    model.add(body, face, "satin", solid=True)
    model.add(slab(np.array(corners) * 1.015, 0.9, 0.2).moved(0, 0, 0.8), RED, "satin")
    for size in ((2.9, 1.0, 0.7), (1.0, 2.9, 0.7)):
        model.add_box(size, (-2.4, -2.5, 2.35), (70, 70, 76), radius=0.15)
    for right, near in ((1.6, -3.0), (3.2, -2.0)):
        button = lathe(rounded([(0.75, 0), (0.75, 0.7), (0, 0.75)], 0.2), 24)
        model.add(button.moved(right, near, 2.5), (226, 24, 30), "gloss")
    for left in (-0.9, 0.8):
        model.add_box((1.3, 0.45, 0.4), (left, -5.4, 2.4), RED, radius=0.18, tilt=("z", 25))


def device_rack(model: Model, body: Colour, trim: Colour, finish: str = "satin") -> None:
    """A rack with slots in which two phones and a tablet stand."""
    model.add_box((19, 13, 4.2), (0, 0, 0), body, finish, 0.5)
    model.add_box((19.2, 13.2, 1.0), (0, 0, 0.6), trim, finish, 0.3)
    model.add_box((19, 1.0, 13.0), (0, 6.0, 0), body, finish, 0.4)
    for x in (-9.0, 9.0):
        model.add_box((0.9, 12.4, 8.0), (x, 0, 0), body, finish, 0.35)
    for y in (-2.6, 1.4):
        model.add_box((17.4, 0.6, 6.0), (0, y, 0), trim, finish, 0.25)
    phones = (-4.4, -1.2, 6.8, 12.5, (28, 70, 150)), (4.2, -1.2, 6.8, 12.5, (150, 50, 110))
    icons = (WHITE, (250, 200, 60), (90, 210, 120), (240, 110, 90))
    for x, y, wide, tall, tint in (*phones, (0, 3.0, 13.5, 17.5, (30, 120, 110))):
        screen, pen = canvas(96, 160, tint)
        pen.rectangle((0, 0, 96, 14), shade(tint, 0.5))
        for row in range(4):
            for column in range(3):
                left, top = 12 + column * 28, 28 + row * 30
                pen.rounded_rectangle((left, top, left + 18, top + 18), 4, icons[(row + column) % 4])
        lean = ("x", -8.0)
        model.add_box((wide, 0.8, tall), (x, y, 3.6), BLACK, "gloss", 0.35, tilt=lean)
        model.add_box((wide - 0.8, 0.1, tall - 1.8), (x, y - 0.37, 4.5), BLACK, "gloss", 0.04, tilt=lean, front=screen)
        sides, slope = ((-1, 1), (-0.4, 0.4), (0.0, tall)), math.sin(math.radians(8))
        model.collide([(x + sx * wide / 2, y + sy + sz * slope, 3.6 + sz) for sx, sy, sz in product(*sides)])
    model.collide_box((-9.6, 9.6), (-6.6, 6.6), (0, 4.2))
    model.collide_box((-9.5, 9.5), (5.5, 6.5), (0, 13.0))
    for side in (-1, 1):
        model.collide_box((side * 8.55, side * 9.45), (-6.2, 6.2), (0, 8.0))
