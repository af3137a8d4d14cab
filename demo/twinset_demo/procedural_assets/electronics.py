"""Keyboard, laptop, mouse, a handheld game and a rack for mobile devices."""

import math
from functools import cache
from itertools import product

import numpy as np
from PIL import Image

from twinset_demo.canvas import Colour, shade
from twinset_demo.procedural_assets.model import Model, Paint
from twinset_demo.procedural_assets.paint import BLACK, RED, WHITE, canvas, lettering
from twinset_demo.procedural_assets.surface import Floats, around, lathe, loft, rounded, sheet, slab, tube, turn

LETTERS = ("1234567890-=", "QWERTYUIOP[]", "ASDFGHJKL;'", "ZXCVBNM,./")
KEY_COLOUR, KEY_TEXT = (40, 40, 44), (215, 215, 220)


def key_rows(width: float) -> list[list[tuple[float, float, str]]]:
    """Rows of keys from the front: (left, width, legend), in a block ``width`` wide."""
    unit = width / 15
    lefts, sizes = (0.0, 1.5, 2.8, 4.1, 10.4, 11.7, 13.0), (1.4, 1.2, 1.2, 6.2, 1.2, 1.2, 2.0)
    rows = [list(zip(lefts, sizes, ("Ctrl", "", "Alt", "", "Alt", "", "Ctrl"), strict=True))]
    for start, tail, letters in zip((2.2, 1.7, 1.5, 1.0), ("Shift", "Enter", "", "Del"), LETTERS[::-1], strict=True):
        row = [(0.0, start - 0.1, "")]
        row += [(start + i, 0.9, letter) for i, letter in enumerate(letters)]
        used = start + len(letters)
        row.append((used, 15 - used, tail))
        rows.append(row)
    rows.append([(0.0, 0.9, "Esc"), *((1.8 + i * 1.02 + (i // 4) * 0.4, 0.92, f"F{i + 1}") for i in range(12))])
    return [[(left * unit, size * unit, legend) for left, size, legend in row] for row in rows]


def _key(
    model: Model, corner: tuple[float, float, float], size: tuple[float, float], rise: float, paint: Paint
) -> None:
    """A key: a truncated pyramid of ten triangles."""
    (x, y, z), (wide, deep) = corner, size
    inset = min(0.16, rise * 0.35)

    def square(shrunk: float, height: float) -> list[tuple[float, float, float]]:
        left, right, near, far = x + shrunk, x + wide - shrunk, y + shrunk, y + deep - shrunk
        return [(left, near, z + height), (right, near, z + height), (right, far, z + height), (left, far, z + height)]

    model.add(loft([square(0, 0), square(inset / 2, rise * 0.8), square(inset, rise)]), KEY_COLOUR, "matte")
    near_left, near_right, far_right, far_left = square(inset, rise)
    model.add(sheet([[near_left, near_right], [far_left, far_right]]), paint, "matte")


@cache
def legend_picture(text: str) -> Image.Image:
    """A key's top: one picture for each legend, so that a texture holds it once."""
    picture, pen = canvas(28 if len(text) < 2 else 44, 28, KEY_COLOUR)
    if text:
        lettering(pen, (picture.width / 2, 14), text, 18 if len(text) < 2 else 13, KEY_TEXT)
    return picture


def keyboard(model: Model) -> None:
    """A black desktop keyboard with raised, lettered keys and a number pad."""
    wide, deep = 43.0, 14.5
    model.add_box((wide, deep, 1.7), (0, 0, 0), BLACK, "satin", 0.5)
    pictures = {text: legend_picture(text) for row in key_rows(29) for _, _, text in row}
    row_y = (-6.2, -4.2, -2.2, -0.2, 1.8, 4.4)
    for y, row in zip(row_y, key_rows(28.5), strict=True):
        for left, size, text in row:
            _key(model, (-20.6 + left, y, 1.6), (size, 1.8), 0.8, pictures[text] if text else KEY_COLOUR)
    block = [(8.7 + column * 1.95, y) for column in range(3) for y in (1.8, -0.2)]
    for x, y in (*block, (10.65, -4.2), (8.7, -6.2), (10.65, -6.2), (12.6, -6.2)):
        _key(model, (x, y, 1.6), (1.75, 1.8), 0.8, KEY_COLOUR)
    for number in range(15):
        line, column = divmod(number, 3)
        digit = str((3 - line) * 3 + column + 1) if 1 <= line <= 3 else ""
        _key(model, (15.0 + column * 1.95, 1.8 - line * 2.0, 1.6), (1.75, 1.8), 0.8, pictures.get(digit, KEY_COLOUR))
    for light in range(3):
        model.add_box((0.5, 0.3, 0.1), (16 + light * 1.4, 5.4, 1.65), (60, 220, 90), radius=0.05)
    model.collide_box((-wide / 2, wide / 2), (-deep / 2, deep / 2), (0, 2.1))


def laptop(model: Model) -> None:
    """An open black laptop: keys, touch pad, a lit screen leaning back."""
    wide, deep = 33.0, 22.5
    model.add_box((wide, deep, 1.6), (0, 0, 0), (30, 30, 33), "satin", 0.4)
    for number, keys in enumerate(key_rows(27.5)):
        for left, size, text in keys:
            corner = (-13.75 + left, -2.2 + number * 1.95 + 0.2, 1.55)
            _key(model, corner, (size, 1.75), 0.3, legend_picture(text) if text else (52, 52, 56))
    model.add_box((9.0, 6.0, 0.12), (0, -6.6, 1.58), (64, 64, 68), "satin", 0.05)
    screen, pen = canvas(400, 250, (30, 96, 190))
    for y in range(250):
        pen.line((0, y, 400, y), (24 + y // 6, 80 + y // 3, 170 + y // 4))
    pen.rectangle((36, 34, 210, 160), WHITE)
    pen.rectangle((36, 34, 210, 50), (60, 64, 72))
    for line in range(6):
        pen.rectangle((48, 62 + line * 15, 190 - line * 11 % 40, 68 + line * 15), (150, 154, 162))
    pen.rectangle((236, 62, 360, 150), (250, 200, 60))
    pen.polygon([(236, 150), (280, 96), (312, 128), (334, 108), (360, 150)], (46, 130, 70))
    pen.rectangle((0, 232, 400, 250), (20, 24, 34))
    lid = Model()
    lid.add_box((wide, 0.8, 21.5), (0, 0, 0), (26, 26, 29), "satin", 0.35)
    lid.add_box((wide - 2.0, 0.1, 18.6), (0, -0.4, 1.8), BLACK, "gloss", 0.04, front=screen)
    for surface, paint, finish in lid.surfaces:
        model.add(surface.turned("x", -17).moved(0, deep / 2 - 0.5, 1.5), paint, finish)
    corners = [(x, y, z) for x in (-wide / 2, wide / 2) for y in (-0.4, 0.4) for z in (0, 21.5)]
    model.collide(np.array(corners) @ turn("x", -17).T + (0, deep / 2 - 0.5, 1.5))
    model.add(tube([(-12, deep / 2 - 0.3, 1.5), (12, deep / 2 - 0.3, 1.5)], 0.6, 10), (20, 20, 22))
    model.collide_box((-wide / 2, wide / 2), (-deep / 2, deep / 2), (0, 1.7))


def mouse(model: Model) -> None:
    """A white gaming mouse: arched shell, two buttons, wheel, side buttons, a red light strip and its cable."""
    count, angles = 19, around(40)
    stations = -np.cos(np.linspace(0, math.pi, count))  # denser towards the rounded ends
    s, across, up = stations[:, None], np.cos(angles), np.sin(angles)
    end = np.sqrt(np.maximum(1 - np.abs(s) ** 5, 0.0))
    wide = (3.1 + 0.35 * np.cos(2.6 * s)) * end**0.7 + 0.01
    tall = 3.9 * (1 - (0.28 * (s - 0.25) ** 2 + 0.12 * s * s)) * end + 0.02
    x = wide * np.sign(across) * np.abs(across) ** 0.8
    z = np.where(up > 0, tall * np.abs(up) ** 0.9, 0.0) + 0.02
    rings = np.stack(np.broadcast_arrays(-x, 6.2 * s, z), 2)
    skin = loft(rings)
    model.add(skin, WHITE, "gloss", solid=True)

    def above(x: float, y: float, out: float = 0.05) -> Floats:
        s = float(np.interp(y / 6.2, stations, np.arange(count)))
        i = min(int(s), count - 2)
        top = (rings[i] * (1 - (s - i)) + rings[i + 1] * (s - i))[1:20]
        order = np.argsort(top[:, 0])
        return np.array([x, y, float(np.interp(x, top[order, 0], top[order, 2])) + out])

    seam = [above(0, y, 0.0) for y in np.linspace(-5.9, 0.2, 14)]
    model.add(tube(seam, 0.14, 6), BLACK, "matte")
    split = [above(x, 0.3 + 0.06 * x * x, 0.0) for x in np.linspace(-3.0, 3.0, 15)]
    model.add(tube(split, 0.1, 6, up=(0, 1, 0)), (90, 90, 94), "matte")
    wheel = lathe(rounded([(0, -0.4), (1.0, -0.4), (1.0, 0.4), (0, 0.4)], 0.15), 24).turned("y", 90)
    height = float(above(0, -3.4)[2])
    model.add(wheel.moved(0, -3.4, height - 0.45), (40, 40, 44), "matte")
    model.add(lathe([(1.03, -0.15), (1.03, 0.15)], 24).turned("y", 90).moved(0, -3.4, height - 0.45), RED)
    for side in (-1, 1):
        strip = [above(side * (2.55 - 0.25 * abs(y) / 6), y, 0.02) for y in np.linspace(-3.2, 5.0, 14)]
        model.add(tube(strip, 0.16, 6), RED, "gloss")
    for y in (-1.2, 1.2):
        spot = above(-2.95, y)
        model.add_box((0.5, 1.9, 0.5), (float(spot[0]), y, float(spot[2]) - 0.5), (60, 60, 64), radius=0.2)
    logo, pen = canvas(64, 64, WHITE)
    pen.polygon([(32, 6), (56, 20), (50, 50), (32, 60), (14, 50), (8, 20)], RED)
    pen.polygon([(32, 18), (44, 26), (40, 44), (32, 48), (24, 44), (20, 26)], WHITE)
    badge = [[above(x, y, 0.06) for x in np.linspace(-1.1, 1.1, 5)] for y in np.linspace(1.8, 4.0, 5)]
    model.add(sheet(badge), logo, "gloss")
    cable = [(0, -6.0, 0.8), (0, -6.8, 0.6), (0.3, -8.0, 0.25)]
    cable += [(1.4, -9.4, 0.22), (3.2, -10.0, 0.22), (5.0, -9.6, 0.22)]
    model.add(tube(cable, 0.22, 8), (50, 50, 54), "matte")


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
