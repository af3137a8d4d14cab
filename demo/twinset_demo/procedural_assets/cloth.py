"""Things of cloth and straw: folded towels, hats, a basket."""

import math

import numpy as np
from PIL import Image

from twinset_demo.canvas import Colour, shade
from twinset_demo.procedural_assets.model import Model
from twinset_demo.procedural_assets.paint import OFF_WHITE, canvas, grain, woven
from twinset_demo.procedural_assets.surface import Floats, Point2, lathe, rounded, sheet, tube


def towel(model: Model, picture: Image.Image, hem: Colour, thickness: float = 1.0) -> None:
    """A towel folded in four layers, its fold towards the viewer: one sheet that goes to and fro.

    picture: v runs along x, from the left edge to the right; u along the sheet from below to the top layer.
    """
    depth, width, gap = 15.0, 24.0, thickness * 1.06
    path: list[tuple[float, float, float, float]] = []  # centre (y, z) and the normal (y, z) to its left
    for layer in range(4):
        z, ahead = thickness / 2 + layer * gap, -1.0 if layer % 2 == 0 else 1.0
        path += [(ahead * s * depth / 2, z, 0.0, ahead) for s in np.linspace(-1, 1, 9)]
        for a in np.linspace(0, math.pi, 8)[1:-1] if layer < 3 else ():
            y, up = math.sin(a), -math.cos(a)
            path.append((ahead * (depth / 2 + y * gap / 2), z + gap / 2 + up * gap / 2, -y, -ahead * up))
    bevel = [(-width / 2, 0.55), (-width / 2 + 0.15, 0.85), (-width / 2 + 0.5, 1.0)]
    middle = [(x, 1.0) for x in np.linspace(-width / 2 + 2, width / 2 - 2, 9)]
    stations = [*bevel, *middle, *((-x, t) for x, t in bevel[::-1])]

    y, z, ny, nz = np.array(path).T
    x, t = np.array(stations).T[..., None]

    def side(sign: float) -> Floats:
        out = sign * thickness / 2
        grid = np.stack(np.broadcast_arrays(x, y + out * ny * t, z + out * nz * t), -1)
        grid[..., 2] += _drape(grid)
        return grid

    left, right = side(1.0), side(-1.0)
    fabric = grain(picture, 7, 1)
    model.add(sheet(left[::-1]), fabric, "cloth")
    model.add(sheet(right), fabric, "cloth")
    ends = np.stack([left, right])
    for hemmed in (ends[:, 0], ends[::-1, -1], ends[::-1, :, 0], ends[:, :, -1]):
        model.add(sheet(hemmed), hem, "cloth")
    model.collide_box((-width / 2, width / 2), (-depth / 2 - gap / 2, depth / 2), (0, 4 * gap))


def _drape(grid: Floats) -> Floats:
    """How much softer folds lift the sheet: nothing on the floor, some millimetres on top."""
    x, y, z = grid[..., 0], grid[..., 1], grid[..., 2]
    return np.asarray(0.035 * z * (np.sin(0.45 * x + 0.3) + np.cos(0.5 * y + 0.2 * x) - 1))


def striped_towel(model: Model, colour: Colour) -> None:
    """A dish towel of white terry with stripes: a wide one between two narrow ones, three times."""
    white = (236, 234, 228)
    picture, pen = canvas(256, 384, white)
    for middle in (64, 192, 320):
        for low, high in ((-30, 30), (-46, -38), (38, 46)):
            pen.rectangle((0, middle + low, 256, middle + high), colour)
    towel(model, woven(picture, 4, 0.16), white)


def wash_towel(model: Model, colour: Colour) -> None:
    """A thicker towel of terry in one colour, with a woven border at each end."""
    picture, pen = canvas(256, 384, colour)
    for row in (34, 44, 340, 350):
        pen.rectangle((0, row - 3, 256, row + 1), shade(colour, 0.78))
    towel(model, woven(picture, 4, 0.25), shade(colour, 0.9), 1.2)


def bath_towel(model: Model, colour: Colour) -> None:
    """A thick towel of damask: staggered medallions in a lighter tone."""
    picture, pen = canvas(512, 480, colour)
    light, dark = shade(colour, 1.22), shade(colour, 0.86)
    for row in range(9):
        for column in range(9):
            x, y = column * 64 + (row % 2) * 32, row * 60
            for turned in range(8):
                angle = turned * math.pi / 4
                px, py = x + 15 * math.cos(angle), y + 15 * math.sin(angle)
                pen.ellipse((px - 7, py - 7, px + 7, py + 7), light)
            pen.ellipse((x - 9, y - 9, x + 9, y + 9), dark)
            pen.ellipse((x - 4, y - 4, x + 4, y + 4), light)
            pen.polygon([(x + 32, y - 9), (x + 39, y), (x + 32, y + 9), (x + 25, y)], dark)
    towel(model, woven(picture.crop((0, 0, 508, 480)), 3, 0.1), shade(colour, 0.9), 1.5)


