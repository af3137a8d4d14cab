"""The steps of the cooking videos: each paints one moment of a step onto an empty counter.

A `Layer` paints on a canvas, given the share of the step that is over (0-1). The functions that take more first are
made layers of with `functools.partial`.
"""

import math
from collections.abc import Callable
from functools import cache
from pathlib import Path

import cv2
import numpy as np
from PIL import Image

from twinset.contracts.kinds.samples import Pixels
from twinset_demo.canvas import HEIGHT, SCALE, WIDTH, Canvas, Colour, Point, shade
from twinset_demo.miniature import kitchen
from twinset_demo.miniature.kitchen import MIDDLE, fist

Layer = Callable[[Canvas, float], None]
Piece = Callable[[Canvas, Point], None]
Tool = Callable[[Canvas, Point, Point], None]
BEATS = 3.0  # how often a stirring hand goes round, or a knife falls twice, within a step
WALL = (208, 200, 208)  # as behind the face in its photograph
FACE = Path(__file__).with_name("face.jpg")


def _swing(share: float) -> float:
    return math.sin(share * BEATS * 2 * math.pi)


def layers(*painted: Layer) -> Layer:
    """Layers one over the other, as one."""

    def paint(canvas: Canvas, share: float) -> None:
        for layer in painted:
            layer(canvas, share)

    return paint


def chop(
    kind: Callable[[Canvas, Point, float], None], rim: Colour, flesh: Colour, canvas: Canvas, share: float
) -> None:
    """Slicing something long on the board, slice after slice."""
    kitchen.board(canvas)
    cut = 122 + 60 * share
    kitchen.slices(canvas, (cut - 8, 108), 1 + round(5 * share), rim, flesh)
    kind(canvas, (cut, 106), 234 - cut)
    fist(canvas, (min(262, cut + 66), 116), (330, 250))
    lift = 10 * abs(_swing(share))
    kitchen.knife(canvas, (cut - 3, 74 - lift), -math.pi / 2 + 0.12)
    fist(canvas, (cut - 16, 190 - lift), (70, 300))


def cut_tomatoes(canvas: Canvas, share: float) -> None:
    """Cutting tomatoes into round slices."""
    kitchen.board(canvas)
    for n in range(1 + round(4 * share)):
        kitchen.tomato_slice(canvas, (88 + 22 * n, 84 + 5 * (n % 2)), 20)
    kitchen.tomato(canvas, (226, 84), 25)
    kitchen.tomato(canvas, (178, 134), 26)
    lift = 8 * abs(_swing(share))
    fist(canvas, (206, 160), (300, 280))
    kitchen.knife(canvas, (166, 104 - lift), -math.pi / 2 + 0.1)
    fist(canvas, (152, 222 - lift), (90, 320))


def stir(vessel: Layer, canvas: Canvas, share: float, tool: Tool = kitchen.spoon, reach: float = 34.0) -> None:
    """Going round in a vessel with a spoon or a whisk."""
    vessel(canvas, share)
    turn = share * BEATS * 2 * math.pi
    hand = 226 + 12 * math.cos(turn), 186 + 8 * math.sin(turn)
    tool(canvas, (MIDDLE[0] + reach * math.cos(turn), MIDDLE[1] + reach * 0.7 * math.sin(turn)), hand)
    fist(canvas, hand, (318, 290))


def pour(vessel: Layer, glass: Colour, liquid: Colour, canvas: Canvas, share: float) -> None:
    """Pouring from a jug into a vessel."""
    vessel(canvas, share)
    sway = 8 * math.sin(share * 2 * math.pi)
    spout = 186 + sway, 84.0
    kitchen.jug(canvas, spout, glass, liquid, (158 + sway, 122))
    fist(canvas, (spout[0] + 66, spout[1] - 30), (350, 60))


def add(vessel: Layer, piece: Piece, canvas: Canvas, share: float) -> None:
    """A hand that lets pieces fall into or onto a vessel."""
    vessel(canvas, share)
    hand = 200 + 8 * math.sin(share * 4 * math.pi), 150 + 5 * math.cos(share * 4 * math.pi)
    for n in range(3):
        piece(canvas, (hand[0] - 22 - 14 * n, hand[1] - 24 - 8 * n + 10 * ((share * 6 + n * 0.4) % 1)))
    fist(canvas, hand, (310, 270))


