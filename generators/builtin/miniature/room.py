"""The room that the actors play in: papered wall, plank floor, window and picture, with the grain of a photo."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import cv2
import numpy as np

from generators.builtin.canvas import HEIGHT, SCALE, WIDTH, Canvas, Colour, shade

SKIRTING = 172.0  # picture row where wall and floor meet


@dataclass(frozen=True)
class Room:
    """A room by the colours of its wall and floor, the columns of its window and its picture, and its grain's seed."""

    wall: Colour
    floor: Colour
    window: float
    picture: float
    seed: int

    @cached_property
    def empty(self) -> Canvas:
        """The room with nothing in it."""
        wall, floor = self.wall, self.floor
        canvas = Canvas.blank(wall)
        for column in range(0, WIDTH, 16):
            canvas.box(column, 0, column + 8, SKIRTING, shade(wall, 0.965))
        _window(canvas.at((self.window, 60)))
        _picture(canvas.at((self.picture, 52)))
        canvas.box(0, SKIRTING, WIDTH, HEIGHT, floor)
        random = np.random.Generator(np.random.PCG64(self.seed))
        for row, (top, bottom) in enumerate(pairwise((SKIRTING, 181, 194, 212, 233, HEIGHT))):
            for plank in range(-1, 5):
                left = plank * 90 + (row % 3) * 31 - 20
                canvas.box(left, top, left + 89, bottom - 0.7, shade(floor, float(random.uniform(0.88, 1.06))))
        canvas.box(0, SKIRTING - 8, WIDTH, SKIRTING, shade(wall, 1.12))
        canvas.box(0, SKIRTING - 1.5, WIDTH, SKIRTING, shade(wall, 0.7))
        add_grain(canvas, random)
        return canvas


def add_grain(canvas: Canvas, random: np.random.Generator) -> None:
    """Soft light from above and a still, blotchy grain (integer arithmetic from the noise on)."""
    height, width = HEIGHT * SCALE, WIDTH * SCALE
    noise = np.rint(random.normal(0, 3.5, (height // 2, width // 2))).astype(np.int16)
    blotches = cv2.resize(noise, (width, height), interpolation=cv2.INTER_NEAREST)
    light = np.linspace(10, -16, height).astype(np.int16)[:, None]
    canvas.large[:] = np.clip(canvas.large.astype(np.int16) + (blotches + light)[..., None], 0, 255).astype(np.uint8)


def _window(canvas: Canvas) -> None:
    frame = (240, 240, 236)
    canvas.box(-34, -40, 34, 32, frame)
    canvas.box(-29, -35, 29, 27, (170, 208, 236))
    canvas.ellipse((-12, 22), 17, 12, (118, 160, 96))
    canvas.ellipse((16, 26), 15, 14, (98, 146, 84))
    for bottom in (32, 42):  # twice, which makes its soft edge firmer
        canvas.box(-29, 27, 29, bottom, frame)
    canvas.box(-38, 32, 38, 37, (222, 222, 216))
    canvas.box(-34, 37, 34, 42, (200, 200, 194))
    canvas.box(-1.5, -35, 1.5, 27, frame)
    canvas.box(-29, -5, 29, -2, frame)


def _picture(canvas: Canvas) -> None:
    canvas.box(-20, -16, 20, 16, (120, 84, 52))
    canvas.box(-16, -12, 16, 12, (236, 226, 200))
    canvas.polygon([(-16, 12), (-6, -6), (2, 4), (8, -3), (16, 12)], (96, 120, 150))
    canvas.ellipse((9, -7), 3, 3, (238, 190, 80))
