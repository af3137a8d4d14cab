"""Captions of EQ-Kubric: the templates of EqBen (Figure 14) in right English, of what is drawn as it is worded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from generators.kubric_scenes.captions.vocabulary import Entry, Vocabulary
from generators.kubric_scenes.scene.parts import Drawn, Relation, Thing

#: How each relation can be said. Phrases of one relation are synonyms: swapping them does not change what is shown.
PHRASES: dict[Relation, tuple[str, ...]] = {
    "in-front": ("in front of",),
    "behind": ("behind",),
    "left": ("on the left of", "on the left side of", "on the left hand of"),
    "right": ("on the right of", "on the right side of", "on the right hand of"),
    "on-top": ("on the top of", "above"),
}
RELATIONS: tuple[Relation, ...] = tuple(PHRASES)
VERBS = ("is", "is located", "is placed")
PLACES = ("in the scene", "on the platform")
COUNTS = (1, 2, 3, 4, 5)

RELATION_TEMPLATE = "The {object} {verb} {place} the {subject}."
COUNTING_TEMPLATES = ("There {verb} {object} {place}.", "{object} {verb} {place}.")


@dataclass(frozen=True, slots=True)
class Wording:
    """How a caption says what is drawn; any two wordings of one picture mean the same.

    template: `RELATION_TEMPLATE` or one of `COUNTING_TEMPLATES`. verb: one of `VERBS`, "is" when counting; it is made
    to agree. place: one of the relation's `PHRASES`, or of `PLACES` when counting.
    """

    template: str
    verb: str
    place: str


def caption(drawn: Drawn, which: Literal[0, 1], wording: Wording, vocabulary: Vocabulary) -> str:
    """The caption of one of the two images."""
    shown, count = (drawn.object0, drawn.count0) if which == 0 else (drawn.object1, drawn.count1)
    entry = vocabulary.entry(shown.name)
    if drawn.aspect == "counting":
        verb = _agreeing(wording.verb, plural=count > 1)
        return wording.template.format(object=counted(shown.name, entry, count), verb=verb, place=wording.place)
    if drawn.subject is None:
        raise ValueError(f"a pair of the {drawn.aspect} aspect needs a subject")
    verb = _agreeing(wording.verb, plural=entry.unit == "pair")
    return wording.template.format(object=_sized(shown), verb=verb, place=wording.place, subject=_sized(drawn.subject))


def counted(name: str, entry: Entry, count: int) -> str:
    """``count`` things of a name: "1 red coffee mug", "2 white gaming mice", "3 pairs of red scissors"."""
    if entry.unit:
        return f"{count} {entry.unit}{'s' if count > 1 else ''} of {name}"
    return f"{count} {name if count == 1 else entry.plural or name + 's'}"


def _sized(thing: Thing) -> str:
    return f"{thing.size} {thing.name}" if thing.size else thing.name


def _agreeing(verb: str, plural: bool) -> str:
    return "are" + verb.removeprefix("is") if plural else verb
