"""Toys: school bus, turtle, and dolls' furniture of painted wood."""

import math

import numpy as np
from PIL import Image

from twinset_demo.canvas import Colour, shade
from twinset_demo.procedural_assets.model import Model
from twinset_demo.procedural_assets.paint import BLACK, COLOURS, SILVER, WHITE, YELLOW, canvas, grain, lettering
from twinset_demo.procedural_assets.surface import Surface, lathe, rounded, tube

GLASS, PINE = (60, 84, 104), (196, 146, 86)


def wheel(radius: float, width: float) -> Surface:
    """A tyre lying along y, centred."""
    half, hub, rim = width / 2, radius * 0.55, radius * 0.6
    profile = rounded([(0, -half * 0.6), (hub, -half * 0.6), (rim, -half), (radius, -half), (radius, half)], 0.25)
    return lathe([*profile, (rim, half), (hub, half * 0.6), (0, half * 0.6)], 28).turned("x", 90)


def school_bus(model: Model) -> None:
    """A yellow school bus: bonnet, windows in a row, black lines along its sides, lamps, a folding stop sign."""
    long, wide, black = 22.0, 8.4, (20, 20, 22)
    side, pen = canvas(440, 168, YELLOW)
    for left in range(20, 380, 60):
        pen.rounded_rectangle((left, 22, left + 48, 72), 6, black)
        pen.rounded_rectangle((left + 3, 25, left + 45, 69), 5, GLASS)
        pen.line((left, 46, left + 48, 46), black, 3)
        pen.polygon([(left + 8, 43), (left + 22, 28), (left + 30, 28), (left + 16, 43)], (120, 150, 170))
    for row, height in ((82, 6), (116, 6), (142, 5)):
        pen.rectangle((0, row, 440, row + height), black)
    lettering(pen, (200, 102), "SCHOOL BUS", 25, black)
    pen.rounded_rectangle((386, 22, 426, 136), 5, black)
    pen.rectangle((390, 26, 404, 130), GLASS)
    pen.rectangle((408, 26, 422, 130), GLASS)
    back, pen = canvas(168, 168, YELLOW)
    pen.rounded_rectangle((18, 26, 78, 80), 5, GLASS)
    pen.rounded_rectangle((90, 26, 150, 80), 5, GLASS)
    lettering(pen, (84, 14), "SCHOOL BUS", 18, BLACK)
    for lamp in (14, 130):
        pen.ellipse((lamp, 110, lamp + 24, 134), (200, 24, 24))
    front, pen = canvas(168, 168, YELLOW)
    pen.rounded_rectangle((14, 30, 154, 86), 8, GLASS)
    pen.line((84, 30, 84, 86), BLACK, 4)
    lettering(pen, (84, 15), "SCHOOL BUS", 22, BLACK)
    body, far = (long - 4.5, wide, 8.4), _mirrored(side)
    model.add_box(
        body, (2.25, 0, 1.6), YELLOW, "gloss", 0.8, front=side, back=far, left=front, right=back, bottom=BLACK
    )
    nose, pen = canvas(160, 80, YELLOW)
    pen.rounded_rectangle((46, 14, 114, 66), 6, (30, 30, 32))
    for row in (24, 34, 44, 54):
        pen.line((50, row, 110, row), SILVER, 3)
    for lamp in (10, 122):
        pen.ellipse((lamp, 24, lamp + 28, 52), (250, 250, 225), outline=BLACK, width=3)
    bonnet, pen = canvas(120, 80, YELLOW)
    pen.rectangle((0, 34, 120, 40), black)
    hood, at = (5.6, wide - 1.2, 4.2), (-long / 2 + 2.8, 0, 1.6)
    model.add_box(hood, at, YELLOW, "gloss", 0.9, left=nose, front=bonnet, back=bonnet)
    for end in (-1, 1):
        model.add_box((0.9, wide + 0.2, 1.1), (end * (long / 2 + 0.1), 0, 1.5), (24, 24, 26), radius=0.3)
    model.add_box((long - 1, wide - 1, 1.0), (0, 0, 1.0), (24, 24, 26), radius=0.2)
    for x in (-7.2, 6.2):
        for y in (-1.0, 1.0):
            model.add(wheel(1.9, 1.5).moved(x, y * (wide / 2 - 0.45), 1.9), (28, 28, 30), "matte", solid=True)
            hub = lathe(rounded([(1.05, 0), (0.9, 0.3), (0, 0.4)], 0.15), 20).turned("x", 90 if y < 0 else -90)
            model.add(hub.moved(x, y * (wide / 2 - 0.02), 1.9), SILVER, "steel")
    for y in (-2.6, 2.6):
        model.add(lathe(rounded([(0.5, 0), (0.5, 0.4), (0, 0.6)], 0.2), 14).moved(-5.4, y, 9.9), (230, 40, 30), "gloss")
    model.add_box((5, 3.4, 0.3), (3, 0, 9.9), shade(YELLOW, 0.85), radius=0.12)
    sign, pen = canvas(64, 64, (200, 20, 24))
    lettering(pen, (32, 32), "STOP", 24, WHITE)
    model.add_box((1.9, 0.2, 1.9), (-4.0, -wide / 2 - 0.15, 3.9), (200, 20, 24), radius=0.08, front=sign)
    model.collide_box((-6.4, 11), (-4.2, 4.2), (1.0, 10.0))
    model.collide_box((-11.2, -5), (-3.6, 3.6), (1.0, 5.8))


