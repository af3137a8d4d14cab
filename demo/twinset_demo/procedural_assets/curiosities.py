"""Things that are rare in photographs: ladder, globe, lantern, treasure chest, penguin, telescope, anvil, birdcage."""

import math

import numpy as np

from twinset_demo.canvas import Colour, shade
from twinset_demo.procedural_assets.model import Model
from twinset_demo.procedural_assets.paint import BLACK, SILVER, WHITE, canvas
from twinset_demo.procedural_assets.playthings import sphere
from twinset_demo.procedural_assets.surface import lathe, loft, rounded, tube
from twinset_demo.procedural_assets.toys import wood

BRASS, GLOW, SEA, LAND = (196, 156, 70), (255, 226, 140), (40, 96, 190), (60, 150, 70)


def ladder(model: Model, colour: Colour) -> None:
    """A step ladder that stands open: two sides with rungs, and two struts behind."""
    for x in (-1, 1):
        front = [(x * 8.0, -9.0, 0.6), (x * 6.4, -4.5, 20.0), (x * 5.0, 0.0, 40.0)]
        back = [(x * 7.4, 9.0, 0.6), (x * 6.2, 5.0, 19.0), (x * 5.0, 0.6, 39.4)]
        model.add(tube(front, 0.85, 8, up=(1, 0, 0)), colour)
        model.add(tube(back, 0.65, 8, up=(1, 0, 0)), shade(colour, 0.75))
        model.collide_along(front, (0.8, 0.8, 0), 1)
        model.collide_along(back, (0.6, 0.6, 0), 1)
    for step in range(5):
        z = 6.0 + 7.0 * step
        y, wide = -9.0 + z * 0.225, 2 * (8.0 - z * 0.075)
        model.add_box((wide, 3.0, 0.9), (0, y, z), colour, radius=0.25)
    model.add_box((11.0, 5.0, 1.2), (0, 0.2, 39.0), wood(colour), radius=0.4)


def globe(model: Model) -> None:
    """A globe on a wooden stand: blue sea, green land, a half ring around it."""
    land, pen = canvas(256, 128, SEA)
    for left, top, right, bottom in ((20, 24, 74, 62), (52, 60, 84, 104), (112, 22, 190, 60), (122, 54, 156, 98)):
        pen.ellipse((left, top, right, bottom), LAND)
    for left, top, right, bottom in ((176, 30, 232, 56), (198, 78, 232, 100), (0, 116, 256, 128)):
        pen.ellipse((left, top, right, bottom), LAND if bottom < 110 else WHITE)
    tilted = sphere(8.0, 48).turned("y", 23)
    model.add(tilted.moved(z=15.0), land, "gloss", solid=True)
    turns = np.linspace(-1.9, 1.9, 25)
    ring = np.stack([-8.9 * np.cos(turns), np.zeros(25), 15.0 + 8.9 * np.sin(turns)], 1)
    model.add(tube(ring[2:-2], 0.45, 8, up=(0, 1, 0)), BRASS, "steel")
    foot = rounded([(0, 0), (5.8, 0), (5.8, 0.9), (1.6, 2.2), (0.9, 3.6), (0.9, 6.4), (0, 6.4)], 0.4)
    model.add(lathe(foot, 40), (110, 66, 30), "gloss", solid=True)


def lantern(model: Model, colour: Colour) -> None:
    """A lantern: a glowing pane behind four posts, a pointed roof, a ring to carry it."""
    model.add(lathe([(3.6, 2.0), (3.6, 12.6)], 32), GLOW, "gloss")
    for angle in range(45, 360, 90):
        x, y = 4.6 * math.cos(math.radians(angle)), 4.6 * math.sin(math.radians(angle))
        model.add(tube([(x, y, 1.4), (x, y, 7.0), (x, y, 13.0)], 0.5, 8, up=(0, 1, 0)), colour)
    base: list[tuple[float, float]] = [(0, 0), (6.0, 0), (6.0, 1.4), (5.2, 2.2), (0, 2.2)]
    roof: list[tuple[float, float]] = [(0, 12.4), (6.2, 12.4), (6.2, 13.4), (1.6, 17.4), (1.0, 18.4), (0, 18.6)]
    model.add(lathe(rounded(base, 0.3), 40), colour, solid=True)
    model.add(lathe(rounded(roof, 0.4), 40), colour, solid=True)
    turns = np.arange(28) * math.tau / 28
    ring = np.stack([2.0 * np.cos(turns), np.zeros(28), 20.2 + 2.0 * np.sin(turns)], 1)
    model.add(tube(ring, 0.35, 8, closed=True, up=(0, 1, 0)), shade(colour, 0.8))
    model.collide_box((-4.4, 4.4), (-4.4, 4.4), (2.0, 12.6))


