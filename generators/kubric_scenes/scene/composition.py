"""Where the things of a planned pair stand, and how they are seen: one try of many, drawn from a random stream."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from twinset.generators.kubric_scenes.assets.shelf import AssetShelf
from twinset.generators.kubric_scenes.scene.camera import frame_things
from twinset.generators.kubric_scenes.scene.panoramas import lit_by_background
from twinset.generators.kubric_scenes.scene.parts import (
    Colour,
    Drawn,
    Model,
    NamedAsset,
    Placement,
    Points,
    Refuted,
    Vector,
    View,
    model_of,
    sun_at,
    vector,
)
from twinset.generators.kubric_scenes.scene.settle import resting_place, settle

GAP = (0.25, 0.5)  # scene units beside each other: what is nearer takes light from each other
ASIDE = 0.2  # of the narrower one's width by which what is in front or behind may stand aside
TURN = 18.0  # degrees that a thing may be turned away from how it faces the viewer
COUNTED_TURN = 40.0
LAYOUTS_TRIED, PLACES_TRIED = 20, 60
CROWDED = np.array([0.62, 0.55])  # how near to each other counted things are: half of what a square of them would take
CLEARED = 1.15  # of the height of what stands in front is cleared by rays to the foot of what stands behind
FLATTER = math.radians(4)  # rays in the upper part of a picture are flatter than its middle one by up to this much

SENSOR_WIDTH = 36.0  # millimetres
FOCAL_LENGTH = 80.0  # millimetres: from afar, so that sizes can be compared
ELEVATION = (26.0, 36.0)  # degrees: high enough to see where things stand, low enough to see what they are
STEEPER, STEEPEST = 4.0, 52.0  # degrees more for each further attempt, and at most
#: Degrees from +X, and above the floor: from behind the viewer and high, so that the shadow of a thing falls behind it
#: and reaches none beside it.
SUN_AZIMUTH, SUN_HEIGHT = (-120.0, -60.0), (58.0, 70.0)
SUN_STRENGTH = (3.2, 4.0)  # W/m²
AMBIENT: Colour = (0.45, 0.48, 0.54)  # radiance of an even sky: a thing takes the more of it from the floor around

#: Muted, so that no thing vanishes before it: linear RGB.
FLOORS: tuple[Colour, ...] = (
    (0.42, 0.40, 0.37),
    (0.36, 0.38, 0.40),
    (0.45, 0.38, 0.29),
    (0.33, 0.37, 0.33),
    (0.48, 0.44, 0.40),
    (0.30, 0.30, 0.33),
)

SEEN_OVER = 0.5  # of the height of counted things is cleared by rays to those behind them

DROP = 0.02  # scene units above what a thing will lie on


@dataclass(frozen=True, slots=True)
class Standing:
    """A thing that stands in a scene. carried: whether it lies on the subject, else on the floor."""

    thing: NamedAsset
    model: Model
    placement: Placement
    carried: bool = False

    @property
    def points(self) -> Points:
        """(n, 3) corners of its mesh in the scene."""
        return self.model.placed(self.placement)


@dataclass(frozen=True, slots=True)
class Composition:
    """Both images of a pair. things0, things1: objects first, the subject (if there is one) last."""

    view: View
    things0: tuple[Standing, ...]
    things1: tuple[Standing, ...]


def compose(
    drawn: Drawn,
    shelf: AssetShelf,
    size_ratio: float,
    rng: np.random.Generator,
    backgrounds: Sequence[Path],
    attempt: int = 0,
) -> Composition:
    """One try at a scene; raises `Refuted` when the things find no place.

    Args:
        size_ratio: how much longer a large object is than a small one.
        backgrounds: HDRI files, of which one is taken; none for a plain floor under an even sky.
        attempt: of the same pair, from 0; each looks down a little more steeply, so that less is hidden.
    """
    view = sample_view(rng, backgrounds)
    elevation = math.radians(min(STEEPEST, rng.uniform(*ELEVATION) + STEEPER * attempt))
    if drawn.aspect == "counting":
        things0, things1 = _count(drawn, model_of(drawn.object0, shelf, size_ratio), rng, elevation - FLATTER)
    else:
        things0, things1 = _relate(drawn, shelf, size_ratio, rng, elevation - FLATTER)
    points = np.concatenate([thing.points for thing in {id(t): t for t in (*things0, *things1)}.values()])
    return Composition(frame_things(view, points, elevation), things0, things1)


def sample_view(rng: np.random.Generator, backgrounds: Sequence[Path]) -> View:
    """A light with a floor or a background; its camera stands nowhere yet."""
    azimuth, height = math.radians(rng.uniform(*SUN_AZIMUTH)), math.radians(rng.uniform(*SUN_HEIGHT))
    view = View(
        camera=(0.0, -1.0, 1.0),
        target=(0.0, 0.0, 0.0),
        focal_length=FOCAL_LENGTH,
        sensor_width=SENSOR_WIDTH,
        sun=sun_at(azimuth, height),
        sun_strength=float(rng.uniform(*SUN_STRENGTH)),
        ambient=AMBIENT,
        floor=FLOORS[int(rng.integers(len(FLOORS)))],
    )
    if not backgrounds:
        return view
    return lit_by_background(view, backgrounds[int(rng.integers(len(backgrounds)))], azimuth)


def _turn(most: float, rng: np.random.Generator) -> float:
    """An angle around the vertical axis, radians. most: degrees, away from how a thing faces the viewer."""
    return math.radians(rng.uniform(-most, most))


def _relate(
    drawn: Drawn, shelf: AssetShelf, size_ratio: float, rng: np.random.Generator, flattest: float
) -> tuple[tuple[Standing, ...], tuple[Standing, ...]]:
    """The subject on the floor, and each image's object where its relation to the subject says.

    flattest: elevation of the flattest rays to the camera that matter, radians.
    """
    assert drawn.subject is not None
    model = model_of(drawn.subject, shelf, size_ratio)
    subject = Standing(drawn.subject, model, model.on_floor(0.0, 0.0, _turn(TURN, rng)))
    turned = _turn(TURN, rng)  # both members of an attribute set are turned alike
    gap, slide, spot = float(rng.uniform(*GAP)), float(rng.uniform(-1, 1)), float(rng.uniform())

    # Both members of a set stand where the larger one has room.
    models = [model_of(thing, shelf, size_ratio) for thing in (drawn.object0, drawn.object1)]
    bounds = [np.ptp(model.placed(model.on_floor(0.0, 0.0, turned)), axis=0) for model in models]
    room = vector(np.max(bounds, axis=0))

    def stand(thing: NamedAsset, relation: str) -> Standing:
        model = model_of(thing, shelf, size_ratio)
        if relation == "on-top":
            return _lie(thing, model, turned, subject, shelf, spot, room)
        x, y = _beside(room, relation, gap, slide, subject, flattest)
        return Standing(thing, model, model.on_floor(x, y, turned))

    first, second = stand(drawn.object0, drawn.relation0), stand(drawn.object1, drawn.relation1)
    return (first, subject), (second, subject)


def _beside(
    room: Vector, relation: str, gap: float, slide: float, subject: Standing, flattest: float
) -> tuple[float, float]:
    """A spot (x, y) on the floor, as far away as the bounds of both ask for, slid along them a little.

    room: width, depth and height of what stands there.
    """
    width, depth, height = room
    low, high = subject.points.min(axis=0), subject.points.max(axis=0)
    if relation in ("left", "right"):
        away = (width / 2 + gap) * (1 if relation == "right" else -1)
        x, y = (high if relation == "right" else low)[0] + away, (low[1] + high[1]) / 2 + slide * 0.12 * depth
        return float(x), float(y)
    # What stands in front must leave the other to be seen, down to its foot, by a camera that looks down on both.
    front = float(height if relation == "in-front" else high[2])
    away = depth / 2 + gap + CLEARED * front / math.tan(flattest)
    x = float(low[0] + high[0]) / 2 + slide * ASIDE * min(width, float(high[0] - low[0]))
    return x, float(low[1]) - away if relation == "in-front" else float(high[1]) + away


def _lie(
    thing: NamedAsset, model: Model, turned: float, subject: Standing, shelf: AssetShelf, spot: float, room: Vector
) -> Standing:
    """room: width, depth and height of the largest thing that lies there."""
    x, y, height = resting_place(subject.points, subject.model.faces, room[:2], spot)
    dropped = model.on_floor(x, y, turned, height + DROP)
    placement, carried = settle(shelf, subject.placement, dropped)
    return Standing(thing, model, placement, carried)


def _count(
    drawn: Drawn, model: Model, rng: np.random.Generator, flattest: float
) -> tuple[tuple[Standing, ...], tuple[Standing, ...]]:
    """As many as the larger count, of which the other image shows the first ones: the rest stay where they are."""
    width, depth, height = np.ptp(model.points, axis=0)
    radius = math.hypot(width, depth) / 2
    most = max(drawn.count0, drawn.count1)
    # Rows must be far enough apart that a thing in front leaves those behind to be seen.
    rows = depth + SEEN_OVER * height / math.tan(flattest) + 0.15
    apart = np.array([2.1 * min(radius, 0.62 * max(width, depth)), rows])
    places = _scatter(most, apart, rng)
    if not places:
        raise Refuted("no-room", f"no place for {most} of {drawn.object0.name}")
    things = []
    for x, y in places:
        placement = model.on_floor(float(x), float(y), _turn(COUNTED_TURN, rng))
        things.append(Standing(drawn.object0, model, placement))
    return tuple(things[: drawn.count0]), tuple(things[: drawn.count1])


def _scatter(most: int, apart: Points, rng: np.random.Generator) -> list[Points]:
    """``most`` places (x, y), any two at least ``apart`` in X or in Y; empty when none of `LAYOUTS_TRIED` fits."""
    reach = apart * CROWDED * math.sqrt(most)
    for _ in range(LAYOUTS_TRIED):
        places: list[Points] = []
        for _ in range(PLACES_TRIED):
            place = rng.uniform(-reach, reach)
            if all((abs(place - other) >= apart).any() for other in places):
                places.append(place)
            if len(places) == most:
                return places
    return []
