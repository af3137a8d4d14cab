"""Draws the pairs of EQ-Kubric: what is shown, how it is worded, with near-uniform statistics (EqBen, Figure 14).

Captions are the templates of EqBen in right English.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, permutations, product
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from twinset.contracts.canonical import generator_for
from twinset.contracts.errors import WrongUse
from twinset.contracts.parts import LeftOut
from twinset.generators.even_sampling import Balance, Rounds
from twinset.generators.kubric_scenes.captions.vocabulary import Entry, Vocabulary
from twinset.generators.kubric_scenes.scene.parts import Aspect, Drawn, NamedAsset, Relation, Size

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
SIZES: tuple[Size, ...] = ("small", "", "large")  # in order; empty: ordinary, and not said
T = TypeVar("T")

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


def all_black(name: str) -> bool:
    """Whether a name says black and no other colour: one such thing on another cannot be made out, in any light."""
    return name.startswith("black ") and not name.startswith("black and ")


def draw_pairs(
    aspect: Aspect,
    vocabulary: Vocabulary,
    available: Collection[str],
    seed: int,
    subset: str,
    sizes: Literal["shared", "each"] = "shared",
) -> Iterator[Planned]:
    """An endless stream of pairs, the same for the same arguments; raises `WrongUse` when too few names can be shown.

    available: asset ids that can be shown. sizes: of both objects of an attribute pair. Asking for more pairs keeps the
    first ones.
    """
    names = usable(vocabulary, aspect, available)
    drawing = _Drawing(vocabulary, names, available, Balance(generator_for(seed, subset, "captions")), sizes)
    draw, enough = {
        "location": (drawing.location, len(names.objects) > 1),
        "counting": (drawing.counting, len(names.objects) > 0),
        "attribute": (drawing.attribute, len(names.sets) > 0),
    }[aspect]
    if not enough:
        raise WrongUse(
            f"{subset}: the assets show only {len(names.objects)} objects and {len(names.sets)} attribute sets of the "
            "vocabulary; name a manifest that has more of them in the source's `assets`"
        )
    return (drawing.planned(index, draw()) for index in count())


class _Drawing:
    """One draw after another. What is constrained most is drawn first, so that what follows can make up for it.

    No fact comes again before all facts that share its relations (or what is counted, or its members and relation).
    """

    def __init__(
        self, vocabulary: Vocabulary, names: Usable, available: Collection[str], balance: Balance, sizes: str
    ) -> None:
        self._vocabulary, self._names, self._available = vocabulary, names, available
        self._equal_sizes = sizes == "shared"
        self._pick = balance.pick
        self._rounds = Rounds()
        objects = names.objects
        # (subject, object): which are two things, and of which the second can lie on the first.
        self._others = ~np.eye(len(objects), dtype=bool)
        fits = [[self._fits(name, subject) for name in objects] for subject in objects]
        self._carried = self._others & np.array(fits, dtype=bool).reshape(self._others.shape)

    def planned(self, index: int, drawn: Drawn) -> Planned:
        """What is drawn, with a wording for each of its images."""
        wording0, wording1 = self._wording(0, drawn), self._wording(1, drawn)
        caption0 = caption(drawn, 0, wording0, self._vocabulary)
        caption1 = caption(drawn, 1, wording1, self._vocabulary)
        return Planned(index, drawn, wording0, wording1, (caption0,), (caption1,))

    def location(self) -> Drawn:
        """One object at two places around one subject."""
        names = self._names.objects
        possible = [relation for relation in RELATIONS if relation != "on-top" or self._carried.any()]
        relations = self._pick("relations", list(permutations(possible, 2)))
        open_pairs = self._carried if "on-top" in relations else self._others
        ranks = self._rounds.ranks(relations, relations[::-1], open_pairs.shape)
        due = open_pairs & (ranks == ranks[open_pairs].min())
        subject = self._pick("subject", _where(names, due.any(axis=1)), relations)
        row = due[names.index(subject)]
        name = self._pick("object", _where(names, row), subject, relations)
        self._rounds.use(relations, (names.index(subject), names.index(name)))
        thing = self._thing(name)
        return Drawn("location", thing, thing, self._thing(subject), *relations, 1, 1)

    def counting(self) -> Drawn:
        """One kind of thing, two counts of it."""
        name = self._pick("object", self._names.objects)
        ranks = {counts: self._rounds.ranks((name, counts), (name, counts[::-1])) for counts in permutations(COUNTS, 2)}
        due = [counts for counts, rank in ranks.items() if rank == min(ranks.values())]
        counts = self._pick("counts", due, name)
        self._rounds.use((name, counts))
        thing = self._thing(name)
        return Drawn("counting", thing, thing, None, "", "", *counts)

    def attribute(self) -> Drawn:
        """Two members of one set at the same place beside a thing that is not of their kind."""
        kind = self._pick("set", list(self._names.sets))
        members = self._names.sets[kind]
        name0 = self._pick("member0", members)
        name1 = self._pick("member1", [name for name in members if told_apart(name, name0)], name0)
        objects, shape = self._names.objects, (len(self._names.objects),)
        subjects = np.array([self._vocabulary.objects[name].kind != kind for name in objects])
        carriers = subjects & [self._fits(name0, name) and self._fits(name1, name) for name in objects]
        relation = self._pick("relation", [r for r in RELATIONS if r != "on-top" or carriers.any()], kind)
        sizes = [each for each in product(SIZES, repeat=3) if self._sizes_fit(relation, *each)]
        open_subjects = carriers if relation == "on-top" else subjects
        ranks = np.stack(
            [
                self._rounds.ranks(
                    (relation, name0, name1, own), (relation, name1, name0, (*own[1::-1], own[2])), shape
                )
                for own in sizes
            ]
        )
        due = open_subjects & (ranks == ranks[:, open_subjects].min())
        picked = self._pick("sizes", _where(sizes, due.any(axis=1)), relation)
        subject = self._pick("subject", _where(objects, due[sizes.index(picked)]), relation, kind)
        self._rounds.use((relation, name0, name1, picked), (objects.index(subject),))
        object0, object1 = self._thing(name0, picked[0]), self._thing(name1, picked[1])
        return Drawn("attribute", object0, object1, self._thing(subject, picked[2]), relation, relation, 1, 1)

    def _sizes_fit(self, relation: Relation, object0: Size, object1: Size, subject: Size) -> bool:
        if self._equal_sizes and object0 != object1:
            return False
        # Nothing large is put on something smaller, where it would not lie.
        return relation != "on-top" or max(map(SIZES.index, (object0, object1))) <= SIZES.index(subject)

    def _wording(self, which: Literal[0, 1], drawn: Drawn) -> Wording:
        relation = (drawn.relation0, drawn.relation1)[which]
        if relation:
            verb = self._pick(f"verb{which}", VERBS, relation)
            return Wording(RELATION_TEMPLATE, verb, self._pick(f"place{which}", PHRASES[relation], verb))
        number = (drawn.count0, drawn.count1)[which]
        template = self._pick(f"template{which}", COUNTING_TEMPLATES, number, drawn)
        return Wording(template, "is", self._pick(f"place{which}", PLACES, template, number, drawn))

    def _thing(self, name: str, size: Size = "") -> NamedAsset:
        uses = self._vocabulary.entry(name).uses(self._available)
        return NamedAsset(name, self._pick("asset", [use.id for use in uses]), size)

    def _fits(self, name: str, under: str) -> bool:
        fits = self._vocabulary.entry(name).fits_on(self._vocabulary.entry(under))
        return fits and not (all_black(name) and all_black(under))


def _where(options: Sequence[T], wanted: NDArray[np.bool_]) -> list[T]:
    return [option for option, one in zip(options, wanted, strict=True) if one]


def caption(drawn: Drawn, which: Literal[0, 1], wording: Wording, vocabulary: Vocabulary) -> str:
    """The caption of one of the two images."""
    shown, number = (drawn.object0, drawn.count0) if which == 0 else (drawn.object1, drawn.count1)
    entry = vocabulary.entry(shown.name)
    if drawn.subject is None:
        said, subject, plural = counted(shown.name, entry, number), "", number > 1
    else:
        said, subject, plural = _sized(shown), _sized(drawn.subject), entry.unit == "pair"
    verb = "are" + wording.verb.removeprefix("is") if plural else wording.verb
    return wording.template.format(object=said, verb=verb, place=wording.place, subject=subject)


def counted(name: str, entry: Entry, number: int) -> str:
    """``number`` things of a name: "1 red coffee mug", "2 white gaming mice", "3 pairs of red scissors"."""
    if entry.unit:
        return f"{number} {entry.unit}{'s' if number > 1 else ''} of {name}"
    return f"{number} {name if number == 1 else entry.plural or name + 's'}"


def _sized(thing: NamedAsset) -> str:
    return f"{thing.size} {thing.name}" if thing.size else thing.name
