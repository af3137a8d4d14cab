"""The steps of the miniature's recipes: each draws one moment of one step onto an empty counter.

Every step is called with the canvas and the share of the step that is over (0-1).
"""

from __future__ import annotations

import math
from collections.abc import Callable

from generators.builtin.miniature import food
from generators.builtin.miniature.canvas import Canvas, Colour, Point
from generators.builtin.miniature.kitchen import SKIN, board, bowl, fist, jug, knife, pan, plate, pot, spoon

Step = Callable[[Canvas, float], None]
Drawing = Callable[[Canvas, float], None]
MIDDLE: Point = (150.0, 112.0)
SLEEVE: Colour = (70, 96, 140)
TURNS = 3.0  # how often a stirring hand goes round, or a knife falls, within a step, in halves


def chop(kind: Callable[[Canvas, Point, float], None], rim: Colour, flesh: Colour) -> Step:
    """Slicing something long on the board, slice after slice."""

    def draw(canvas: Canvas, share: float) -> None:
        board(canvas, (160, 112))
        cut = 122 + 60 * share
        food.slices(canvas, (cut - 8, 108), 1 + round(5 * share), rim, flesh)
        kind(canvas, (cut, 106), 234 - cut)
        fist(canvas, (min(262, cut + 66), 116), (330, 250), SLEEVE)
        lift = 10 * abs(math.sin(share * TURNS * 2 * math.pi))
        knife(canvas, (cut - 3, 74 - lift), -math.pi / 2 + 0.12)
        fist(canvas, (cut - 16, 190 - lift), (70, 300), SLEEVE)

    return draw


def cut_tomatoes(canvas: Canvas, share: float) -> None:
    """Cutting tomatoes into round slices."""
    board(canvas, (160, 112))
    for n in range(1 + round(4 * share)):
        food.tomato_slice(canvas, (88 + 22 * n, 84 + 5 * (n % 2)), 20)
    food.tomato(canvas, (226, 84), 25)
    food.tomato(canvas, (178, 134), 26)
    lift = 8 * abs(math.sin(share * TURNS * 2 * math.pi))
    fist(canvas, (206, 160), (300, 280), SLEEVE)
    knife(canvas, (166, 104 - lift), -math.pi / 2 + 0.1)
    fist(canvas, (152, 222 - lift), (90, 320), SLEEVE)


def stir(vessel: Drawing, tool: Callable[[Canvas, Point, Point], None] = spoon, reach: float = 34.0) -> Step:
    """Going round in a vessel with a spoon or a whisk."""

    def draw(canvas: Canvas, share: float) -> None:
        vessel(canvas, share)
        turn = share * TURNS * 2 * math.pi
        end = MIDDLE[0] + reach * math.cos(turn), MIDDLE[1] + reach * 0.7 * math.sin(turn)
        hand = 226 + 12 * math.cos(turn), 186 + 8 * math.sin(turn)
        tool(canvas, end, hand)
        fist(canvas, hand, (318, 290), SLEEVE)

    return draw


def pour(vessel: Drawing, glass: Colour, liquid: Colour) -> Step:
    """Pouring from a jug into a vessel."""

    def draw(canvas: Canvas, share: float) -> None:
        vessel(canvas, share)
        sway = 8 * math.sin(share * 2 * math.pi)
        spout = 186 + sway, 84.0
        jug(canvas, spout, glass, liquid, (158 + sway, 122))
        fist(canvas, (spout[0] + 66, spout[1] - 30), (350, 60), SLEEVE)

    return draw


def add(vessel: Drawing, piece: Callable[[Canvas, Point], None]) -> Step:
    """A hand that lets pieces fall into or onto a vessel."""

    def draw(canvas: Canvas, share: float) -> None:
        vessel(canvas, share)
        hand = 200 + 8 * math.sin(share * 4 * math.pi), 150 + 5 * math.cos(share * 4 * math.pi)
        for n in range(3):
            piece(canvas, (hand[0] - 22 - 14 * n, hand[1] - 24 - 8 * n + 10 * ((share * 6 + n * 0.4) % 1)))
        fist(canvas, hand, (310, 270), SLEEVE)

    return draw


def place(under: Drawing, piece: Callable[[Canvas, Point], None]) -> Step:
    """A hand that brings one piece and lays it down."""

    def draw(canvas: Canvas, share: float) -> None:
        under(canvas, share)
        near = min(1.0, share * 2.2)
        where = MIDDLE[0] + 60 * (1 - near), MIDDLE[1] + 50 * (1 - near)
        piece(canvas, where)
        away = max(0.0, share - 0.6) * 80
        fist(canvas, (where[0] + 44 + away, where[1] + 34 + away), (310, 290), SLEEVE)

    return draw


