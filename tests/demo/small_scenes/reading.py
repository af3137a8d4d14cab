"""Reads small scenes from pixels alone, to check that captions are true; it knows the words, not the layouts."""

import math
from dataclasses import dataclass
from functools import cache

import cv2
import numpy as np
from numpy.typing import NDArray

from twinset.contracts.kinds.samples import Pixels
from twinset_demo.small_diffusion.painter import SILHOUETTES
from twinset_demo.small_diffusion.relations import RELATIONS
from twinset_demo.small_diffusion.scenes import COLOURS
from twinset_demo.small_scenes.scenes import Scene

_LAID = 48  # pixels on a side of the square that shapes are compared in
_TURNS = tuple(math.radians(turn) for turn in range(-12, 13, 4))


@dataclass(frozen=True)
class SeenThing:
    """One patch of a colour. centre: x and y in pixels, of its bounding box."""

    colour: str
    shape: str
    centre: tuple[float, float]


def _lab(colours: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray(cv2.cvtColor(colours / np.float32(255), cv2.COLOR_RGB2LAB), np.float32)


def read_scene(pixels: Pixels) -> list[SeenThing]:
    """All things of a picture: patches whose colour is nearer to a thing's than pale grounds are."""
    smooth = cv2.GaussianBlur(pixels.astype(np.float32), (0, 0), 0.6)
    palette = np.asarray([COLOURS[name] for name in COLOURS], np.float32)[None]
    apart = np.linalg.norm(_lab(smooth)[:, :, None] - _lab(palette)[0], axis=3)
    nearest = np.where(apart.min(2) < 27, apart.argmin(2), -1)
    things = []
    for index, colour in enumerate(COLOURS):
        patches, labels, stats, _ = cv2.connectedComponentsWithStats((nearest == index).astype(np.uint8))
        for patch in range(1, patches):
            if stats[patch, cv2.CC_STAT_AREA] >= 0.008 * nearest.size:
                x, y, width, height = stats[patch, :4]
                things.append(SeenThing(colour, _shape(labels == patch), (x + width / 2, y + height / 2)))
    return things


def is_true(scene: Scene, seen: list[SeenThing]) -> bool:
    """Whether what is seen is what a scene says: all things, nothing else, every relation."""
    found = {(one.colour, one.shape): one.centre for one in seen}
    if len(seen) != len(scene.things) or {(one.colour, one.object) for one in scene.things} != set(found):
        return False
    for first, relation, second in scene.relations():
        one, other = (np.asarray(found[thing.colour, thing.object]) for thing in (first, second))
        step = np.asarray(RELATIONS[relation])
        along = float((one - other) @ step)
        if along <= 0 or (scene.third not in (first, second) and along <= abs((one - other) @ step[::-1])):
            return False
    return True


def _shape(mask: NDArray[np.bool_]) -> str:
    """The silhouette that overlaps most with a patch, both laid into one square by area and centroid."""
    laid = _normalised(mask.astype(np.float32))
    scores = {
        name: max(float(np.minimum(laid, one).sum() / np.maximum(laid, one).sum()) for one in _silhouettes(name))
        for name in SILHOUETTES
    }
    return max(scores, key=lambda name: scores[name])


def _normalised(cover: NDArray[np.float32]) -> NDArray[np.float32]:
    rows, columns = np.mgrid[: cover.shape[0], : cover.shape[1]].astype(np.float64)
    area = float(cover.sum())
    centre = np.asarray([(columns * cover).sum(), (rows * cover).sum()]) / area
    scale = math.sqrt(0.2 * _LAID * _LAID / area)
    shift = np.asarray([_LAID / 2, _LAID / 2]) - scale * centre
    matrix = np.asarray([[scale, 0, shift[0]], [0, scale, shift[1]]])
    return np.asarray(cv2.warpAffine(cover, matrix, (_LAID, _LAID)), np.float32)


@cache
def _silhouettes(name: str) -> list[NDArray[np.float32]]:
    drawn = []
    for turn in _TURNS:
        matrix = np.asarray([[math.cos(turn), math.sin(turn)], [-math.sin(turn), math.cos(turn)]])
        canvas = np.zeros((256, 256), np.float32)
        for outline in SILHOUETTES[name]:
            cv2.fillPoly(canvas, [((outline @ matrix) * 150 + 128).round().astype(np.int32)], 1.0)
        drawn.append(_normalised(canvas))
    return drawn
