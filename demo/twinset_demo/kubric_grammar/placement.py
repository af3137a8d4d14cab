"""Where the objects of a caption stand, and how they are seen: one try of several.

What is random depends on the seed and the place of a phrase in the caption, not on its words: two captions of one seed
that differ in a colour share everything else, and those that differ in a relation share camera height, light and floor.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from twinset import generator_for
from twinset.generators.kubric_scenes.scene.camera import frame_things
from twinset.generators.kubric_scenes.scene.composition import (
    CLEARED,
    DROP,
    FLATTER,
    Refuted,
    Standing,
    lit_from,
    sunlight,
)
from twinset.generators.kubric_scenes.scene.parts import Model, NamedAsset, View, vector
from twinset.generators.kubric_scenes.scene.settle import resting_place, settle
from twinset_demo.kubric_grammar.grammar import Phrase, Scene, sheltered
from twinset_demo.kubric_grammar.vocabulary import Relation
from twinset_demo.kubric_grammar.workshop import Workshop

ELEVATION = (24.0, 34.0)  # degrees of the camera above the floor
STEEPER, STEEPEST = 4.0, 50.0  # degrees more for each further try, and at most
TURN = 20.0  # degrees that an object may be turned away from how it faces the viewer
GAP = (0.18, 0.38)  # scene units between what stands side by side
FAR = (2.6, 3.2)  # likewise between what is far away from each other
APART = 1.15  # times the width of counted objects, however they are turned, from one to the next
JITTER = 0.06  # of that distance, at most, to either side
DISTANCE_STEP = 1.08  # camera distances are its powers, so that similar scenes are seen from one distance
BEHIND = 0.25  # scene units more between what stands one behind the other, so that neither seems to lie on the other
SPOTS = tuple((2 * number + 1) / 24 for number in range(12))  # of `resting_place`, that are tried
STREAM = "kubric-images"


@dataclass(frozen=True, slots=True)
class Placed:
    """A scene in space. things: objects of the first phrase first; owners: the phrase of each."""

    view: View
    things: tuple[Standing, ...]
    owners: tuple[int, ...]


@dataclass(slots=True)
class _Group:
    """The objects of a phrase, around their middle. places: (x, y, yaw) each; half: of their bounds in X and Y."""

    phrase: Phrase
    model: Model
    places: list[tuple[float, float, float]]
    half: tuple[float, float]
    height: float
    gap: tuple[float, float]  # to the next group: ordinary, and far
    slide: float
    side: str
    centre: tuple[float, float] = (0.0, 0.0)

    def standing(self) -> list[Standing]:
        thing = NamedAsset(self.phrase.words, self.model.asset, self.phrase.size)
        x, y = self.centre
        return [Standing(thing, self.model, self.model.on_floor(x + dx, y + dy, yaw)) for dx, dy, yaw in self.places]


def place(scene: Scene, workshop: Workshop, seed: int, attempt: int) -> Placed:
    """One try at a scene.

    Raises:
        Refuted: Objects overlap, or one that was dropped does not lie still.
    """
    view, elevation = _view(seed, attempt)
    groups = [
        _group(one, workshop, generator_for(seed, STREAM, f"{attempt}/{n}")) for n, one in enumerate(scene.phrases)
    ]
    for number in reversed(range(len(scene.relations))):
        first, second = groups[number : number + 2]
        first.centre = _beside(first, second, scene.relations[number], elevation)
    things = [group.standing() for group in groups]
    lying = [number for number, relation in enumerate(scene.relations) if _dropped(scene, number, relation)]
    _check_room(groups, lying)
    for number in lying:
        upper, lower = (number, number + 1) if scene.relations[number] == "on" else (number + 1, number)
        first_of_lower = sum(len(one) for one in things[:lower])
        things[upper] = [_lie(groups[upper], things[lower][0], workshop, first_of_lower)]
    flat = tuple(one for group in things for one in group)
    owners = tuple(number for number, group in enumerate(things) for _ in group)
    return Placed(_framed(view, elevation, scene, groups, flat, workshop), flat, owners)


def _view(seed: int, attempt: int) -> tuple[View, float]:
    """Light, floor and the camera's elevation (radians) of a seed; a further try only looks down more steeply."""
    rng = generator_for(seed, STREAM, "view")
    sun = sunlight(rng)
    elevation = math.radians(min(STEEPEST, rng.uniform(*ELEVATION) + STEEPER * attempt))
    return lit_from(sun, rng), elevation


