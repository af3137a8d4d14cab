"""Scenes of two things and how they stand to each other: what pictures can show, how captions say it, what is held out.

The things, colours and places are those of `scenes`. Two captions can say the same ("a red ball to the left of a blue
box" and "a blue box to the right of a red ball"); others use the same words for another picture (a swap).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from twinset_demo.small_diffusion.scenes import COLOURS, HELD_OUT, OBJECTS, PLACES

#: Where the first thing stands, seen from the second: steps to the right and downwards in the picture.
RELATIONS: dict[str, tuple[int, int]] = {
    "to the left of": (-1, 0),
    "to the right of": (1, 0),
    "above": (0, -1),
    "below": (0, 1),
}
OPPOSITE = {
    "to the left of": "to the right of",
    "to the right of": "to the left of",
    "above": "below",
    "below": "above",
}
#: How often training sees each place: before the wall most, since the other places differ from it by themselves.
_PLACE_WEIGHTS = (0.4, 0.2, 0.2, 0.2)


@dataclass(frozen=True, slots=True, order=True)
class Thing:
    """One thing with its colour."""

    colour: str
    object: str

    def __str__(self) -> str:
        return f"a {self.colour} {self.object}"


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Two things that differ in colour, in kind or in both, and how the first stands to the second.

    place: "" is before a grey wall. It is always day, and both things are of one size.
    """

    first: Thing
    relation: str
    second: Thing
    place: str = ""

    def caption(self) -> str:
        """As in "a red ball to the left of a blue box in the snow"."""
        return " ".join(filter(None, (str(self.first), self.relation, str(self.second), self.place)))

    def said_otherwise(self) -> Arrangement:
        """The same picture in the words of the other thing."""
        return replace(self, first=self.second, relation=OPPOSITE[self.relation], second=self.first)


def things_swapped(scene: Arrangement) -> Arrangement:
    """The things change places: another picture, of the same words."""
    return replace(scene, first=scene.second, second=scene.first)


def colours_swapped(scene: Arrangement) -> Arrangement:
    """The things change colours; of one kind, that is as `things_swapped`, and of one colour it changes nothing."""
    first, second = scene.first, scene.second
    return replace(scene, first=replace(first, colour=second.colour), second=replace(second, colour=first.colour))


def sample_arrangement(rng: np.random.Generator) -> Arrangement:
    """A random scene; two things are never alike."""

    def one() -> Thing:
        return Thing(str(rng.choice(tuple(COLOURS))), str(rng.choice(tuple(OBJECTS))))

    first, second = one(), one()
    while second == first:
        second = one()
    relation = str(rng.choice(tuple(RELATIONS)))
    return Arrangement(first, relation, second, str(rng.choice(PLACES, p=_PLACE_WEIGHTS)))


def every_arrangement() -> Iterator[Arrangement]:
    """All scenes that `sample_arrangement` can return."""
    things = [Thing(colour, kind) for colour, kind in product(COLOURS, OBJECTS)]
    for first, relation, second, place in product(things, RELATIONS, things, PLACES):
        if first != second:
            yield Arrangement(first, relation, second, place)


def is_held_out(scene: Arrangement) -> bool:
    """Whether a scene is kept out of training, together with all that its words can be turned into.

    One family in twenty is: of two colours, two kinds of things and an axis (side by side, or one above the other).
    So a caption that was held out is not known from the other way to say it, a swap, its reversal or another place.
    """
    axis = "beside" if RELATIONS[scene.relation][0] else "above"
    family = " ".join(
        [*sorted((scene.first.colour, scene.second.colour)), *sorted((scene.first.object, scene.second.object)), axis]
    )
    digest = hashlib.blake2b(family.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % HELD_OUT == 0


def _choice(words: tuple[str, ...]) -> str:
    return "|".join(sorted(words, reverse=True))


_THING = f"a ({_choice(tuple(COLOURS))}) ({_choice(tuple(OBJECTS))})"
_CAPTION = re.compile(f"{_THING} ({_choice(tuple(RELATIONS))}) {_THING}(?: ({_choice(PLACES[1:])}))?")


def read_arrangement(caption: str) -> Arrangement:
    """The scene of a caption; capitals and a full stop are allowed.

    Raises:
        ValueError: The caption is not of this grammar, or its two things are alike.
    """
    found = _CAPTION.fullmatch(caption.strip().rstrip(".").lower())
    if found is None:
        raise ValueError(
            f"{caption!r}: not a caption of two things of the small world, "
            "such as 'a red ball to the left of a blue box in the snow'"
        )
    colour, kind, relation, other_colour, other_kind, place = found.groups()
    scene = Arrangement(Thing(colour, kind), relation, Thing(other_colour, other_kind), place or "")
    if scene.first == scene.second:
        raise ValueError(f"{caption!r}: the two things of the small world must differ, or no swap could be seen")
    return scene