def treasure_chest(model: Model, colour: Colour) -> None:
    """A chest of wood with a round lid, bands and a lock of brass."""
    model.add_box((22.0, 14.0, 9.0), (0, 0, 0), wood(colour), radius=0.5, solid=True)
    turns = np.linspace(0, math.pi, 17)

    def lid(left: float, right: float, radius: float) -> None:
        arc = np.stack([0 * turns, radius * np.cos(turns), 9.2 + radius * 0.82 * np.sin(turns)], 1)
        model.add(
            loft(np.stack([arc + np.array((left, 0, 0)), arc + np.array((right, 0, 0))])[:, ::-1], caps=True),
            paint,
            finish,
        )

    paint, finish = wood(shade(colour, 0.9)), "satin"
    lid(-11.0, 11.0, 7.0)
    model.collide([(x, y, z) for x in (-11, 11) for y, z in ((-7, 9.2), (7, 9.2), (-4, 14), (4, 14))])
    paint, finish = canvas(8, 8, BRASS)[0], "steel"
    for x in (-8.4, 8.4):
        lid(x - 0.9, x + 0.9, 7.25)
        model.add_box((1.8, 14.4, 9.0), (x, 0, 0.1), BRASS, "steel", 0.2)
    model.add_box((3.2, 0.8, 3.6), (0, -7.1, 6.6), BRASS, "steel", 0.3)
    model.add_box((0.8, 0.2, 1.4), (0, -7.6, 7.6), BLACK, radius=0.08)


def penguin(model: Model) -> None:
    """A penguin that faces -y: black back, white belly, flippers at its sides, orange beak and feet."""
    black, orange = (30, 32, 38), (240, 140, 30)
    body = [
        (0, 0.6),
        (4.6, 1.2),
        (6.4, 6.0),
        (6.6, 10.0),
        (5.4, 16.0),
        (4.0, 19.4),
        (4.3, 22.4),
        (3.2, 25.4),
        (0, 26.6),
    ]
    model.add(lathe(rounded(body, 2.4, 4), 40), black, "satin", solid=True)
    belly = sphere(5.4, 36, 1.5).moved(0, -1.9, 9.4)
    model.add(belly, WHITE, "satin")
    for x in (-1, 1):
        model.add(sphere(1.25, 20).moved(x * 1.7, -3.2, 23.0), WHITE, "gloss")
        model.add(sphere(0.6, 16).moved(x * 1.75, -4.3, 23.1), BLACK, "gloss")
        wing = [(x * 5.2, 0, 16.6), (x * 7.4, 0, 11.6), (x * 8.0, -0.3, 6.8)]
        model.add(tube(wing, (1.0, 1.9, 0.8), 12, flat=0.5, up=(1, 0, 0.3)), black, "satin")
        foot = sphere(2.6, 24, 0.35).moved(x * 2.8, -3.2, 0.9)
        model.add(foot, orange, "satin", solid=True)
    model.add(lathe([(1.25, 0), (0, 3.6)], 16).turned("x", 90).moved(0, -3.6, 21.4), orange, "gloss")


