"""A cook who talks to the camera: a real face (face.jpg, see CREDITS.md) on a painted body, for the face filter."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path

import cv2
import numpy as np
from PIL import Image

from generators.builtin.canvas import HEIGHT, SCALE, WIDTH, Canvas, shade
from shards.kinds.samples import Pixels

WALL = (208, 200, 208)  # as behind the face in its photograph
FACE = Path(__file__).with_name("face.jpg")


@cache
def _face() -> Pixels:
    with Image.open(FACE) as picture:
        return np.asarray(picture.convert("RGB"), np.uint8)


def paint_presenter(canvas: Canvas, seconds: float) -> None:
    """Fill the canvas with a tiled kitchen and the cook, the face about 150 pixels high, in a slight pan and zoom."""
    canvas.box(0, 0, WIDTH, HEIGHT, shade(WALL, 0.9))
    for row in range(0, HEIGHT, 30):
        for column in range(-30, WIDTH, 40):
            left = column + (row // 30 % 2) * 20
            canvas.box(left + 1, row + 1, left + 39, row + 29, WALL)
    x, y = 160 + 6 * math.sin(seconds * 0.9), 102 + 2 * math.cos(seconds * 1.3)
    size = round((176 + 6 * math.sin(seconds * 0.7)) * SCALE)
    body = canvas.at((x, y))
    body.limb([(-74, 150), (0, 122), (74, 150)], 96, 96, (38, 38, 44))
    body.limb([(0, 60), (0, 100)], 66, 84, (24, 23, 26))
    for side in (-1, 1):
        body.polygon([(side * 62, 92), (side * 34, 160), (side * 80, 160)], (56, 56, 64))
    _paste(canvas, round(x * SCALE), round(y * SCALE), size)


def _paste(canvas: Canvas, x: int, y: int, size: int) -> None:
    """The face in a soft-edged oval, centred at (x, y) of the large canvas."""
    face = cv2.resize(_face(), (size, size), interpolation=cv2.INTER_LINEAR)
    rows, columns = np.mgrid[0:size, 0:size].astype(np.int64)
    # Squared distance from the centre in units of the oval's half axes, in thousandths: integers, hence the same
    # mask on every machine.
    half = size // 2
    distance = ((columns - half) ** 2 * 1420 + (rows - half) ** 2 * 1080) // (half * half)
    weight = np.clip((1000 - distance) * 256 // 160, 0, 256)[..., None]
    top, left = y - half, x - half
    under = canvas.large[max(0, top) : top + size, left : left + size]
    cut = slice(max(0, -top), max(0, -top) + under.shape[0])
    mixed = (face[cut].astype(np.int64) * weight[cut] + under.astype(np.int64) * (256 - weight[cut])) >> 8
    under[:] = mixed.astype(np.uint8)