def place(under: Layer, piece: Piece, canvas: Canvas, share: float) -> None:
    """A hand that brings one piece and lays it down."""
    under(canvas, share)
    near = min(1.0, share * 2.2)
    where = MIDDLE[0] + 60 * (1 - near), MIDDLE[1] + 50 * (1 - near)
    piece(canvas, where)
    away = max(0.0, share - 0.6) * 80
    fist(canvas, (where[0] + 44 + away, where[1] + 34 + away), (310, 290))


def spread(canvas: Canvas, share: float) -> None:
    """Spreading butter on a slice of bread."""
    kitchen.board(canvas)
    kitchen.bread(canvas, (140, 112))
    canvas.limb([(108, 96), (108 + 60 * max(0.3, share), 100)], 34, 30, (252, 236, 130))
    canvas.limb([(112, 128), (112 + 54 * share, 130)], 30, 28, (252, 236, 130))
    tip = 116 + 16 * _swing(share), 108.0
    canvas.at(tip, 0.5).limb([(0, 0), (62, 0)], 13, 11, (204, 208, 216))
    canvas.at(tip, 0.5).limb([(60, 0), (104, 0)], 11, 13, (60, 46, 40))
    fist(canvas, (tip[0] + 84, tip[1] + 48), (320, 270))


def halve(canvas: Canvas, share: float) -> None:
    """Cutting a finished sandwich in two."""
    kitchen.board(canvas)
    gap = 9 * max(0.0, share - 0.3)
    slices = (
        (62, -50, 54, (226, 56, 44)),
        (58, -44, 58, kitchen.CHEESE),
        (54, -52, 46, kitchen.CRUST),
        (49, -47, 41, kitchen.CRUMB),
    )
    for side in (-1, 1):
        here = canvas.at((140 + side * gap, 104))
        for outer, top, bottom, colour in slices:
            here.polygon([(side * 2, top), (side * outer, top), (side * outer, bottom), (side * 2, bottom)], colour)
    fist(canvas, (70, 130), (-20, 280))
    saw = 12 * _swing(share)
    kitchen.knife(canvas, (140, 46 + saw), -math.pi / 2)
    fist(canvas, (148, 182 + saw), (180, 320))


def fry(piece: Layer, canvas: Canvas, share: float) -> None:
    """Something in the pan, pushed with a spatula."""
    kitchen.pan(canvas)
    piece(canvas, share)
    push = 8 * _swing(share)
    blade = canvas.at((184 + push, 146 + push), 0.75)
    blade.box(-24, -17, 12, 17, (178, 184, 192))
    blade.boxes([(-18, slot - 1.5, 4, slot + 1.5) for slot in (-8, 0, 8)], (90, 92, 98))
    blade.stroke([(12, 0), (90, 0)], 7, (44, 44, 50))
    fist(canvas, (240 + push, 206 + push), (330, 290))


def serve(dish: Layer, canvas: Canvas, share: float) -> None:
    """A hand at the edge of a dish that turns it to the camera."""
    dish(canvas, share)
    canvas.limb([(256, 250), (224, 170)], 32, 22, kitchen.SKIN)
    canvas.limb([(330, 330), (256, 250)], 46, 40, kitchen.SLEEVE)
    canvas.limb([(226, 172), (206 - 4 * math.sin(share * 2 * math.pi), 150)], 15, 12, kitchen.SKIN)


@cache
def _face() -> Pixels:
    with Image.open(FACE) as picture:
        return np.asarray(picture.convert("RGB"), np.uint8)


def present(canvas: Canvas, seconds: float) -> None:
    """A cook who talks to the camera in a tiled kitchen, in a slight pan and zoom: for the face filter, a real face
    (face.jpg, see CREDITS.md) on a painted body, about 150 pixels high."""
    canvas.box(0, 0, WIDTH, HEIGHT, shade(WALL, 0.9))
    for row in range(0, HEIGHT, 30):
        shift = row // 30 % 2 * 20
        canvas.boxes([(x - 29, row + 1, x + 9, row + 29) for x in range(shift, shift + WIDTH + 30, 40)], WALL)
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
