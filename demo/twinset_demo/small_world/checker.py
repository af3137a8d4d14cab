"""Reads pictures of the small world and judges them against a scene. It measures; nothing in it is learned."""

from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import cv2
import numpy as np
from numpy.typing import NDArray

from twinset.contracts.kinds.samples import Pixels
from twinset_demo.small_diffusion.painter import SILHOUETTES, SIZE
from twinset_demo.small_diffusion.scenes import COLOURS, COUNTS, OBJECTS, Scene
from twinset_demo.small_world.backdrop import SOFTNESS, Backdrop, Mask, eroded, grown, nearest_colour, read_backdrop

ATTRIBUTES = ("style", "count", "size", "colour", "shape", "position", "place", "time")

LEAST_AREA = 24  # pixels; the painter's smallest object has 75
COLOUR_DISTANCE = 25.0  # CIELAB, of an object's median colour; the nearest two colours are 32 apart
PURITY = 0.8  # share of an object's pixels, edges aside, that are nearest to its colour
TOUCHING_HEIGHT = 24  # pixels; three in a row are up to 17 high
#: Pixels about the extents of small, medium and large; the painter draws 13.5-16.5, 21.5-24.5, 33.5-36.5.
EXTENTS = (10.5, 19.0, 29.0, 42.0)
SIZE_WORDS = (None, "small", "", "large", None)
#: Centre x and y in pixels; the painter stays 5 within the middle and 4 within the others.
MIDDLE_X, MIDDLE_Y = (25.0, 39.0), (26.5, 41.0)
#: Above, in and below the middle; each left of it, in it and right of it. A corner has no word.
POSITION_WORDS = (
    (None, "at the top", None),
    ("on the left", "", "on the right"),
    (None, "at the bottom", None),
)
#: Of a patch with the object it is taken for. Painted ones reach 0.85, blurred by 1 pixel with noise of 12 levels 0.77.
LEAST_OVERLAP = 0.75
_FINER = 4  # times as many pixels on a side when silhouettes are drawn


@dataclass(frozen=True, slots=True)
class Thing:
    """One object as seen. shape: what it resembles most, None: nothing enough. colour: None if it is of none, or of
    several. centre (x, y) and extent in pixels, as painted."""

    shape: str | None
    colour: str | None
    centre: NDArray[np.float64]
    extent: float


@dataclass(frozen=True, slots=True)
class Seen:
    """What a picture shows, in the words of ``Scene``; None: nothing that has a word, or not the same for all objects.

    count: of all objects whatever their kind. size, position: of a single object.
    """

    style: str | None
    count: str | None
    size: str | None
    colour: str | None
    shape: str | None
    position: str | None
    place: str | None
    time: str | None


def read_picture(pixels: Pixels) -> Seen:
    """What (64, 64, 3) uint8 RGB pixels show."""
    if pixels.shape != (SIZE, SIZE, 3) or pixels.dtype != np.uint8:
        raise ValueError(f"pictures here are ({SIZE}, {SIZE}, 3) uint8, not {pixels.shape} {pixels.dtype}")
    backdrop = read_backdrop(pixels)
    things = read_things(pixels, backdrop)
    size = position = None
    if len(things) == 1:
        size = SIZE_WORDS[np.digitize(things[0].extent, EXTENTS)]
        x, y = things[0].centre
        position = POSITION_WORDS[np.digitize(y, MIDDLE_Y)][np.digitize(x, MIDDLE_X)]
    return Seen(
        style=backdrop.style,
        count=COUNTS[len(things) - 1] if 0 < len(things) <= len(COUNTS) else None,
        size=size,
        colour=_same([thing.colour for thing in things]),
        shape=_same([thing.shape for thing in things]),
        position=position,
        place=backdrop.place,
        time=backdrop.time,
    )


def judge(seen: Seen, scene: Scene) -> dict[str, bool]:
    """Whether each attribute that a scene settles is as it says, by the names of ATTRIBUTES.

    That is all but the colour "" and, of several objects, size and position. What is left out of a caption but settled
    by the world (the middle, medium size, before a wall, by day) is judged too; ``stated`` tells which are in words.
    """
    single = scene.number == 1
    settled = {"size": single, "position": single, "colour": bool(scene.colour), "time": bool(scene.place)}
    said = {name: scene.object if name == "shape" else getattr(scene, name) for name in ATTRIBUTES}
    return {name: getattr(seen, name) == said[name] for name in ATTRIBUTES if settled.get(name, True)}


def stated(scene: Scene) -> frozenset[str]:
    """The attributes that a scene's caption has words for."""
    optional = ("size", "colour", "position", "place", "time")
    return frozenset({"style", "count", "shape"} | {name for name in optional if getattr(scene, name)})


def read_things(pixels: Pixels, backdrop: Backdrop) -> list[Thing]:
    """The objects of a picture, in no particular order."""
    number, labels, stats, _ = cv2.connectedComponentsWithStats(backdrop.objects.astype(np.uint8), connectivity=4)
    things: list[Thing] = []
    for label in range(1, number):
        if stats[label, cv2.CC_STAT_AREA] >= LEAST_AREA:
            whole = _thing(pixels, labels == label, backdrop)
            things += [whole] if whole.shape else _touching(pixels, labels == label, backdrop) or [whole]
    return things


