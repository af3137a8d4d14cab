"""Draws the pairs of EQ-Kubric: what is shown, how it is worded, with near-uniform statistics (EqBen, Figure 14)."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import count, permutations, product
from typing import Literal

from generators.even_sampling import Balance
from generators.kubric_scenes.captions.grammar import (
    COUNTING_TEMPLATES,
    COUNTS,
    PHRASES,
    PLACES,
    RELATION_TEMPLATE,
    RELATIONS,
    VERBS,
    Wording,
    caption,
)
from generators.kubric_scenes.captions.vocabulary import Vocabulary
from generators.kubric_scenes.scene.parts import Aspect, Drawn, Relation, Size, Thing
from manifests.canonical import generator_for
from manifests.errors import WrongUse
from shards.contracts import LeftOut

SIZES: tuple[Size, ...] = ("small", "", "large")  # in order; empty: ordinary, and not said

Worded = tuple[Drawn, Wording, Wording]


@dataclass(frozen=True, slots=True)
class Planned:
    """The index-th pair of a stream. captions0, captions1: one each, in the wording drawn for it."""

    index: int
    drawn: Drawn
    wording0: Wording
    wording1: Wording
    captions0: tuple[str, ...]
    captions1: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Usable:
    """The part of a vocabulary that can be shown.

    objects: of the general list. sets: the attribute sets with two members that can be told apart and a subject beside
    them; empty for other aspects. excluded: how many names were left out, by reason: ``name-unmapped`` has no available
    asset, ``name-unpaired`` has one, but nothing of its set to differ from, or no subject of another kind.
    """

    objects: tuple[str, ...]
    sets: dict[str, tuple[str, ...]]
    excluded: LeftOut


def usable(vocabulary: Vocabulary, aspect: Aspect, available: Collection[str]) -> Usable:
    """The names that the available assets can show in an aspect."""
    excluded = LeftOut()
    objects = tuple(name for name, entry in vocabulary.objects.items() if entry.uses(available))
    kinds = {vocabulary.objects[name].kind for name in objects}
    for name in vocabulary.objects:
        if name not in objects:
            excluded.add("name-unmapped", name)
    sets: dict[str, tuple[str, ...]] = {}
    for kind, members in vocabulary.sets.items() if aspect == "attribute" else ():
        mapped = [name for name, entry in members.items() if entry.uses(available)]
        paired = tuple(name for name in mapped if kinds - {kind} and any(told_apart(name, other) for other in mapped))
        if paired:
            sets[kind] = paired
        for name in members:
            if name not in paired:
                excluded.add("name-unpaired" if name in mapped else "name-unmapped", f"{name} of the set {kind}")
    return Usable(objects, sets, excluded)


def told_apart(name: str, other: str) -> bool:
    """Whether neither name is also true of what the other names, as "blue bowl" is of a blue plastic dog bowl.

    Two colours are one: what is blue and white is not white.
    """
    words, others = (set(each.replace(" and ", "&").split()) for each in (name, other))
    return not (words <= others or others <= words)


def draw_pairs(
    aspect: Aspect, vocabulary: Vocabulary, available: Collection[str], seed: int, subset: str
) -> Iterator[Planned]:
    """An endless stream of pairs, the same for the same arguments; raises `WrongUse` when too few names can be shown.

    available: asset ids that can be shown. Asking for more pairs keeps the first ones.
    """
    names = usable(vocabulary, aspect, available)
    enough = {"location": len(names.objects) > 1, "counting": len(names.objects) > 0, "attribute": len(names.sets) > 0}
    if not enough[aspect]:
        raise WrongUse(
            f"{subset}: the assets show only {len(names.objects)} objects and {len(names.sets)} attribute sets of the "
            "vocabulary; name a manifest that has more of them in the source's `assets`"
        )
    return _stream(_Drawing(vocabulary, names, available, Balance(generator_for(seed, subset, "captions"))), aspect)


def _stream(drawing: _Drawing, aspect: Aspect) -> Iterator[Planned]:
    draw = {"location": drawing.location, "counting": drawing.counting, "attribute": drawing.attribute}[aspect]
    for index in count():
        drawn, wording0, wording1 = draw()
        caption0 = caption(drawn, 0, wording0, drawing.vocabulary)
        caption1 = caption(drawn, 1, wording1, drawing.vocabulary)
        yield Planned(index, drawn, wording0, wording1, (caption0,), (caption1,))


class _Drawing:
    """One draw after another. What is constrained most is drawn first, so that what follows can make up for it."""

    def __init__(self, vocabulary: Vocabulary, names: Usable, available: Collection[str], balance: Balance) -> None:
        self.vocabulary = vocabulary
        self._names = names
        self._available = available
        self._pick = balance.pick
        self._carried = {
            subject: [name for name in names.objects if name != subject and self._fits(name, subject)]
            for subject in names.objects
        }
        self._carriers = [subject for subject, carried in self._carried.items() if carried]

    def location(self) -> Worded:
        """One object at two places around one subject."""
        possible = [relation for relation in RELATIONS if relation != "on-top" or self._carriers]
        relations = self._pick("relations", list(permutations(possible, 2)))
        if "on-top" in relations:
            subject = self._pick("subject", self._carriers, relations)
            others = self._carried[subject]
        else:
            subject = self._pick("subject", self._names.objects, relations)
            others = [name for name in self._names.objects if name != subject]
        thing = self._thing(self._pick("object", others, subject, relations))
        drawn = Drawn("location", thing, thing, self._thing(subject), *relations, 1, 1)
        return drawn, self._relation_wording(0, relations[0]), self._relation_wording(1, relations[1])

    def counting(self) -> Worded:
        """One kind of thing, two counts of it."""
        name = self._pick("object", self._names.objects)
        counts = self._pick("counts", list(permutations(COUNTS, 2)), name)
        thing = self._thing(name)
        drawn = Drawn("counting", thing, thing, None, "", "", *counts)
        return drawn, self._counting_wording(0, drawn, counts[0]), self._counting_wording(1, drawn, counts[1])

    def attribute(self) -> Worded:
        """Two members of one set at the same place beside a thing that is not of their kind."""
        kind = self._pick("set", list(self._names.sets))
        members = self._names.sets[kind]
        name0 = self._pick("member0", members)
        name1 = self._pick("member1", [name for name in members if told_apart(name, name0)], name0)
        subjects = [name for name in self._names.objects if self.vocabulary.objects[name].kind != kind]
        carriers = [name for name in subjects if self._fits(name0, name) and self._fits(name1, name)]
        relation = self._pick("relation", [r for r in RELATIONS if r != "on-top" or carriers], kind)
        size, subject_size = self._pick("sizes", _sizes(relation), relation)
        subject = self._pick("subject", carriers if relation == "on-top" else subjects, relation, kind)
        object0, object1 = self._thing(name0, size), self._thing(name1, size)
        drawn = Drawn("attribute", object0, object1, self._thing(subject, subject_size), relation, relation, 1, 1)
        return drawn, self._relation_wording(0, relation), self._relation_wording(1, relation)

    def _relation_wording(self, which: Literal[0, 1], relation: Relation) -> Wording:
        verb = self._pick(f"verb{which}", VERBS, relation)
        return Wording(RELATION_TEMPLATE, verb, self._pick(f"place{which}", PHRASES[relation], verb))

    def _counting_wording(self, which: Literal[0, 1], drawn: Drawn, number: int) -> Wording:
        template = self._pick(f"template{which}", COUNTING_TEMPLATES, number, drawn)
        return Wording(template, "is", self._pick(f"place{which}", PLACES, template, number, drawn))

    def _thing(self, name: str, size: Size = "") -> Thing:
        return Thing(
            name, self._pick("asset", [use.id for use in self.vocabulary.entry(name).uses(self._available)]), size
        )

    def _fits(self, name: str, under: str) -> bool:
        return self.vocabulary.entry(name).fits_on(self.vocabulary.entry(under))


def _sizes(relation: Relation) -> list[tuple[Size, Size]]:
    """Sizes of object and subject; nothing large is put on something smaller, where it would not lie."""
    both = list(product(SIZES, SIZES))
    return [pair for pair in both if relation != "on-top" or SIZES.index(pair[0]) <= SIZES.index(pair[1])]
