"""Bowls, plates, pots, mug, ramekin, teapot and bottles: turned on the wheel, handles and spouts swept."""

import math

import numpy as np
from PIL import Image, ImageDraw

from twinset_demo.canvas import Colour, shade
from twinset_demo.procedural_assets.model import Model
from twinset_demo.procedural_assets.paint import BLACK, OFF_WHITE, RED, WHITE, canvas, grain, lettering
from twinset_demo.procedural_assets.surface import Floats, Point2, disc, lathe, rounded, tube


def bowl(model: Model, colour: Colour) -> None:
    """A cereal bowl on a foot ring."""
    outer = [(3.6, 0.0), (3.8, 0.7), (6.2, 2.4), (7.6, 4.6), (8.3, 7.2)]
    inner = [(3.2, 1.3), (5.7, 2.8), (7.1, 4.9), (7.9, 7.2)]
    profile = rounded([(0, 0.3), (3.0, 0.3), (3.2, 0.0), *outer, *inner[::-1], (0, 1.1)], 0.9)
    model.add(lathe(profile, 48), colour, "gloss")
    levels = [(3.6, 0.0), (5.0, 1.3), (6.2, 2.4), (7.6, 4.6), (8.3, 7.2)]
    model.collide_walls(levels, [(3.4, 1.1), (4.5, 1.9), (5.7, 2.8), (7.1, 4.9), (7.9, 7.2)], 16)


def dog_bowl(model: Model, colour: Colour, finish: str = "satin") -> None:
    """A feeding bowl: flared outwards to a wide base, with a bone and letters on its wall and food in it."""
    wall, pen = canvas(512, 64, colour)
    light = WHITE if sum(colour) < 560 else BLACK
    for middle in (64, 192, 320, 448):
        lettering(pen, (middle - 26, 33), "DOG", 34, light)
        bone(pen, middle + 38, 33, light)
    model.add(lathe([(10.2, 0.6), (8.5, 5.6)], 48), wall, finish)
    model.add(lathe([(0, 0), (10.0, 0), (10.2, 0.15), (10.2, 0.6)], 48), shade(colour, 0.75), finish)
    rim = rounded([(8.5, 5.6), (8.3, 6.2), (7.6, 6.2), (7.0, 5.2), (5.6, 2.0)], 0.5)
    model.add(lathe([*rim, (0, 1.8)], 48), shade(colour, 0.92), finish)
    food = (140, 84, 40)
    model.add(disc(6.8, 32, 0.7).moved(z=4.3), shade(food, 0.6), "matte")
    for number in range(46):  # a sunflower's spiral spreads the pieces evenly
        out, angle = 6.2 * math.sqrt((number + 0.5) / 46), number * 2.39996
        x, y, z = out * math.cos(angle), out * math.sin(angle), 5.0 - 0.017 * out * out
        piece = lathe([(0.9, -0.2), (0.75, 0.4), (0, 0.6)], 9).moved(x, y, z)
        model.add(piece, shade(food, 0.85 + number % 4 / 8), "matte")
    model.collide_walls([(10.2, 0.0), (10.1, 0.6), (8.5, 6.2)], [(6.0, 4.4), (6.4, 4.8), (7.4, 6.2)])


def bone(pen: ImageDraw.ImageDraw, x: float, y: float, colour: Colour) -> None:
    """A dog's bone, 44 pixels long, at a place of a picture."""
    pen.rectangle((x - 14, y - 5, x + 14, y + 5), colour)
    for side in (-16, 16):
        for rise in (-6, 6):
            pen.ellipse((x + side - 7, y + rise - 7, x + side + 7, y + rise + 7), colour)


def round_plate(model: Model, colour: Colour) -> None:
    """A dinner plate: flat well, raised rim with two thin lines."""
    rings, pen = canvas(64, 128, colour)
    for row, height in ((50, 4), (60, 2)):
        pen.rectangle((0, row, 64, row + height), shade(colour, 0.72))
    below: list[Point2] = [(0, 0.4), (6.6, 0.4), (6.9, 0.0), (7.4, 0.0), (8.0, 0.6), (12.6, 2.0)]
    top: list[Point2] = [(12.6, 2.0), (12.6, 2.4), (8.6, 1.3), (7.4, 0.8), (0, 0.75)]
    model.add(lathe(rounded(below, 0.3), 56), shade(colour, 0.95), "gloss")
    model.add(lathe(rounded(top, 0.6), 56), rings, "gloss")
    model.collide_walls([(7.4, 0.0), (8.0, 0.6), (12.6, 2.0)], [(7.2, 0.8), (8.4, 1.2), (12.4, 2.4)])