def spread(canvas: Canvas, share: float) -> None:
    """Spreading butter on a slice of bread."""
    board(canvas, (160, 112))
    food.bread(canvas, (140, 112))
    swing = math.sin(share * TURNS * 2 * math.pi)
    canvas.limb([(108, 96), (108 + 60 * max(0.3, share), 100)], 34, 30, (252, 236, 130))
    canvas.limb([(112, 128), (112 + 54 * share, 130)], 30, 28, (252, 236, 130))
    tip = 116 + 16 * swing, 108.0
    canvas.at(tip, 0.5).limb([(0, 0), (62, 0)], 13, 11, (204, 208, 216))
    canvas.at(tip, 0.5).limb([(60, 0), (104, 0)], 11, 13, (60, 46, 40))
    fist(canvas, (tip[0] + 84, tip[1] + 48), (320, 270), SLEEVE)


def halve(canvas: Canvas, share: float) -> None:
    """Cutting a finished sandwich in two."""
    board(canvas, (160, 112))
    gap = 9 * max(0.0, share - 0.3)
    for side in (-1, 1):
        here = canvas.at((140 + side * gap, 104))
        here.polygon([(side * 2, -50), (side * 62, -50), (side * 62, 54), (side * 2, 54)], (226, 56, 44))
        here.polygon([(side * 2, -44), (side * 58, -44), (side * 58, 58), (side * 2, 58)], (250, 204, 72))
        here.polygon([(side * 2, -52), (side * 54, -52), (side * 54, 46), (side * 2, 46)], (160, 100, 48))
        here.polygon([(side * 2, -47), (side * 49, -47), (side * 49, 41), (side * 2, 41)], (240, 214, 164))
    fist(canvas, (70, 130), (-20, 280), SLEEVE)
    saw = 12 * math.sin(share * TURNS * 2 * math.pi)
    knife(canvas, (140, 46 + saw), -math.pi / 2)
    fist(canvas, (148, 182 + saw), (180, 320), SLEEVE)


def fry(piece: Drawing) -> Step:
    """Something in the pan, pushed with a spatula."""

    def draw(canvas: Canvas, share: float) -> None:
        pan(canvas, MIDDLE)
        piece(canvas, share)
        push = 8 * math.sin(share * TURNS * 2 * math.pi)
        blade = canvas.at((184 + push, 146 + push), 0.75)
        blade.box(-24, -17, 12, 17, (178, 184, 192))
        for slot in (-8, 0, 8):
            blade.box(-18, slot - 1.5, 4, slot + 1.5, (90, 92, 98))
        blade.stroke([(12, 0), (90, 0)], 7, (44, 44, 50))
        fist(canvas, (240 + push, 206 + push), (330, 290), SLEEVE)

    return draw


def with_hand(under: Drawing) -> Step:
    """The same, with a hand at its edge that turns the dish to the camera."""

    def draw(canvas: Canvas, share: float) -> None:
        under(canvas, share)
        canvas.limb([(256, 250), (224, 170)], 32, 22, SKIN)
        canvas.limb([(330, 330), (256, 250)], 46, 40, SLEEVE)
        canvas.limb([(226, 172), (206 - 4 * math.sin(share * 2 * math.pi), 150)], 15, 12, SKIN)

    return draw


def in_bowl(glaze: Colour, filling: Colour | None = None, radius: float = 80.0) -> Drawing:
    """A bowl in the middle of the counter."""
    return lambda canvas, share: bowl(canvas, MIDDLE, radius, glaze, filling)


def in_pan(filling: Drawing | None = None) -> Drawing:
    """A pan in the middle of the counter."""

    def draw(canvas: Canvas, share: float) -> None:
        pan(canvas, MIDDLE)
        if filling:
            filling(canvas, share)

    return draw


def in_pot(filling: Colour | None) -> Drawing:
    """A pot in the middle of the counter."""
    return lambda canvas, share: pot(canvas, MIDDLE, filling)


def on_plate(food_on_it: Drawing | None = None) -> Drawing:
    """A plate in the middle of the counter."""

    def draw(canvas: Canvas, share: float) -> None:
        plate(canvas, MIDDLE)
        if food_on_it:
            food_on_it(canvas, share)

    return draw
