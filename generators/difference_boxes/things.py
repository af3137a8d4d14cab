"""What one caption of a pair names and the other does not: objects, or attributes of what both name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from twinset.generators.edited_photos.wording import plural_of
from twinset.generators.image_verification.questions.asking import ImageQuestion

#: First words of attributes that say where something is, which a box by itself does not show.
_PLACES = frozenset(("in", "on", "at", "to", "by", "near", "behind", "under", "above", "below"))


@dataclass(frozen=True, slots=True)
class Thing:
    """An object, or an object of some kind. label: such as ``red car``. question: whether it is there."""

    label: str
    question: str


def different(first: Sequence[ImageQuestion], second: Sequence[ImageQuestion]) -> tuple[list[Thing], list[Thing]]:
    """What each caption's questions ask for that the other's do not; objects, and attributes where no object differs.

    An object in the plural is the same as in the singular.
    """
    found = [_objects(first, second), _objects(second, first)]
    if not any(found):
        found = [_attributes(first, second), _attributes(second, first)]
    return found[0], found[1]


def _objects(own: Sequence[ImageQuestion], others: Sequence[ImageQuestion]) -> list[Thing]:
    known = {one.words[0] for one in others if one.kind == "entity"}
    known |= {plural_of(name) for name in known}
    asked = (one for one in own if one.kind == "entity")
    return [Thing(one.words[0], one.question) for one in asked if not {one.words[0], plural_of(one.words[0])} & known]


def _attributes(own: Sequence[ImageQuestion], others: Sequence[ImageQuestion]) -> list[Thing]:
    known = {one.words for one in others}
    asked = (one for one in own if one.kind == "attribute" and one.words not in known)
    return [
        Thing(f"{one.words[1]} {one.words[0]}", one.question) for one in asked if one.words[1].split()[0] not in _PLACES
    ]
