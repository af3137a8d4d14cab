"""Paints scenes of the small world: flat objects before a wall or in a landscape, 64 x 64 pixels."""

import math

import cv2
import numpy as np
from numpy.typing import NDArray

from twinset.contracts.kinds.samples import Pixels
from twinset_demo.small_diffusion.relations import RELATIONS, Arrangement, Thing
from twinset_demo.small_diffusion.scenes import COLOURS, Scene

SIZE = 64  # pixels, width and height
_FINER = 4  # painted this many times larger, then averaged
HORIZON = 40
FRAME = 4  # pixels of a painting's frame

Colour = tuple[float, float, float]

WALL: Colour = (205, 205, 208)
FLOOR: Colour = (170, 168, 166)
GROUND: dict[str, Colour] = {
    "on the grass": (150, 200, 110),
    "in the desert": (232, 205, 140),
    "in the snow": (243, 246, 250),
}
#: Upper and lower colour of the sky, what tints the ground, and how much.
SKY: dict[str, tuple[Colour, Colour, Colour, float]] = {
    "": ((120, 185, 240), (190, 225, 250), (255, 255, 255), 0.0),
    "at sunset": ((235, 120, 120), (255, 200, 120), (225, 130, 90), 0.35),
    "at night": ((45, 50, 105), (75, 80, 140), (70, 80, 135), 0.6),
}
FRAME_WOOD: Colour = (120, 80, 45)
_FRAME_EDGE: Colour = (205, 170, 95)


def _corners(*points: tuple[float, float]) -> NDArray[np.float64]:
    return np.asarray(points, np.float64)


def _arc(x: float, y: float, across: float, up: float) -> NDArray[np.float64]:
    turns = np.linspace(0, 2 * math.pi, 48, endpoint=False)
    return np.stack([x + across * np.cos(turns), y + up * np.sin(turns)], axis=1)


def _star() -> NDArray[np.float64]:
    turns = [math.pi * (2 * i / 10 - 0.5) for i in range(10)]
    points = [(0.23 if i % 2 else 0.54, turn) for i, turn in enumerate(turns)]
    return _corners(*((r * math.cos(turn), r * math.sin(turn) + 0.04) for r, turn in points))


def _heart() -> NDArray[np.float64]:
    t = np.linspace(0, 2 * math.pi, 60, endpoint=False)
    y = 13 * np.cos(t) - 5 * np.cos(2 * t) - 2 * np.cos(3 * t) - np.cos(4 * t)
    return np.stack([16 * np.sin(t) ** 3 / 33, -(y + 2.5) / 31], axis=1)


_DOOR = ((0.14, 0.5), (0.14, 0.16), (-0.14, 0.16), (-0.14, 0.5))
#: Outlines of each object: polygons of corners (n, 2) in a square from -0.5 to 0.5, y downwards.
SILHOUETTES: dict[str, list[NDArray[np.float64]]] = {
    "ball": [_arc(0, 0, 0.5, 0.5)],
    "box": [_corners((-0.46, -0.46), (0.46, -0.46), (0.46, 0.46), (-0.46, 0.46))],
    "star": [_star()],
    "heart": [_heart()],
    "house": [
        _corners((-0.4, -0.08), (0.4, -0.08), (0.4, 0.5), *_DOOR, (-0.4, 0.5)),
        _corners((0, -0.5), (0.52, -0.06), (-0.52, -0.06)),
    ],
    "tree": [
        _corners((0, -0.54), (0.3, -0.16), (-0.3, -0.16)),
        _corners((0, -0.32), (0.42, 0.26), (-0.42, 0.26)),
        _corners((-0.09, 0.24), (0.09, 0.24), (0.09, 0.52), (-0.09, 0.52)),
    ],
    "fish": [_arc(-0.1, 0, 0.42, 0.27), _corners((0.18, 0), (0.54, -0.3), (0.54, 0.3))],
    "car": [
        _corners((-0.54, -0.04), (0.54, -0.04), (0.54, 0.2), (-0.54, 0.2)),
        _corners((-0.3, -0.3), (0.2, -0.3), (0.36, 0), (-0.42, 0)),
        _arc(-0.28, 0.2, 0.14, 0.14),
        _arc(0.28, 0.2, 0.14, 0.14),
    ],
}
#: Centres of several objects, and their extent, by their number.
_GROUPS: dict[int, tuple[tuple[tuple[float, float], ...], float]] = {
    2: (((19, 35), (45, 35)), 20),
    3: (((13, 36), (32, 36), (51, 36)), 15),
    4: (((20, 20), (44, 20), (20, 45), (44, 45)), 17),
}
#: Of two things, in pixels: from the middle of the picture to their places, and how far they may stand from these.
_APART, _ALONG, _ACROSS = 15.5, 0.8, 3.0