def telescope(model: Model, colour: Colour) -> None:
    """A telescope on a tripod that looks up to the left: three tubes, each narrower, with rings of brass."""
    legs = [(9.0 * math.cos(a), 9.0 * math.sin(a), 0.5) for a in (math.pi / 2, math.pi * 7 / 6, math.pi * 11 / 6)]
    for x, y, z in legs:
        path = [(x, y, z), (x / 2, y / 2, 10.0), (0.0, 0.0, 20.0)]
        model.add(tube(path, 0.75, 8, up=(0.3, 0.5, 0)), (120, 78, 40))
        model.collide_along(path, (0.7, 0.7, 0), 1)
    for start, end, radius in ((-13.0, -2.0, 2.7), (-2.5, 6.0, 2.2), (5.5, 12.0, 1.7)):
        profile = [(0, 0), (radius, 0), (radius, end - start), (0, end - start)]
        barrel = lathe(profile, 32).moved(z=start).turned("y", -62).moved(z=23.0)
        model.add(barrel, colour, "gloss", solid=True)
        band = [(radius + 0.3, 0.3), (radius + 0.3, 1.3), (radius, 1.3)]
        model.add(lathe([(radius, 0.3), *band], 32).moved(z=start).turned("y", -62).moved(z=23.0), BRASS, "steel")


def anvil(model: Model) -> None:
    """A dark iron anvil: foot, waist, a face with a horn to the left."""
    iron = (62, 64, 70)
    rings = []
    for z, long, wide in ((0, 9, 6), (2.4, 9, 6), (3.6, 5.4, 4), (7.4, 5.2, 3.8), (9.4, 10, 4.6), (13.4, 10.4, 4.8)):
        rings.append([(-long, -wide, z), (long, -wide, z), (long, wide, z), (-long, wide, z)])
    model.add(loft(np.array(rings, float), caps=True), iron, "steel", solid=True)
    horn = tube([(-9.6, 0, 11.0), (-13.5, 0, 11.8), (-18.0, 0, 12.9)], (2.6, 2.0, 0.5), 16, up=(0, 1, 0))
    model.add(horn, shade(iron, 1.2), "steel", solid=True)


def birdcage(model: Model, colour: Colour) -> None:
    """A cage of wires with a dome and a ring; a yellow bird sits on a perch in it."""
    rim = rounded([(0, 0), (8.6, 0), (8.8, 1.6), (8.2, 1.8), (0, 1.2)], 0.3)
    model.add(lathe(rim, 40), colour, "satin", solid=True)
    for angle in np.arange(18) * math.tau / 18:
        bow = [(8.0, 1.4), (8.0, 7.0), (8.0, 13.0), (6.4, 18.0), (3.4, 20.8), (0.3, 21.8)]
        wire = [(r * math.cos(angle), r * math.sin(angle), z) for r, z in bow]
        model.add(tube(wire, 0.24, 6, up=(math.sin(angle), -math.cos(angle), 0)), colour, "satin")
    turns = np.arange(36) * math.tau / 36
    for radius, z in ((8.0, 7.0), (8.0, 13.0)):
        hoop = np.stack([radius * np.cos(turns), radius * np.sin(turns), np.full(36, z)], 1)
        model.add(tube(hoop, 0.3, 6, closed=True), colour, "satin")
    ring = np.stack([1.5 * np.cos(turns), np.zeros(36), 23.4 + 1.5 * np.sin(turns)], 1)
    model.add(tube(ring, 0.3, 8, closed=True, up=(0, 1, 0)), SILVER, "steel")
    model.add(tube([(-7.8, 0, 6.0), (0, 0, 6.0), (7.8, 0, 6.0)], 0.4, 8, up=(0, 1, 0)), (120, 78, 40))
    for radius, x, z in ((2.5, 0.4, 8.4), (1.7, -1.3, 11.4)):
        model.add(sphere(radius, 24).moved(x, 0, z), (250, 206, 40), "matte")
    model.add(tube([(1.8, 0, 7.8), (3.6, 0, 6.6), (5.4, 0, 5.4)], (0.9, 0.8, 0.5), 8, up=(0, 1, 0)), (236, 180, 20))
    model.add(lathe([(0.6, 0), (0, 1.6)], 10).turned("y", -90).moved(-2.8, 0, 11.4), (240, 130, 30))
    model.add(sphere(0.35, 12).moved(-2.1, -1.3, 11.9), BLACK, "gloss")
    model.collide(lathe([(8.2, 0), (8.2, 13.0), (6.4, 18.0), (1.5, 22.0), (1.0, 25.0)], 16).vertices)