def _group(phrase: Phrase, workshop: Workshop, rng: np.random.Generator) -> _Group:
    """Objects of a phrase in staggered rows, so that those behind are seen between those in front."""
    model = workshop.model(phrase)
    width, depth, height = (float(one) for one in np.ptp(model.points, axis=0))
    # As many numbers whatever the phrase says, so that two captions of one seed share those that both use.
    gap = float(rng.uniform(*GAP)), float(rng.uniform(*FAR))
    slide, side = (float(one) for one in rng.uniform(size=2))
    jitter = rng.uniform(-1, 1, (phrase.count, 3))
    cos, sin = math.cos(math.radians(TURN)), math.sin(math.radians(TURN))
    reach, deep = APART * (width * cos + depth * sin), APART * (depth * cos + width * sin)
    rows = [phrase.count] if phrase.count < 4 else [phrase.count // 2, phrase.count - phrase.count // 2]
    places: list[tuple[float, float, float]] = []
    for row, count in enumerate(rows):  # the first row is in front
        shift = 0.5 if len(rows) > 1 and rows[0] == rows[1] and row else 0.0
        for column in range(count):
            dx, dy, turned = jitter[len(places)]
            x = (column - (count - 1) / 2 + shift) * reach + JITTER * reach * dx
            y = row * (deep + 0.7 * height) + JITTER * deep * dy
            places.append((x, y, math.radians(TURN * turned)))
    alone = phrase.count == 1
    points = np.concatenate(
        [model.placed(model.on_floor(0.0 if alone else x, 0.0 if alone else y, yaw)) for x, y, yaw in places]
    )
    low, high = points.min(axis=0), points.max(axis=0)
    middle = (low + high) / 2
    places = [
        (0.0 if alone else x - float(middle[0]), 0.0 if alone else y - float(middle[1]), yaw) for x, y, yaw in places
    ]
    half = (float(high[0] - low[0]) / 2, float(high[1] - low[1]) / 2)
    return _Group(phrase, model, places, half, height, gap, 2 * slide - 1, "left" if side < 0.5 else "right")


def _dropped(scene: Scene, number: int, relation: Relation) -> bool:
    """Whether a relation is that one of its two objects lies on the other."""
    if relation == "under":
        return not sheltered(*scene.phrases[number : number + 2])
    return relation == "on"


def _beside(first: _Group, second: _Group, relation: Relation, elevation: float) -> tuple[float, float]:
    """The middle of a group where its relation to the other one says; the same where one lies on the other."""
    x, y = second.centre
    if relation in ("on", "under"):
        return x, y
    if relation in ("front", "behind"):
        # What stands in front must leave the other to be seen, down to its foot, by a camera that looks down on both.
        tall = first.height if relation == "front" else second.height
        away = first.half[1] + second.half[1] + first.gap[0] + BEHIND + CLEARED * tall / math.tan(elevation - FLATTER)
        x += first.slide * 0.25 * min(first.half[0], second.half[0])
        return x, y - away if relation == "front" else y + away
    side = relation if relation in ("left", "right") else "left" if relation == "and" else first.side
    away = first.half[0] + second.half[0] + first.gap[relation == "far"]
    y += first.slide * 0.12 * min(first.half[1], second.half[1])
    return x - away if side == "left" else x + away, y


def _check_room(groups: list[_Group], lying: list[int]) -> None:
    """Raise `Refuted` where the first and the third of three groups overlap."""
    if len(groups) < 3 or lying:
        return
    first, third = groups[0], groups[2]
    if all(abs(first.centre[k] - third.centre[k]) < first.half[k] + third.half[k] for k in (0, 1)):
        raise Refuted("no-room", f"{first.phrase.words} and {third.phrase.words} would stand at one place")


def _lie(upper: _Group, lower: Standing, workshop: Workshop, number: int) -> Standing:
    """An object dropped on another one. number: of the lower one in the scene."""
    model, yaw = upper.model, upper.places[0][2]
    width, depth, _ = np.ptp(model.placed(model.on_floor(0.0, 0.0, yaw)), axis=0)
    middle = (lower.points.min(axis=0) + lower.points.max(axis=0)) / 2
    footprint = (float(width), float(depth))
    spots = [resting_place(lower.points, lower.model.faces, footprint, spot) for spot in SPOTS]
    # Half of what lies far out would stick out over an edge.
    x, y, height = min(spots, key=lambda one: math.hypot(one[0] - middle[0], one[1] - middle[1]))
    settled = settle(workshop.shelf, [lower.placement], model.on_floor(x, y, yaw, height + DROP))
    if not settled.still:
        raise Refuted("never-still", f"{upper.phrase.words} was still moving on {lower.thing.name}")
    thing = NamedAsset(upper.phrase.words, model.asset, upper.phrase.size)
    return Standing(thing, model, settled.placement, frozenset(number if one == 0 else one for one in settled.touching))


def _framed(
    view: View, elevation: float, scene: Scene, groups: list[_Group], things: tuple[Standing, ...], workshop: Workshop
) -> View:
    """The view with its camera as near as it can be, at one of a few distances."""
    points = [one.points for one in things]
    if any(one.size for one in scene.phrases):
        # A small object is seen as small only where a large one would fill the picture.
        for group in groups:
            large = workshop.model(group.phrase, "large")
            points.append(large.placed(large.on_floor(*group.centre, 0.0)))
    near = frame_things(view, np.concatenate(points), elevation)
    target, offset = np.asarray(near.target), np.asarray(near.camera) - np.asarray(near.target)
    distance = float(np.linalg.norm(offset))
    rounded = DISTANCE_STEP ** math.ceil(math.log(distance, DISTANCE_STEP))
    return replace(view, camera=vector(target + offset * (rounded / distance)), target=near.target)