def paint(scene: Scene, rng: np.random.Generator) -> Pixels:
    """The picture of a scene, (64, 64, 3) uint8 RGB. rng: for what the caption leaves open."""
    canvas = _background(scene.place, scene.time, rng)
    thing = Thing(scene.colour or str(rng.choice(tuple(COLOURS))), scene.object)
    for x, y, extent in _layout(scene, rng):
        _put(canvas, thing, x, y, extent)
    if scene.style == "painting":
        _frame(canvas)
    return _pixels(canvas)


def paint_arrangement(scene: Arrangement, rng: np.random.Generator) -> Pixels:
    """The picture of two things, (64, 64, 3) uint8 RGB; the same whichever of them the caption names first.

    rng: for how far they stand from their places.
    """
    if sum(RELATIONS[scene.relation]) > 0:
        scene = scene.said_otherwise()  # the left or upper one first
    across, down = RELATIONS[scene.relation]
    canvas = _background(scene.place, "", rng)
    # Along their axis things keep clear of each other and of the border; across it they have more room.
    loose_x, loose_y = (_ALONG, _ACROSS) if across else (_ACROSS, _ALONG)
    middle_y = 34 if across else 32
    for thing, side in ((scene.first, 1), (scene.second, -1)):
        x = 32 + side * across * _APART + rng.uniform(-loose_x, loose_x)
        y = middle_y + side * down * _APART + rng.uniform(-loose_y, loose_y)
        _put(canvas, thing, x, y, 24 + rng.uniform(-1, 1))
    return _pixels(canvas)


def _layout(scene: Scene, rng: np.random.Generator) -> list[tuple[float, float, float]]:
    """Centre x, y and extent of each object, in pixels."""

    def near(x: float, y: float, spread: float) -> tuple[float, float]:
        return x + rng.uniform(-spread, spread), y + rng.uniform(-spread, spread)

    if scene.number == 1:
        extent = {"small": 15.0, "": 23.0, "large": 35.0}[scene.size] + rng.uniform(-1.5, 1.5)
        at = {"on the left": (17, 35), "on the right": (47, 35), "at the top": (32, 17), "at the bottom": (32, 48)}
        x, y = near(*at.get(scene.position, (32, 34)), spread=2.0)
        inside = FRAME + 1 + extent * 0.54
        return [(min(max(x, inside), SIZE - inside), min(max(y, inside), SIZE - inside), extent)]
    places, extent = _GROUPS[scene.number]
    return [(*near(x, y, 1.0), extent + rng.uniform(-0.7, 0.7)) for x, y in places]


def _put(canvas: NDArray[np.float32], thing: Thing, x: float, y: float, extent: float) -> None:
    """Paint a thing; centre and extent in pixels of the finished picture."""
    for outline in SILHOUETTES[thing.object]:
        corners = ((outline * extent + (x, y)) * _FINER).round().astype(np.int32)
        cv2.fillPoly(canvas, [corners], COLOURS[thing.colour])


def _pixels(canvas: NDArray[np.float32]) -> Pixels:
    small = cv2.resize(canvas, (SIZE, SIZE), interpolation=cv2.INTER_AREA)
    return np.asarray(np.clip(small + 0.5, 0, 255), np.uint8)


def _background(place: str, time: str, rng: np.random.Generator) -> NDArray[np.float32]:
    canvas = np.empty((SIZE * _FINER, SIZE * _FINER, 3), np.float32)
    horizon = (HORIZON + rng.uniform(-1.5, 1.5)) * _FINER
    rows = np.arange(len(canvas), dtype=np.float32)[:, None]
    if not place:
        canvas[:] = np.where(rows < horizon, np.asarray(WALL, np.float32), np.asarray(FLOOR, np.float32))[:, None]
        return canvas
    above, below, tint, share = (np.asarray(part, np.float32) for part in SKY[time])
    down = np.clip(rows / horizon, 0, 1)
    canvas[:] = (above * (1 - down) + below * down)[:, None]
    if time == "at night":
        _disc(canvas, 54, 11, 4, (240, 240, 215))
        for x, y in ((12, 9), (24, 24), (42, 7), (8, 30)):
            _disc(canvas, x, y, 0.9, (235, 235, 235))
    elif time == "at sunset":
        _disc(canvas, 54, horizon / _FINER, 6, (255, 240, 190))
    else:
        for x, y, radius in ((9, 12, 3.5), (14, 10, 4.5), (19, 12, 3.5)):
            _disc(canvas, x, y, radius, (252, 252, 252))
    ground = np.asarray(GROUND[place], np.float32) * (1 - share) + tint * share
    canvas[round(horizon) :] = ground
    return canvas


def _disc(canvas: NDArray[np.float32], x: float, y: float, radius: float, colour: Colour) -> None:
    cv2.circle(canvas, (round(x * _FINER), round(y * _FINER)), round(radius * _FINER), colour, -1)


def _frame(canvas: NDArray[np.float32]) -> None:
    edge, wood = FRAME * _FINER, (FRAME - 1) * _FINER
    for width, colour in ((edge, _FRAME_EDGE), (wood, FRAME_WOOD)):
        for band in (np.s_[:width], np.s_[-width:], np.s_[:, :width], np.s_[:, -width:]):
            canvas[band] = colour