def square_plate(model: Model, colour: Colour) -> None:
    """A square saucer: rounded corners, upturned rim, a round well for the cup."""
    below: list[Point2] = [(0, 0.0), (4.6, 0.0), (5.4, 0.35), (7.6, 1.6)]
    top: list[Point2] = [(7.6, 1.6), (7.6, 1.95), (7.3, 1.95), (5.2, 0.95), (3.3, 0.85), (3.0, 0.6), (0, 0.6)]
    model.add(lathe(below, 64, (2, 6, 7, 8)), shade(colour, 0.9), "gloss")
    model.add(lathe(top[:4], 64, (8, 8, 8, 7)), colour, "gloss")
    model.add(lathe(top[3:5], 64, (7, 2)), colour, "gloss")
    model.add(lathe(top[4:], 64), shade(colour, 0.78), "gloss")
    model.collide_walls([(4.6, 0.0), (5.4, 0.35), (7.6, 1.6)], [(4.4, 0.8), (5.2, 0.95), (7.3, 1.95)], 24, 8)


def plant_container(model: Model, colour: Colour) -> None:
    """A flower pot with a thick rim, filled with soil."""
    wall: list[Point2] = [(0, 0), (5.2, 0), (6.9, 9.0), (7.5, 9.2), (8.0, 12.2), (7.2, 12.2), (6.9, 10.8)]
    model.add(lathe(rounded(wall, 0.35), 48), colour, "satin")
    model.add(disc(7.05, 32, 0.6).moved(z=10.9), grain(canvas(256, 256, (62, 42, 28))[0], 22, 5, (3, 3)), "matte")
    model.collide_walls([(5.2, 0), (6.9, 9.0), (8.0, 12.2)], [(5.0, 0.5), (6.7, 10.9), (7.2, 12.2)])
    model.collide([(r * math.cos(a), r * math.sin(a), z) for r, z in ((5.0, 0.2), (6.7, 11.2)) for a in range(0, 7)])


def mug(model: Model, colour: Colour) -> None:
    """A coffee mug with a D-shaped handle and coffee in it."""
    foot = [(0, 0.2), (3.2, 0.2), (3.3, 0), (3.8, 0), (4.1, 0.5)]
    wall = rounded([*foot, (4.2, 9.3), (4.0, 9.6), (3.8, 9.3), (3.75, 7.8)], 0.3)
    model.add(lathe(wall, 48), colour, "gloss")
    model.add(lathe([(3.8, 8.2), (0, 8.2)], 32), (44, 24, 12), "gloss")
    bends = [(4.0, 2.0), (5.2, 1.9), (6.6, 2.6), (7.2, 4.8), (6.6, 7.0), (5.2, 7.8), (4.0, 7.7)]
    path = [(x, 0.0, z) for x, z in rounded(bends, 1.0, 3)]
    model.add(tube(path, 0.55, 10, flat=1.3, up=(0, 1, 0)), colour, "gloss")
    for start, end in zip(range(0, len(path) - 4, 4), range(4, len(path), 4), strict=False):
        part = [path[start], path[end]]
        model.collide([(x + dx, dy, z + dx) for x, _, z in part for dx in (-0.4, 0.4) for dy in (-0.6, 0.6)])
    model.collide_walls([(3.9, 0), (4.1, 0.5), (4.2, 9.6)], [(3.8, 0.5), (3.8, 8.2), (3.8, 9.6)])
    model.collide(lathe([(0, 0), (3.8, 0), (3.8, 8.2), (0, 8.2)], 16).vertices)


def ramekin(model: Model) -> None:
    """A white soufflé dish: straight wall with vertical flutes, smooth rim."""
    flutes, pen = canvas(512, 32, WHITE)
    for x in range(0, 512, 16):
        pen.rectangle((x, 0, x + 2, 32), shade(WHITE, 0.72))
        pen.rectangle((x + 3, 0, x + 5, 32), shade(WHITE, 0.88))
    ribs = lathe([(4.3, 0.4), (4.6, 4.0)], 128)

    def fluted(points: Floats) -> Floats:
        angle = np.arctan2(points[:, 1], points[:, 0])
        points[:, :2] *= (1 + 0.022 * np.abs(np.sin(16 * angle)))[:, None]
        return points

    model.add(ribs.bent(fluted), flutes, "gloss")
    model.add(lathe([(0, 0), (4.2, 0), (4.45, 0.3), (4.2, 0.5)], 48), WHITE, "gloss")
    rim: list[Point2] = [(4.4, 4.0), (4.8, 4.0), (4.85, 5.0), (4.6, 5.2), (4.35, 5.0), (4.1, 0.9), (0, 0.7)]
    model.add(lathe(rounded(rim, 0.25), 48), WHITE, "gloss")
    model.collide_walls([(4.3, 0), (4.35, 0.4), (4.85, 5.2)], [(4.0, 0.7), (4.1, 0.9), (4.4, 5.2)])


