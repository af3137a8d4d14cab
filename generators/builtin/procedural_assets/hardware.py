"""Scissors, hammer, alarm clock and gift box."""

from __future__ import annotations

import math

import numpy as np

from generators.builtin.procedural_assets.model import Model
from generators.builtin.procedural_assets.paint import BLACK, RED, SILVER, WHITE, YELLOW, canvas, lettering, shade
from generators.builtin.procedural_assets.surface import disc, lathe, loft, rounded, slab, tube

STEEL = (214, 216, 220)
BRASS = (206, 160, 70)


def scissors() -> Model:
    """Scissors lying half open: two pointed blades that cross at a screw, red ring handles."""
    model = Model()
    for side in (-1, 1):
        lift = 0.45 if side < 0 else 0.95
        blade = [(-1.5, -0.75), (4, -0.8), (9, -0.45), (11.5, 0.0), (11.3, 0.15), (6, 0.6), (0, 0.75), (-1.5, 0.75)]
        outline = np.array(blade) * (1, side)
        outline = outline[:: -1 if side < 0 else 1]
        angle = side * 13.0
        model.add(slab(outline, 0.4, 0.1).turned("z", angle).moved(0, 0, lift), STEEL, "steel")
        ring = [
            (-7.2 + 2.9 * math.cos(a), side * (-2.3 + 2.0 * math.sin(a)), 0.62) for a in np.arange(28) * math.tau / 28
        ]
        model.add(tube(ring, 0.62, 10, closed=True).turned("z", angle * 0.6), RED, "gloss")
        shank = [
            (-4.6, side * -1.6, 0.62),
            (-3.0, side * -0.7, 0.75),
            (-1.2, side * -0.1, lift + 0.2),
            (0.6, 0, lift + 0.2),
        ]
        model.add(tube(shank, (0.62, 0.62, 0.6, 0.5), 10, flat=0.8).turned("z", angle * 0.6), RED, "gloss")
        model.collide(slab(outline, 0.9, 0.1).turned("z", angle).moved(0, 0, 0.0 if side < 0 else 0.45).vertices)
        for quarter in range(8):
            arc = [ring[(quarter * 3 + quarter // 2 + i) % 28] for i in range(5)]
            model.collide(tube(arc, 0.62, 6).turned("z", angle * 0.6).vertices)
        model.collide(tube(shank, 0.62, 6, flat=0.8).turned("z", angle * 0.6).vertices)
    model.add(lathe(rounded([(0.75, 0), (0.7, 0.3), (0, 0.35)], 0.12), 24).moved(0, 0, 1.35), SILVER, "steel")
    model.add_box((0.9, 0.14, 0.05), (0, 0, 1.67), BLACK, radius=0.02, tilt=("z", 0))
    return model


def hammer() -> Model:
    """A claw hammer lying on its side: steel head, black and yellow grip."""
    model = Model()
    grip, pen = canvas(64, 256, YELLOW)
    pen.rectangle((0, 150, 64, 256), (24, 24, 26))
    pen.rectangle((0, 60, 64, 76), (24, 24, 26))
    pen.rectangle((0, 0, 64, 24), (24, 24, 26))
    for y in range(160, 246, 14):
        pen.line((0, y, 64, y), YELLOW if y in (160, 244) else (60, 60, 64), 3)
    lift = 1.35
    handle = [(-16, 0, lift), (-14, 0, lift), (-9, 0, lift), (-3, 0, lift), (2, 0, lift), (8.5, 0, lift)]
    model.add(tube(handle, (1.55, 1.7, 1.45, 1.5, 1.05, 0.95), 16, flat=0.78), grip, "satin")
    model.add_box((3.0, 4.2, 2.7), (9.6, 0.6, 0), (90, 92, 98), "steel", 0.5)
    face = lathe(rounded([(0, 0), (1.35, 0), (1.35, 1.5), (1.0, 2.0), (0.9, 3.6)], 0.25), 24).turned("x", -90)
    model.add(face.moved(9.6, -5.2, lift), STEEL, "steel")
    for side in (-1, 1):
        sections = []
        for t in np.linspace(0, 1, 9):
            y, x = 2.4 + 4.6 * t, 9.6 - 2.2 * t * t
            wide, thick = 0.62 * (1 - 0.55 * t), 1.15 * (1 - 0.8 * t) + 0.06
            z = lift + side * (0.62 + 0.35 * t)
            sections.append([(x + sx * thick, y, z + sz * wide) for sx, sz in ((-1, -1), (-1, 1), (1, 1), (1, -1))])
        model.add(loft(sections, caps=True), STEEL, "steel", solid=True)
    model.collide(tube(handle, (1.5, 1.7, 1.5, 1.5, 1.1, 1.0), 8, flat=0.8).vertices)
    model.collide_box((8.1, 11.1), (-1.5, 2.7), (0, 2.7))
    model.collide(face.moved(9.6, -5.2, lift).vertices)
    return model


def alarm_clock() -> Model:
    """A twin-bell alarm clock of brass: dial with numbers and hands, bells, striker, handle, feet."""
    model = Model()
    dial, pen = canvas(256, 256, (248, 242, 222))
    for hour in range(1, 13):
        a = math.radians(hour * 30 - 90)
        lettering(pen, (128 + 92 * math.cos(a), 128 + 92 * math.sin(a)), str(hour), 34, BLACK)
    for minute in range(60):
        a = math.radians(minute * 6)
        inner = 112 if minute % 5 else 108
        pen.line([(128 + r * math.cos(a), 128 + r * math.sin(a)) for r in (inner, 120)], BLACK, 2 if minute % 5 else 4)
    for angle, length, width in ((-150, 54, 10), (-30, 78, 7), (80, 30, 3)):
        a = math.radians(angle)
        pen.line([(128, 128), (128 + length * math.cos(a), 128 + length * math.sin(a))], (20, 20, 24), width)
    pen.ellipse((118, 118, 138, 138), BLACK)
    middle = 8.2
    case = lathe(
        rounded(
            [(0, -2.6), (5.4, -2.6), (6.2, -1.6), (6.3, 2.0), (6.5, 2.4), (6.5, 2.9), (5.9, 3.0), (5.6, 2.5)], 0.35
        ),
        48,
    )
    model.add(case.turned("x", 90).moved(0, 0, middle), BRASS, "steel")
    model.add(disc(5.7, 48).turned("x", 90).moved(0, -2.5, middle), dial, "satin")
    for side in (-1, 1):
        bell = lathe(
            rounded([(2.5, 0), (2.7, 0.15), (2.5, 1.0), (1.6, 2.1), (0.5, 2.5), (0.4, 2.9), (0, 3.0)], 0.4), 32
        )
        model.add(bell.turned("y", side * 32).moved(side * 4.0, 0, middle + 5.9), BRASS, "steel")
        model.add(
            lathe([(0, 0), (2.5, 0)], 32).turned("y", side * 32).moved(side * 4.0, 0, middle + 5.9), shade(BRASS, 0.5)
        )
        model.add(
            tube([(side * 3.0, 0, middle + 5.0), (side * 4.1, 0, middle + 6.6)], 0.35, 8, up=(0, 1, 0)), BRASS, "steel"
        )
        foot = [(side * 3.4, 0, middle - 5.0), (side * 4.6, 0, 0.75)]
        model.add(tube(foot, (0.55, 0.7), 12, up=(0, 1, 0)), BRASS, "steel")
        model.collide(bell.turned("y", side * 32).moved(side * 4.0, 0, middle + 5.9).vertices)
        model.collide(
            tube([(side * 3.4, y, z) for y, z in ((0, middle - 5.0), (0, 3.0))], 0.55, 6, up=(0, 1, 0)).vertices
        )
        model.collide(
            [(side * x, y, z) for x, y in ((4.0, 2.2), (5.2, 2.2), (4.0, -2.2), (5.2, -2.2)) for z in (0.0, 0.5)]
        )
        model.collide([(side * (4.6 + x), y, z) for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (0.1, 4.0)])
        model.add_box((1.5, 4.6, 0.6), (side * 4.6, 0, 0), BRASS, "steel", 0.25)
    model.add(tube([(0, 0, middle + 5.8), (0, 0, middle + 8.4)], 0.22, 8, up=(0, 1, 0)), SILVER, "steel")
    model.add(
        lathe(rounded([(0, -0.5), (0.6, -0.5), (0.6, 0.5), (0, 0.5)], 0.2), 16)
        .turned("y", 90)
        .moved(0, 0, middle + 8.5),
        SILVER,
        "steel",
    )
    arc = [(3.9 * math.cos(a), 0.0, middle + 8.2 + 2.9 * math.sin(a)) for a in np.linspace(0.12, math.pi - 0.12, 17)]
    model.add(tube(arc, 0.32, 8, up=(0, 1, 0)), BRASS, "steel")
    model.collide(case.turned("x", 90).moved(0, 0, middle).vertices)
    for start in range(0, 16, 4):
        model.collide([(x, y, z + dz) for x, _, z in arc[start : start + 5] for y in (-0.3, 0.3) for dz in (-0.3, 0.3)])
    return model


def gift_box() -> Model:
    """A white gift box with a lid, red straps both ways and a red bow."""
    model = Model()
    model.add_box((14, 14, 10), (0, 0, 0), WHITE, "satin", 0.25)
    model.add_box((14.8, 14.8, 3.0), (0, 0, 8.2), WHITE, "satin", 0.3)
    strap = (206, 18, 26)
    for size, base in (((2.4, 14.25, 10.0), 0.0), ((2.4, 15.1, 3.16), 8.15)):
        model.add_box(size, (0, 0, base), strap, "gloss", 0.12)
        model.add_box((size[1], size[0], size[2]), (0, 0, base), strap, "gloss", 0.12)
    top, bow = 11.3, []
    for turned in (25, 75, 205, 255):
        a = np.linspace(0, math.tau, 20)
        line = np.stack([0 * a, 4.8 * np.sin(a / 2), 0.3 + 1.2 * (1 - np.cos(a)) + 1.7 * np.sin(a)], 1)
        bow.append(tube(line, 0.12, 12, flat=9.0, up=(1, 0, 0)).turned("z", turned))
    for turned in (140, 320):
        tail = np.array([(0, 0, 0.5), (0, 2.4, 0.7), (0, 4.8, 0.35), (0, 6.2, 0.25)])
        bow.append(tube(tail, 1.0, 12, flat=0.12).turned("z", turned))
    for ribbon in bow:
        model.add(ribbon.moved(z=top), strap, "gloss", solid=True)
    model.add_box((2.2, 2.2, 1.8), (0, 0, top), shade(strap, 0.85), "gloss", 0.7, solid=True)
    model.collide_box((-7.1, 7.1), (-7.1, 7.1), (0, 8.2))
    model.collide_box((-7.5, 7.5), (-7.5, 7.5), (8.2, 11.3))
    return model