def _mirrored(picture: Image.Image) -> Image.Image:
    """The other side of a bus: windows and doors at the mirrored places, lettering readable."""
    flipped = picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    flipped.paste(picture.crop((100, 90, 300, 114)), (140, 90))
    return flipped


def turtle(model: Model) -> None:
    """A green turtle: domed shell with plates, head with eyes and smile, four flippers, tail. It looks to -x."""
    skin = (110, 190, 70)
    shell, pen = canvas(504, 200, (40, 120, 44))
    for row, (count, shift) in enumerate(((12, 0.0), (8, 0.5), (5, 0.0))):
        step, y = 504 / count, 190 - row * 66
        for i in range(-1, count + 1):
            x = (i + 0.5 + shift) * step
            hexagon = [(x + step * 0.44 * math.cos(a), y - 32 + 29 * math.sin(a)) for a in np.arange(6) * math.tau / 6]
            pen.polygon(hexagon, (76, 164, 66))
            pen.polygon([(x + (px - x) * 0.55, y - 32 + (py - y + 32) * 0.55) for px, py in hexagon], (98, 188, 78))
    dome = [(6.2, 2.2), (6.15, 3.0), (5.6, 4.6), (4.5, 6.0), (3.0, 7.0), (1.4, 7.5), (0, 7.6)]
    model.add(lathe(rounded(dome, 0.8), 48).bent(lambda p: p * (1.22, 1, 1)), shell, "gloss")
    rim = lathe(rounded([(0, 1.2), (5.6, 1.2), (6.9, 1.7), (6.9, 2.3), (6.1, 2.5)], 0.3), 48)
    model.add(rim.bent(lambda p: p * (1.2, 1, 1)), (196, 180, 90), "gloss")
    head = lathe([(2.5 * math.sin(a), -2.3 * math.cos(a)) for a in np.linspace(0, math.pi, 15)], 28)
    model.add(head.bent(lambda p: p * (1.15, 1, 1)).moved(-10.3, 0, 4.4), skin, "gloss")
    model.add(tube([(-6.0, 0, 2.6), (-8.8, 0, 3.6)], (1.9, 1.6), 12, up=(0, 1, 0)), skin, "gloss")
    ball = lathe([(math.sin(a), -math.cos(a)) for a in np.linspace(0, math.pi, 11)], 20)
    for y in (-1, 1):
        model.add(ball.bent(lambda p: p * 0.72).moved(-11.7, y * 1.25, 5.2), WHITE, "gloss")
        model.add(ball.bent(lambda p: p * 0.42).moved(-12.15, y * 1.45, 5.25), BLACK, "gloss")
        for x, out in ((-5.4 + 0.8, -26.0), (5.4 - 0.8, 26.0)):
            leg = tube([(0, y * 4.4, 1.5), (0, y * 6.6, 1.1), (0, y * 8.6, 0.75)], (1.3, 1.5, 1.2), 12, flat=0.5)
            model.add(leg.moved(x, 0, -0.15).turned("z", -y * out * 0.6), skin, "gloss")
    a = np.linspace(-0.75, 0.75, 11)
    smile = np.stack([-10.3 - 2.62 * np.cos(a), 2.3 * np.sin(a), 3.6 + 0.7 * (1 - np.cos(a * 1.6))], 1)
    model.add(tube(smile, 0.13, 6), (24, 70, 24), "matte")
    model.add(tube([(7.0, 0, 1.9), (8.6, 0, 1.6), (9.6, 0, 1.7)], (0.8, 0.5, 0.2), 10), skin, "gloss")
    model.collide(lathe([(5.6, 1.2), (6.9, 1.7), (5.6, 4.6), (3.0, 7.0), (0, 7.6)], 20).vertices * (1.2, 1, 1))
    model.collide(head.moved(-10.3, 0, 4.4).vertices)
    for surface, paint, _ in model.surfaces:
        if paint == skin and surface.vertices[:, 2].min() < 0.3:
            model.collide(surface.vertices)