def teapot(model: Model, colour: Colour = WHITE) -> None:
    """A porcelain teapot: round body, lid with knob, curved spout and handle."""
    body: list[Point2] = [(0, 0), (4.2, 0), (4.4, 0.6), (6.8, 3.0), (7.4, 5.8), (6.2, 9.0), (3.9, 10.6), (3.6, 10.9)]
    model.add(lathe(rounded(body, 1.6, 4), 48), colour, "gloss")
    lid = [(4.1, 10.5), (4.1, 10.9), (3.4, 11.7), (1.2, 12.4)]
    lid += [(0.7, 12.8), (1.2, 13.6), (0.9, 14.3), (0, 14.5)]
    model.add(lathe(rounded(lid, 0.4), 36), OFF_WHITE if colour == WHITE else shade(colour, 0.9), "gloss")
    spout = [(-5.6, 0, 3.2), (-7.6, 0, 3.8), (-9.2, 0, 5.6), (-10.0, 0, 7.8), (-11.2, 0, 9.8), (-12.0, 0, 10.4)]
    model.add(tube(spout, (2.1, 1.9, 1.45, 1.1, 0.9, 0.85), 14, up=(0, 1, 0)), colour, "gloss")
    model.add(lathe([(0.55, 0), (0, 0)], 12).turned("y", -35).moved(-12.78, 0, 10.9), BLACK, "matte")
    bends = [(6.4, 8.6), (8.6, 9.6), (11.2, 8.8), (11.6, 6.0), (9.6, 3.2), (6.8, 3.2)]
    handle = [(x, 0.0, z) for x, z in rounded(bends, 1.6, 3)]
    model.add(tube(handle, 0.6, 10, flat=1.3, up=(0, 1, 0)), colour, "gloss")
    model.collide(lathe(body, 16).vertices)
    model.collide(lathe(lid, 12).vertices)
    model.collide(tube(spout[:4], (2.0, 1.8, 1.4, 1.1), 6, up=(0, 1, 0)).vertices)
    model.collide(tube(spout[3:], (1.1, 0.9, 0.85), 6, up=(0, 1, 0)).vertices)
    model.collide_along(handle, (0.4, 0.7, 0.4), 3)


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


def vase(model: Model, colour: Colour) -> None:
    """A tall vase: round belly, narrow neck, flared lip, empty."""
    outer: list[Point2] = [(0, 0), (3.8, 0), (4.2, 0.6), (7.2, 7.0), (7.4, 10.0), (3.4, 16.6), (2.9, 19.0), (5.2, 23.0)]
    inner: list[Point2] = [(4.7, 23.0), (2.4, 19.0), (2.9, 16.6), (0, 12.0)]
    model.add(lathe(rounded([*outer, *inner], 2.2, 5), 48), colour, "gloss")
    model.collide(lathe([(3.8, 0), (7.3, 7.0), (7.4, 10.0), (3.4, 16.6)], 20).vertices)
    model.collide(lathe([(2.9, 16.6), (2.9, 19.0), (5.2, 23.0)], 20).vertices)


def bucket(model: Model, colour: Colour) -> None:
    """A bucket: a wall that widens upwards, a rolled rim, a wire handle with a grip that stands up."""
    wall: list[Point2] = [(0, 0), (6.0, 0), (8.4, 13.0), (8.9, 13.2), (8.9, 13.9), (8.1, 13.9), (5.7, 0.6), (0, 0.6)]
    model.add(lathe(rounded(wall, 0.25), 48), colour, "satin")
    model.add(lathe([(7.4, 8.0), (7.75, 8.2), (7.9, 9.0), (7.65, 9.3)], 48), shade(colour, 0.75), "satin")
    turns = np.linspace(0, math.pi, 25)
    wire = np.stack([8.7 * np.cos(turns), np.zeros(25), 12.8 + 8.4 * np.sin(turns)], 1)
    model.add(tube(wire, 0.32, 8, up=(0, 1, 0)), (150, 152, 158), "steel")
    model.add(tube(wire[10:15], 0.8, 10, up=(0, 1, 0)), shade(colour, 0.6), "satin")
    model.collide_walls([(6.0, 0), (6.1, 0.6), (8.9, 13.9)], [(5.5, 0.5), (5.7, 0.6), (8.1, 13.9)])
    model.collide_box((-1.5, 1.5), (-0.6, 0.6), (20.2, 21.6))