def _touching(pixels: Pixels, mask: Mask, backdrop: Backdrop) -> list[Thing]:
    """Two or three small objects of one shape that touch side by side, as three in a row may; empty if it is not that.

    Each cut is made where the patch is thinnest, about where equal parts would have it.
    """
    columns = np.flatnonzero(mask.any(0))
    first, width = int(columns[0]), len(columns)
    if mask.any(1).sum() > TOUCHING_HEIGHT:
        return []
    heights, at = mask.sum(0), np.arange(SIZE)
    for pieces in (2, 3):
        middles = [first + round(width * piece / pieces) for piece in range(1, pieces)]
        nearby = [range(max(x - 3, first + 1), min(x + 4, first + width)) for x in middles]
        if not all(nearby):
            return []
        cuts = [min(near, key=lambda x: (heights[x], x)) for near in nearby]
        edges = (first, *cuts, first + width)
        masks = [mask & (at >= left) & (at < right) for left, right in pairwise(edges)]
        if min(part.sum() for part in masks) < LEAST_AREA:
            return []
        parts = [_thing(pixels, part, backdrop) for part in masks]
        if _same([part.shape for part in parts]) is not None:
            return parts
    return []


def _thing(pixels: Pixels, mask: Mask, backdrop: Backdrop) -> Thing:
    core = eroded(mask) if eroded(mask).any() else mask
    (colour,), (apart,) = nearest_colour(np.asarray(np.median(pixels[core], axis=0, keepdims=True), np.float32))
    # Noise of single pixels says nothing about purity: each is judged with its neighbours.
    smooth = np.asarray(cv2.blur(pixels.astype(np.float32), (3, 3)), np.float32)
    pure = (nearest_colour(smooth[core])[0] == colour).mean() >= PURITY
    # With its soft edge, which other objects have no part in.
    reach = mask | (grown(mask, 1) & ~backdrop.objects)
    cover = np.where(reach, backdrop.shares[colour], 0) if pure else mask.astype(np.float32)
    named = tuple(COLOURS)[colour] if pure and apart < COLOUR_DISTANCE else None
    shape, centre, extent = _match(cover, backdrop.window)
    return Thing(shape, named, centre, extent)


def _match(cover: NDArray[np.float32], window: tuple[slice, slice]) -> tuple[str | None, NDArray[np.float64], float]:
    """Shape, centre and extent of a `Thing` from the share of each pixel that it covers, (64, 64), 0..1.

    Each silhouette is laid over the patch with the same area and centroid; the greatest overlap decides: the sum of the
    smaller over the sum of the greater of both covers, the intersection over union of soft outlines.
    window: what of the picture a frame leaves free; it cuts the silhouettes as it cut the patch.
    """
    area = float(cover.sum())
    at = _centroid(cover, area)
    best: tuple[float, str | None, NDArray[np.float64], float] = (0.0, None, at, area**0.5)
    for name in OBJECTS:
        unit_area, centroid = _moments(name)
        extent = (area / unit_area) ** 0.5
        if not EXTENTS[0] <= extent < EXTENTS[-1]:
            continue
        centre = at - centroid * extent
        laid = np.zeros_like(cover)
        laid[window] = cv2.GaussianBlur(_drawn(name, centre, extent), (0, 0), SOFTNESS)[window]
        overlap = float(np.minimum(cover, laid).sum() / np.maximum(cover, laid).sum())
        if overlap > best[0]:
            best = (overlap, name, centre, extent)
    overlap, shape, centre, extent = best
    return shape if overlap >= LEAST_OVERLAP else None, centre, extent


def _drawn(name: str, centre: NDArray[np.float64], extent: float) -> NDArray[np.float32]:
    canvas = np.zeros((SIZE * _FINER, SIZE * _FINER), np.float32)
    for outline in SILHOUETTES[name]:
        cv2.fillPoly(canvas, [((outline * extent + centre) * _FINER).round().astype(np.int32)], 1.0)
    return np.asarray(cv2.resize(canvas, (SIZE, SIZE), interpolation=cv2.INTER_AREA), np.float32)


@cache
def _moments(name: str) -> tuple[float, NDArray[np.float64]]:
    """Area of a silhouette of extent 1, and its centroid (x, y)."""
    extent = SIZE * 0.9
    drawn = _drawn(name, np.array([SIZE / 2, SIZE / 2]), extent)
    area = float(drawn.sum())
    return area / extent**2, (_centroid(drawn, area) - SIZE / 2) / extent


def _centroid(cover: NDArray[np.float32], area: float) -> NDArray[np.float64]:
    places = np.arange(SIZE) + 0.5
    return np.array([cover.sum(0) @ places, cover.sum(1) @ places]) / max(area, 1e-6)


def _same(words: list[str | None]) -> str | None:
    return words[0] if words and len(set(words)) == 1 else None