def wood(colour: Colour) -> Image.Image:
    """Painted wood: faint long grain."""
    return grain(canvas(128, 128, colour)[0], 7, 8, (40, 2))


def doll_sofa(model: Model, colour: Colour = COLOURS["purple"]) -> None:
    """A dolls' sofa of painted wood: legs, seat cushions, back, rounded arms."""
    paint, cushion = wood(colour), grain(canvas(96, 96, shade(colour, 1.35))[0], 5, 9)
    model.add_box((17, 7.6, 2.4), (0, 0, 1.4), paint, "satin", 0.4)
    model.add_box((17, 1.9, 8.4), (0, 3.4, 1.4), paint, "satin", 0.7)
    for x in (-1, 1):
        model.add_box((2.2, 8.2, 5.4), (x * 8.6, 0, 1.4), paint, "satin", 1.0)
        model.add_box((7.2, 6.0, 1.6), (x * 3.7, -0.7, 3.7), cushion, "cloth", 0.7)
        model.add_box((7.2, 1.6, 4.6), (x * 3.7, 2.2, 5.0), cushion, "cloth", 0.7, tilt=("x", -8))
        for y in (-2.9, 3.2):
            leg = lathe(rounded([(0, 0), (0.5, 0), (0.8, 1.5)], 0.1), 16)
            model.add(leg.moved(x * 8.2, y, 0), PINE, "satin", solid=True)
    model.collide_box((-9.0, 9.0), (-3.8, 3.9), (1.4, 5.2))
    model.collide_box((-8.5, 8.5), (1.6, 4.3), (1.4, 9.8))
    for side in (-1, 1):
        model.collide_box((side * 7.5, side * 9.7), (-4.1, 4.1), (1.4, 6.8))


def doll_refrigerator(model: Model, colour: Colour = COLOURS["green"]) -> None:
    """A dolls' refrigerator of painted wood: freezer and cooler door, handles, magnets."""
    model.add_box((9, 8, 18.4), (0, 0, 0.8), wood(colour), "satin", 0.6)
    for z, tall in ((1.4, 11.0), (12.8, 6.0)):
        door = grain(canvas(120, 120, shade(colour, 1.25))[0], 5, 10, (2, 40))
        model.add_box((8.4, 0.9, tall), (0, -4.2, z), door, "satin", 0.4)
        bends = ((-4.6, 0.3), (-5.5, 0.36), (-5.5, 0.64), (-4.6, 0.7))
        handle = [(-3.2, y, z + tall * share) for y, share in bends]
        model.add(tube(handle, 0.3, 8, up=(1, 0, 0)), SILVER, "steel")
    note, pen = canvas(64, 64, (250, 240, 170))
    for row in (18, 28, 38, 48):
        pen.line((10, row, 54, row), (120, 120, 130), 2)
    model.add_box((2.0, 0.12, 2.0), (1.4, -4.72, 8.2), note, radius=0.05)
    for x, z, colour in ((1.4, 10.1, (220, 30, 30)), (0.2, 15.4, (250, 200, 30)), (2.2, 16.6, (40, 90, 220))):
        magnet = lathe(rounded([(0.45, 0), (0.45, 0.3), (0, 0.35)], 0.12), 16).turned("x", 90)
        model.add(magnet.moved(x, -4.66, z), colour, "gloss")
    foot = lathe(rounded([(0, 0), (0.7, 0), (0.7, 1.0)], 0.1), 14)
    for x, y in ((-3.4, -3.0), (-3.4, 3.0), (3.4, -3.0), (3.4, 3.0)):
        model.add(foot.moved(x, y, 0), PINE, "satin", solid=True)
    model.collide_box((-4.5, 4.5), (-4.6, 4.0), (0.8, 19.2))
