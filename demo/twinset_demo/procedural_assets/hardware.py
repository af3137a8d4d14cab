"""Scissors, hammer, alarm clock and gift box."""

import math

import numpy as np

from twinset_demo.canvas import shade
from twinset_demo.procedural_assets.model import Model
from twinset_demo.procedural_assets.paint import BLACK, RED, SILVER, STEEL, WHITE, YELLOW, canvas, lettering
from twinset_demo.procedural_assets.surface import Point2, disc, lathe, loft, rounded, slab, tube

BRASS = (206, 160, 70)


def scissors(model: Model) -> None:
    """Scissors lying half open: two pointed blades that cross at a screw, red ring handles."""
    for side in (-1, 1):
        lift = 0.45 if side < 0 else 0.95
        blade = [(-1.5, -0.75), (4, -0.8), (9, -0.45), (11.5, 0.0), (11.3, 0.15), (6, 0.6), (0, 0.75), (-1.5, 0.75)]
        outline = (np.array(blade) * (1, side))[::side]
        angle = side * 13.0
        model.add(slab(outline, 0.4, 0.1).turned("z", angle).moved(0, 0, lift), STEEL, "steel")
        a = np.arange(28) * math.tau / 28
        ring = np.stack([-7.2 + 2.9 * np.cos(a), side * (-2.3 + 2.0 * np.sin(a)), np.full(28, 0.62)], 1)
        model.add(tube(ring, 0.62, 10, closed=True).turned("z", angle * 0.6), RED, "gloss")
        shank = [(-4.6, side * -1.6, 0.62), (-3.0, side * -0.7, 0.75)]
        shank += [(-1.2, side * -0.1, lift + 0.2), (0.6, 0, lift + 0.2)]
        model.add(tube(shank, (0.62, 0.62, 0.6, 0.5), 10, flat=0.8).turned("z", angle * 0.6), RED, "gloss")
        model.collide(slab(outline, 0.9, 0.1).turned("z", angle).moved(0, 0, 0.0 if side < 0 else 0.45).vertices)
        for quarter in range(8):
            arc = [ring[(quarter * 3 + quarter // 2 + i) % 28] for i in range(5)]
            model.collide(tube(arc, 0.62, 6).turned("z", angle * 0.6).vertices)
        model.collide(tube(shank, 0.62, 6, flat=0.8).turned("z", angle * 0.6).vertices)
    model.add(lathe(rounded([(0.75, 0), (0.7, 0.3), (0, 0.35)], 0.12), 24).moved(0, 0, 1.35), SILVER, "steel")
    model.add_box((0.9, 0.14, 0.05), (0, 0, 1.67), BLACK, radius=0.02)


def hammer(model: Model) -> None:
    """A claw hammer lying on its side: steel head, black and yellow grip."""
    grip, pen = canvas(64, 256, YELLOW)
    for top, bottom in ((0, 24), (60, 76), (150, 256)):
        pen.rectangle((0, top, 64, bottom), (24, 24, 26))
    for y in range(160, 246, 14):
        pen.line((0, y, 64, y), YELLOW if y in (160, 244) else (60, 60, 64), 3)
    lift = 1.35
    handle = [(x, 0, lift) for x in (-16, -14, -9, -3, 2, 8.5)]
    model.add(tube(handle, (1.55, 1.7, 1.45, 1.5, 1.05, 0.95), 16, flat=0.78), grip, "satin")
    model.add_box((3.0, 4.2, 2.7), (9.6, 0.6, 0), (90, 92, 98), "steel", 0.5)
    face = lathe(rounded([(0, 0), (1.35, 0), (1.35, 1.5), (1.0, 2.0), (0.9, 3.6)], 0.25), 24).turned("x", -90)
    model.add(face.moved(9.6, -5.2, lift), STEEL, "steel")
    t, right, up = np.linspace(0, 1, 9)[:, None], np.array((-1, -1, 1, 1)), np.array((-1, 1, 1, -1))
    wide, thick = 0.62 * (1 - 0.55 * t), 1.15 * (1 - 0.8 * t) + 0.06
    for side in (-1, 1):
        x, z = 9.6 - 2.2 * t * t, lift + side * (0.62 + 0.35 * t)
        claw = np.stack(np.broadcast_arrays(x + right * thick, 2.4 + 4.6 * t, z + up * wide), 2)
        model.add(loft(claw, caps=True), STEEL, "steel", solid=True)
    model.collide(tube(handle, (1.5, 1.7, 1.5, 1.5, 1.1, 1.0), 8, flat=0.8).vertices)
    model.collide_box((8.1, 11.1), (-1.5, 2.7), (0, 2.7))
    model.collide(face.moved(9.6, -5.2, lift).vertices)


def alarm_clock(model: Model) -> None:
    """A twin-bell alarm clock of brass: dial with numbers and hands, bells, striker, handle, feet."""
    dial, pen = canvas(256, 256, (248, 242, 222))

    def at(degrees: float, radius: float) -> Point2:
        return 128 + radius * math.cos(math.radians(degrees)), 128 + radius * math.sin(math.radians(degrees))

    for hour in range(1, 13):
        lettering(pen, at(hour * 30 - 90, 92), str(hour), 34, BLACK)
    for minute in range(60):
        inner, width = (112, 2) if minute % 5 else (108, 4)
        pen.line([at(minute * 6, inner), at(minute * 6, 120)], BLACK, width)
    for degrees, length, width in ((-150, 54, 10), (-30, 78, 7), (80, 30, 3)):
        pen.line([(128, 128), at(degrees, length)], (20, 20, 24), width)
    pen.ellipse((118, 118, 138, 138), BLACK)
    middle = 8.2
    profile = [(0, -2.6), (5.4, -2.6), (6.2, -1.6), (6.3, 2.0), (6.5, 2.4), (6.5, 2.9), (5.9, 3.0), (5.6, 2.5)]
    case = lathe(rounded(profile, 0.35), 48).turned("x", 90).moved(0, 0, middle)
    model.add(case, BRASS, "steel")
    model.add(disc(5.7, 48).turned("x", 90).moved(0, -2.5, middle), dial, "satin")
    bell = lathe(rounded([(2.5, 0), (2.7, 0.15), (2.5, 1.0), (1.6, 2.1), (0.5, 2.5), (0.4, 2.9), (0, 3.0)], 0.4), 32)
    under = lathe([(0, 0), (2.5, 0)], 32)
    for side in (-1, 1):
        hung, dark = (part.turned("y", side * 32).moved(side * 4.0, 0, middle + 5.9) for part in (bell, under))
        model.add(hung, BRASS, "steel")
        model.add(dark, shade(BRASS, 0.5))
        stem = [(side * 3.0, 0, middle + 5.0), (side * 4.1, 0, middle + 6.6)]
        model.add(tube(stem, 0.35, 8, up=(0, 1, 0)), BRASS, "steel")
        foot = [(side * 3.4, 0, middle - 5.0), (side * 4.6, 0, 0.75)]
        model.add(tube(foot, (0.55, 0.7), 12, up=(0, 1, 0)), BRASS, "steel")
        model.collide(hung.vertices)
        leg = [(side * 3.4, 0, middle - 5.0), (side * 3.4, 0, 3.0)]
        model.collide(tube(leg, 0.55, 6, up=(0, 1, 0)).vertices)
        model.collide([(side * x, y, z) for y in (2.2, -2.2) for x in (4.0, 5.2) for z in (0.0, 0.5)])
        model.collide([(side * (4.6 + x), y, z) for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (0.1, 4.0)])
        model.add_box((1.5, 4.6, 0.6), (side * 4.6, 0, 0), BRASS, "steel", 0.25)
    model.add(tube([(0, 0, middle + 5.8), (0, 0, middle + 8.4)], 0.22, 8, up=(0, 1, 0)), SILVER, "steel")
    striker = lathe(rounded([(0, -0.5), (0.6, -0.5), (0.6, 0.5), (0, 0.5)], 0.2), 16).turned("y", 90)
    model.add(striker.moved(0, 0, middle + 8.5), SILVER, "steel")
    arc = [(3.9 * math.cos(a), 0.0, middle + 8.2 + 2.9 * math.sin(a)) for a in np.linspace(0.12, math.pi - 0.12, 17)]
    model.add(tube(arc, 0.32, 8, up=(0, 1, 0)), BRASS, "steel")
    model.collide(case.vertices)
    model.collide_along(arc, (0, 0.3, 0.3), 4)


def gift_box(model: Model) -> None:
    """A white gift box with a lid, red straps both ways and a red bow."""
    model.add_box((14, 14, 10), (0, 0, 0), WHITE, "satin", 0.25)
    model.add_box((14.8, 14.8, 3.0), (0, 0, 8.2), WHITE, "satin", 0.3)
    strap = (206, 18, 26)
    for long, high, base in ((14.25, 10.0, 0.0), (15.1, 3.16, 8.15)):
        model.add_box((2.4, long, high), (0, 0, base), strap, "gloss", 0.12)
        model.add_box((long, 2.4, high), (0, 0, base), strap, "gloss", 0.12)
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
