"""Reads pictures of two things of the small world, and judges them against what captions say of them."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from twinset.contracts.kinds.samples import Pixels
from twinset_demo.small_diffusion.painter import SIZE
from twinset_demo.small_diffusion.relations import RELATIONS, Arrangement
from twinset_demo.small_world.backdrop import read_backdrop
from twinset_demo.small_world.checker import Thing, read_things

ATTRIBUTES = ("count", "shape", "colour", "binding", "relation", "place")

LEAST_DISTANCE = 12.0  # pixels between centres; the painter's things are at least 29 apart
#: How many times as far things stand apart along one axis as along the other; painted ones 4.9 times. Else they are
#: askew, and no relation has a word for that.
LEAST_SLANT = 1.5


@dataclass(frozen=True, slots=True)
class SeenThings:
    """All things that a picture shows, whatever they are, and its place; None: none that has a word."""

    things: tuple[Thing, ...]
    place: str | None


def read_arrangement_picture(pixels: Pixels) -> SeenThings:
    """What (64, 64, 3) uint8 RGB pixels show."""
    if pixels.shape != (SIZE, SIZE, 3) or pixels.dtype != np.uint8:
        raise ValueError(f"pictures here are ({SIZE}, {SIZE}, 3) uint8, not {pixels.shape} {pixels.dtype}")
    backdrop = read_backdrop(pixels)
    by_day_or_indoors = backdrop.style == "photo" and backdrop.time == ""
    return SeenThings(tuple(read_things(pixels, backdrop)), backdrop.place if by_day_or_indoors else None)


def relation_between(first: Thing, second: Thing) -> str | None:
    """How the first thing stands to the second; None: too near, or askew."""
    across, down = (float(part) for part in first.centre - second.centre)
    longer, shorter = max(abs(across), abs(down)), min(abs(across), abs(down))
    if longer < max(LEAST_DISTANCE, LEAST_SLANT * shorter):
        return None
    step = (int(np.sign(across)), 0) if abs(across) == longer else (0, int(np.sign(down)))
    return next(word for word, direction in RELATIONS.items() if direction == step)


def judge_arrangement(seen: SeenThings, scene: Arrangement) -> dict[str, bool]:
    """Whether a picture is as a scene says, by the names of ATTRIBUTES.

    count: there are two things. shape, colour: what they are, and which colours they have, wherever they stand.
    binding: each thing has its own colour. relation: the thing that is most like the first stands to the other as it
    should; it is wrong where both are as much like the first. place: that of the caption, or the wall without one.
    """
    said = (scene.first, scene.second)
    right = {
        "count": len(seen.things) == 2,
        "shape": _sorted(thing.shape for thing in seen.things) == _sorted(one.object for one in said),
        "colour": _sorted(thing.colour for thing in seen.things) == _sorted(one.colour for one in said),
        "binding": _sorted(f"{thing.colour} {thing.shape}" for thing in seen.things)
        == _sorted(f"{one.colour} {one.object}" for one in said),
        "relation": False,
        "place": seen.place == scene.place,
    }
    if right["count"]:
        one, other = seen.things
        as_listed, the_other_way = _likeness((one, other), scene), _likeness((other, one), scene)
        first, second = (one, other) if as_listed > the_other_way else (other, one)
        right["relation"] = as_listed != the_other_way and relation_between(first, second) == scene.relation
    return right


def _likeness(things: tuple[Thing, Thing], scene: Arrangement) -> int:
    """How many shapes and colours are as those of the scene's things, in this order."""
    return sum(
        (thing.shape == said.object) + (thing.colour == said.colour)
        for thing, said in zip(things, (scene.first, scene.second), strict=True)
    )


def _sorted(words: Iterable[str | None]) -> list[str]:
    return sorted(str(word) for word in words)
