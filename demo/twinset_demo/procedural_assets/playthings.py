"""Plain things in one colour: toys, vehicles, drum and barrel; and a pumpkin, a cactus and a snowman."""

import math

import numpy as np

from twinset_demo.canvas import Colour, shade
from twinset_demo.procedural_assets.model import Model
from twinset_demo.procedural_assets.paint import BLACK, SILVER, WHITE, canvas
from twinset_demo.procedural_assets.surface import Floats, Surface, lathe, rounded, sheet, tube
from twinset_demo.procedural_assets.toys import GLASS, wheel, wood

ORANGE, GREEN, CARROT = (226, 110, 20), (58, 140, 62), (236, 120, 30)


def sphere(radius: float, segments: int = 36, squeeze: float = 1.0) -> Surface:
    """A ball around the origin, ``squeeze`` times as tall as wide."""
    angles = np.linspace(0, math.pi, segments // 2 + 1)
    return lathe([(radius * math.sin(a), -squeeze * radius * math.cos(a)) for a in angles], segments)


def ball(model: Model, colour: Colour) -> None:
    """A ball with two thin seams."""
    model.add(sphere(8.0, 48).moved(z=8.0), colour, "gloss", solid=True)
    turns = np.arange(48) * math.tau / 48
    for tilt in (20, 110):
        seam = np.stack([7.95 * np.cos(turns), np.zeros(48), 7.95 * np.sin(turns)], 1)
        line = tube(seam, 0.16, 6, closed=True, up=(0, 1, 0)).turned("z", tilt)
        model.add(line.moved(z=8.0), shade(colour, 0.6), "satin")


def cube(model: Model, colour: Colour) -> None:
    """A painted wooden cube with soft edges."""
    model.add_box((14.0, 14.0, 14.0), (0, 0, 0), wood(colour), "satin", 0.9, solid=True)


def balloon(model: Model, colour: Colour) -> None:
    """A balloon that stands on its knot, with a short string."""
    profile = [(0.0, 1.0), (0.7, 1.4), (3.2, 4.4), (6.2, 8.6), (7.6, 13.0), (7.0, 17.4), (4.4, 20.6), (0.0, 21.8)]
    model.add(lathe(rounded(profile, 2.6, 4), 40), colour, "gloss")
    model.add(lathe([(0, 0), (1.2, 0), (0.5, 1.4), (0, 1.4)], 16), shade(colour, 0.75), "gloss")
    string = [(0.6 * k, 1.2 * math.sin(k * 0.8), 0.2) for k in range(18)]
    model.add(tube(string, 0.16, 6), WHITE, "matte")
    model.collide(lathe([(0, 0), (4.0, 0), (7.6, 13.0), (0, 21.8)], 16).vertices)


def frisbee(model: Model, colour: Colour) -> None:
    """A flying disc: flat, with a rounded rim and a ring on top."""
    profile = rounded([(0, 0), (10.4, 0), (11.4, 0.5), (11.2, 1.8), (9.6, 2.7), (0, 2.9)], 0.6)
    model.add(lathe(profile, 56), colour, "gloss", solid=True)
    model.add(lathe([(6.4, 2.86), (6.2, 3.05), (5.6, 3.05), (5.4, 2.86)], 48), shade(colour, 0.7), "satin")


def _wheels(model: Model, places: tuple[float, ...], out: float, radius: float) -> None:
    for x in places:
        for y in (-out, out):
            model.add(wheel(radius, 1.8).moved(x, y, radius), (28, 28, 30), "matte", solid=True)
            hub = lathe(rounded([(radius * 0.55, 0), (radius * 0.5, 0.3), (0, 0.4)], 0.15), 20)
            hub = hub.turned("x", 90 if y < 0 else -90)
            model.add(hub.moved(x, y + math.copysign(0.6, y), radius), SILVER, "steel")


def _lamps(model: Model, front: float, back: float, y: float, z: float) -> None:
    lamp = lathe(rounded([(0.8, 0), (0.8, 0.3), (0, 0.5)], 0.15), 18)
    for side in (-y, y):
        model.add(lamp.turned("y", -90).moved(front, side, z), (252, 246, 210), "gloss")
        model.add(lamp.turned("y", 90).moved(back, side, z), (200, 24, 24), "gloss")


def car(model: Model, colour: Colour) -> None:
    """A toy car: rounded body, cabin with windows all around, lamps, bumpers, four wheels."""
    model.add_box((22.0, 9.4, 4.2), (0, 0, 1.7), colour, "gloss", 1.5, solid=True)

    def leaning(points: Floats) -> Floats:
        points[:, 0] *= 1 - 0.055 * (points[:, 2] - 5.4)
        points[:, 1] *= 1 - 0.03 * (points[:, 2] - 5.4)
        return points

    for size, at, paint in (((12.4, 8.4, 3.6), (1.0, 0, 5.2), GLASS), ((9.6, 7.6, 0.9), (0.9, 0, 8.5), colour)):
        corner = Model()
        corner.add_box(size, at, paint, "gloss", 0.4)
        for surface, _, finish in corner.surfaces:
            model.add(surface.bent(leaning) if paint == GLASS else surface, paint, finish)
    for x in (-4.0, 1.0, 5.6):
        for y in (-1, 1):
            post = [(x * 1.02 + 0.2, y * 4.25, 5.3), (x * 0.86 + 0.2, y * 3.85, 8.8)]
            model.add(tube(post, 0.42, 8, up=(0, 1, 0)), colour, "gloss")
    for end in (-1, 1):
        model.add_box((0.9, 8.8, 1.1), (end * 10.9, 0, 1.9), SILVER, "steel", 0.35)
    _lamps(model, -10.9, 10.9, 3.2, 4.4)
    _wheels(model, (-6.4, 6.4), 4.3, 2.2)
    model.collide_box((-3.6, 5.4), (-3.8, 3.8), (5.6, 9.4))


def truck(model: Model, colour: Colour) -> None:
    """A lorry: a cab with windows before a taller box, both in one colour, six wheels."""
    model.add_box((25.0, 7.6, 1.2), (0, 0, 1.9), (40, 40, 44), radius=0.3)
    door, pen = canvas(112, 144, colour)
    pen.rounded_rectangle((34, 18, 100, 70), 6, GLASS)
    pen.line((30, 12, 30, 138), shade(colour, 0.6), 3)
    front, pen = canvas(160, 144, colour)
    pen.rounded_rectangle((14, 16, 146, 74), 8, GLASS)
    for row in (94, 106, 118):
        pen.line((40, row, 120, row), (40, 40, 44), 5)
    model.add_box((7.0, 9.2, 9.0), (-9.2, 0, 2.4), colour, "gloss", 0.9, front=door, back=door, left=front, solid=True)
    ribs, pen = canvas(256, 128, colour)
    for x in range(16, 256, 32):
        pen.rectangle((x, 8, x + 4, 120), shade(colour, 0.78))
    model.add_box((17.6, 9.6, 12.4), (4.0, 0, 3.0), colour, "satin", 0.5, front=ribs, back=ribs, solid=True)
    _lamps(model, -12.7, 12.8, 3.4, 3.6)
    _wheels(model, (-9.0, 4.6, 9.4), 4.2, 2.3)


def boat(model: Model, colour: Colour) -> None:
    """A toy boat: a hull with a pointed bow, a white deck with a cabin, a funnel in the colour of the hull."""
    rings = []
    for z, wide, long in ((0.0, 2.6, 8.4), (1.6, 3.8, 10.2), (5.6, 4.9, 12.4)):
        t = np.arange(40) * math.tau / 40
        cos, sin = np.cos(t), np.sin(t)
        bow = np.where(cos < 0, cos**2, 0.0)  # where the hull gets narrower
        rings.append(np.stack([long * cos - 2.7 * bow, wide * sin * (1 - 0.55 * bow), z + 0 * t], 1))
    hull = np.stack(rings)
    model.add(_closed(hull, 0), colour, "gloss", solid=True)
    deck = hull[-1] * (0.94, 0.94, 1.0) - (0, 0, 0.2)
    model.add(_lid(deck), WHITE, "satin")
    rim = hull[-1]
    model.add(tube(rim, 0.35, 8, closed=True), shade(colour, 0.7), "satin")
    model.add_box((9.0, 5.0, 4.2), (2.2, 0, 5.2), WHITE, "satin", 0.4, solid=True)
    for x in (-0.4, 2.2, 4.8):
        for y in (-1, 1):
            port = lathe(rounded([(0.85, 0), (0.8, 0.2), (0, 0.25)], 0.1), 20).turned("x", 90 if y < 0 else -90)
            model.add(port.moved(x, y * 2.5, 7.6), GLASS, "gloss")
    model.add(lathe([(1.3, 9.2), (1.3, 13.0), (0.9, 13.0), (0, 12.6)], 24).moved(3.4, 0, 0), colour, "gloss")
    model.add(lathe([(1.34, 11.6), (1.34, 12.6)], 24).moved(3.4, 0, 0), WHITE, "gloss")


def _closed(rings: Floats, under: int) -> Surface:
    ground = np.repeat(rings[under].mean(axis=0)[None], rings.shape[1], axis=0)
    grid = np.concatenate([ground[None], rings])
    return sheet(np.concatenate([grid, grid[:, :1]], axis=1))


def _lid(ring: Floats) -> Surface:
    middle = np.repeat(ring.mean(axis=0)[None], len(ring), axis=0)
    grid = np.stack([ring, middle])
    return sheet(np.concatenate([grid, grid[:, :1]], axis=1))


def drum(model: Model, colour: Colour) -> None:
    """A drum: coloured shell with a white zigzag of rope, white skins, two sticks on top."""
    rope, pen = canvas(512, 128, colour)
    for left in range(0, 512, 64):
        pen.line([(left, 116), (left + 32, 12), (left + 64, 116)], WHITE, 6)
    model.add(lathe([(9.4, 1.6), (9.4, 11.4)], 48), rope, "gloss")
    for z in (0.0, 11.2):
        hoop = rounded([(9.2, z), (9.9, z), (9.9, z + 1.8), (9.2, z + 1.8)], 0.3)
        model.add(lathe(hoop, 48), shade(colour, 0.7), "satin")
    model.add(lathe([(0, 0.1), (9.3, 0.1), (9.3, 0.4)], 48), WHITE, "matte")
    model.add(lathe([(9.4, 12.4), (0, 12.5)], 48), (240, 236, 222), "matte")
    for y, turned in ((-1.6, 12), (1.6, -14)):
        stick = tube([(-7.0, 0, 13.5), (7.0, 0, 13.5)], (0.75, 0.5), 10).turned("z", turned)
        model.add(stick.moved(0, y, 0), (214, 170, 110), "satin")
    model.collide(lathe([(0, 0), (9.9, 0), (9.9, 13.0), (0, 13.0)], 24).vertices)


def barrel(model: Model, colour: Colour) -> None:
    """A barrel of staves with three iron hoops."""
    staves, pen = canvas(512, 128, colour)
    for x in range(0, 512, 32):
        pen.rectangle((x, 0, x + 3, 128), shade(colour, 0.55))
    profile = [(7.2, 0.0), (8.6, 5.0), (9.2, 9.5), (8.6, 14.0), (7.2, 19.0)]
    model.add(lathe(rounded(profile, 3.0, 4), 48), staves, "satin")
    model.add(lathe([(0, 0), (7.1, 0)], 48), shade(colour, 0.6))
    model.add(lathe([(7.2, 19.0), (6.7, 19.0), (6.6, 18.3), (0, 18.3)], 48), wood(shade(colour, 0.85)))
    for low, wide in ((1.6, 7.75), (8.6, 9.2), (15.6, 8.25)):
        hoop = [(wide, low), (wide + 0.35, low), (wide + 0.35, low + 1.7), (wide, low + 1.7)]
        model.add(lathe(hoop, 48), (84, 86, 92), "steel")
    model.collide(lathe([(0, 0), (7.2, 0), (9.4, 9.5), (7.2, 19.0), (0, 19.0)], 20).vertices)


def pumpkin(model: Model) -> None:
    """An orange pumpkin with ribs and a green stem."""
    body = sphere(9.0, 72, 0.76)

    def ribbed(points: Floats) -> Floats:
        angle = np.arctan2(points[:, 1], points[:, 0])
        points[:, :2] *= (0.9 + 0.1 * np.abs(np.sin(5 * angle)))[:, None]
        return points

    model.add(body.bent(ribbed).moved(z=6.84), ORANGE, "satin", solid=True)
    stem = [(0, 0, 13.0), (0.4, 0, 15.0), (1.5, 0.3, 16.6)]
    model.add(tube(stem, (1.3, 0.95, 1.1), 9, up=(0, 1, 0)), (74, 104, 40), "matte")


def cactus(model: Model) -> None:
    """A green cactus with two arms in a clay pot."""
    pot = rounded([(0, 0), (4.4, 0), (5.6, 6.4), (6.2, 6.6), (6.2, 8.2), (5.4, 8.2), (5.2, 7.4), (0, 7.4)], 0.3)
    model.add(lathe(pot, 40), (186, 96, 56), "matte", solid=True)
    ribs, pen = canvas(128, 64, GREEN)
    for x in range(0, 128, 12):
        pen.rectangle((x, 0, x + 3, 64), shade(GREEN, 0.65))
    model.add(tube([(0, 0, 7.0), (0, 0, 14.0), (0, 0, 24.0)], 2.5, 20, up=(0, 1, 0)), ribs, "matte")
    for side, low in ((-1, 12.5), (1, 15.0)):
        bends = rounded([(0.0, low), (5.4, low), (5.4, low + 6.5)], 2.5, 5)
        arm = [(side * x, 0.0, z) for x, z in bends]
        model.add(tube(arm, 1.6, 16, up=(0, 1, 0)), ribs, "matte")
    model.collide_box((-2.2, 2.2), (-2.2, 2.2), (7.0, 26.0))
    model.collide_box((-6.8, 6.8), (-1.4, 1.4), (12.0, 21.0))


def snowman(model: Model) -> None:
    """A snowman: three balls of snow, black hat, coal eyes and buttons, a carrot for a nose, facing -y."""
    for radius, z in ((8.0, 7.6), (5.8, 18.6), (4.2, 26.6)):
        model.add(sphere(radius, 40).moved(z=z), (244, 246, 250), "matte", solid=True)
    coal = sphere(0.6, 14)
    for x, y, z in ((-1.4, -3.8, 27.9), (1.4, -3.8, 27.9), (0, -5.6, 20.6), (0, -5.8, 18.4), (0, -5.5, 16.2)):
        model.add(coal.moved(x, y, z), BLACK, "gloss")
    model.add(lathe([(0.9, 0), (0, 4.2)], 16).turned("x", 90).moved(0, -3.9, 26.6), CARROT, "matte")
    brim = rounded([(0, 29.6), (4.8, 29.6), (4.8, 30.2), (3.3, 30.3), (3.1, 35.0), (0, 35.0)], 0.25)
    model.add(lathe(brim, 36), (26, 26, 28), "satin", solid=True)