def hat(model: Model, colour: Colour, band: Colour) -> None:
    """A felt fedora: oval brim turned up at the sides, band, crown with a crease and pinched front."""
    brim: list[Point2] = [(0, 0.5), (8.2, 0.3), (14.0, 0.0), (14.4, 0.25), (14.0, 0.55), (9.2, 0.8), (8.6, 1.2)]
    crown = [(8.6, 1.2), (8.5, 3.4), (8.1, 8.0), (7.3, 10.6), (5.6, 11.6), (3.4, 11.4), (1.6, 11.1), (0.0, 11.0)]

    def shaped(points: Floats) -> Floats:
        radius = np.hypot(points[:, 0], points[:, 1])
        sideways = (points[:, 0] / np.maximum(radius, 1e-6)) ** 2
        points[:, 2] += 3.0 * sideways * np.clip((radius - 9) / 5.4, 0, None) ** 2
        high = np.clip((points[:, 2] - 7) / 4, 0, 1)
        front = np.clip(-points[:, 1] / 8, 0, 1)
        points[:, 2] -= high * (1.9 * np.exp(-((points[:, 0] / 2.6) ** 2)) + 0.8 * front)
        points[:, 0] *= 1 - 0.28 * high * front
        points[:, 1] *= 1.14
        return points

    felt = grain(canvas(128, 128, colour)[0], 5, 2)
    model.add(lathe(rounded(brim, 0.5), 48).bent(shaped), felt, "cloth")
    model.add(lathe(rounded(crown, 1.6, 4), 48).bent(shaped), felt, "cloth")
    model.add(lathe([(8.65, 1.1), (8.75, 1.3), (8.6, 3.5), (8.4, 3.6)], 48).bent(shaped), band, "satin")
    model.add_box((0.7, 2.6, 2.6), (8.9, 0, 1.1), band, radius=0.3)
    model.collide(lathe([(14.2, 0), (14.2, 0.6)], 24).vertices * (1, 1.14, 1))
    model.collide(lathe([(8.6, 0), (8.1, 8.0), (6.4, 11.0)], 20).vertices * (1, 1.14, 1))


def basket(model: Model) -> None:
    """A basket of woven fabric bands, with a rolled rim and two handles."""
    weave, pen = canvas(504, 160, (190, 150, 96))
    for row in range(8):
        for column in range(28):
            x, y = column * 18, row * 20
            over = (row + column) % 2
            pen.rectangle((x + 1, y + 1, x + 16, y + 18), (214, 178, 122) if over else (168, 124, 72))
            for line in range(3):
                along, across = 4 + 5 * line, 5 + 5 * line
                if over:
                    pen.line((x + 1, y + across, x + 16, y + across), (186, 146, 92))
                else:
                    pen.line((x + along, y + 1, x + along, y + 18), (140, 100, 56))
    model.add(lathe([(8.6, 0), (9.6, 6), (10.4, 12)], 64, 4), weave, "cloth")
    model.add(lathe([(10.0, 12), (9.2, 6), (8.2, 0.8)], 64, 4), weave, "cloth")
    model.add(lathe([(8.2, 0.8), (0, 0.8)], 64, (4, 2)), OFF_WHITE, "cloth")
    model.add(lathe([(0, 0), (8.6, 0)], 64, (2, 4)), (150, 110, 64), "cloth")
    angles = np.arange(64) * math.tau / 64
    reach = 10.2 / (np.abs(np.cos(angles)) ** 4 + np.abs(np.sin(angles)) ** 4) ** 0.25
    rim = np.stack([reach * np.cos(angles), reach * np.sin(angles), np.full(64, 12.0)], 1)
    model.add(tube(rim, 0.6, 8, closed=True), (128, 84, 44), "cloth")
    for side in (-1, 1):
        a = np.linspace(0, math.pi, 12)
        arc = np.stack([side * (10.3 + 0.9 * np.sin(a)), 3.4 * np.cos(a), 11.6 + 3.2 * np.sin(a)], 1)
        model.add(tube(arc, 0.5, 8, up=(1, 0, 0)), (128, 84, 44), "cloth")
    model.collide_walls([(8.6, 0), (8.7, 0.6), (10.4, 12.5)], [(8.2, 0.8), (8.3, 1.0), (9.8, 12.5)], 16, 4)
