"""Paints small scenes: flat things in jittered places, sizes, turns and shades, on pale grounds that all differ."""

import math
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from twinset.contracts.kinds.samples import Pixels
from twinset_demo.small_diffusion.painter import SILHOUETTES
from twinset_demo.small_diffusion.relations import RELATIONS
from twinset_demo.small_diffusion.scenes import COLOURS
from twinset_demo.small_scenes.scenes import Scene

_FINER = 4  # painted this many times larger, then averaged
_MARGIN = 0.03  # of the picture's side, that things keep from its border
_REACH = 0.6  # of a thing's extent, from its centre to the farthest point of any silhouette
#: Of the picture's side: extents of things, where there are two and three; half the way between the first two; how far
#: each stands off their axis; from this axis to the third.
_EXTENTS = {2: (0.27, 0.36), 3: (0.23, 0.28)}
_HALF_WAY = (0.2, 0.24)
_ASIDE = {2: 0.06, 3: 0.03}
_TO_THIRD = (0.34, 0.38)
_TURN = math.radians(12)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a thing of a picture stands. centre: x and y, extent: both in shares of its side, y downwards.

    turn: clockwise, radians. shade: what its colour is multiplied with.
    """

    centre: tuple[float, float]
    extent: float
    turn: float
    shade: float


@dataclass(frozen=True, slots=True)
class Layout:
    """All that a picture shows besides what its captions say; twins share one.

    Two layouts differ in everything that is not said. extents, turns, shades: of the things, in the scene's order.
    half_way, aside, to_third, along: as the module's constants have them. shift: 0..1 of the free room, x and y.
    ground: seed of the background.
    """

    extents: tuple[float, ...]
    turns: tuple[float, ...]
    shades: tuple[float, ...]
    half_way: float
    aside: tuple[float, float]
    to_third: float
    along: float
    shift: tuple[float, float]
    ground: int

    def places(self, scene: Scene) -> list[Place]:
        """Of the things of a scene, in its order."""
        step = np.asarray(RELATIONS[scene.relation], float)
        across = np.abs(step[::-1])
        # The places belong to left and right (or upper and lower), whichever thing stands there.
        low, high = self.aside if step.sum() < 0 else self.aside[::-1]
        centres = [step * self.half_way + across * low, -step * self.half_way + across * high]
        if scene.third is not None:
            centres.append(np.asarray(RELATIONS[scene.side]) * self.to_third + np.abs(step) * self.along)
        extents = self.extents[: len(centres)]
        reach = _REACH * max(extents) + _MARGIN
        least, most = np.min(centres, axis=0) - reach, np.max(centres, axis=0) + reach
        shift = np.asarray(self.shift) * np.maximum(1 - (most - least), 0) - least
        shift += np.minimum(1 - (most - least), 0) / 2  # what does not fit is centred
        return [
            Place((float(x), float(y)), extent, turn, shade)
            for (x, y), extent, turn, shade in zip(
                np.asarray(centres) + shift, extents, self.turns, self.shades, strict=False
            )
        ]


def sample_layout(things: int, rng: np.random.Generator) -> Layout:
    """A random layout for two or three things."""

    def some(low: float, high: float) -> tuple[float, ...]:
        return tuple(float(one) for one in rng.uniform(low, high, 3))

    aside = _ASIDE[things]
    low, high, _ = some(-aside, aside)
    x, y, _ = some(0, 1)
    return Layout(
        extents=some(*_EXTENTS[things]),
        turns=some(-_TURN, _TURN),
        shades=some(0.9, 1.1),
        half_way=float(rng.uniform(*_HALF_WAY)),
        aside=(low, high),
        to_third=float(rng.uniform(*_TO_THIRD)),
        along=float(rng.uniform(-0.08, 0.08)),
        shift=(x, y),
        ground=int(rng.integers(2**63)),
    )


def paint(scene: Scene, layout: Layout, side: int) -> Pixels:
    """The picture of a scene, (side, side, 3) uint8 RGB."""
    rng = np.random.default_rng(layout.ground)
    canvas = _ground(side * _FINER, rng)
    for thing, place in zip(scene.things, layout.places(scene), strict=True):
        colour = tuple(min(255.0, channel * place.shade) for channel in COLOURS[thing.colour])
        for outline in SILHOUETTES[thing.object]:
            corners = (outline * place.extent) @ _turned(place.turn) + place.centre
            cv2.fillPoly(canvas, [(corners * side * _FINER).round().astype(np.int32)], colour)
    small = cv2.resize(canvas, (side, side), interpolation=cv2.INTER_AREA)
    noise = rng.normal(0, rng.uniform(1, 5), small.shape)  # as a sensor has it
    return np.asarray(np.clip(small + noise + 0.5, 0, 255), np.uint8)


def _turned(turn: float) -> NDArray[np.float64]:
    """(2, 2) matrix that turns rows (x, y) clockwise, y downwards."""
    return np.asarray([[math.cos(turn), math.sin(turn)], [-math.sin(turn), math.cos(turn)]])


def _ground(side: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """(side, side, 3) of pale colours: one, or two that meet at a horizon, with soft blotches over both."""
    upper, lower = (_pale(rng) for _ in range(2))
    canvas = np.empty((side, side, 3), np.float32)
    canvas[:] = upper
    if rng.random() < 0.5:
        canvas[round(side * rng.uniform(0.3, 0.8)) :] = lower
    blotches = rng.normal(0, 6, (5, 5, 1)).astype(np.float32)
    canvas += cv2.resize(blotches, (side, side), interpolation=cv2.INTER_CUBIC)[..., None]
    return canvas


def _pale(rng: np.random.Generator) -> NDArray[np.float32]:
    """A light colour of little saturation: no thing has one like it."""
    value, saturation = rng.uniform(180, 245), rng.uniform(0, 0.14)
    return np.asarray(value * (1 - saturation * rng.uniform(0, 1, 3)), np.float32)
