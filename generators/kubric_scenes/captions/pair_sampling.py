"""Draws the pairs of EQ-Kubric: what is shown, how it is worded, with near-uniform statistics (EqBen, Figure 14).

Captions are the templates of EqBen in right English.
"""

from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, permutations, product
from typing import Literal, TypeVar

from twinset.contracts.canonical import generator_for
from twinset.contracts.errors import WrongUse
from twinset.contracts.parts import LeftOut
from twinset.generators.even_sampling import Balance
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
T = TypeVar("T", bound=Hashable)

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


def told_apart(first: str, second: str) -> bool:
    """Whether neither name is also true of what the other names, as "blue bowl" is of a blue plastic dog bowl.

    Two colours are one: what is blue and white is not white.
    """
    words, others = (set(name.replace(" and ", "&").split()) for name in (first, second))
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
) -> Iterator[tuple[Drawn, str, str]]:
    """An endless stream of pairs with their two captions, the same for the same arguments.

    Args:
        available: asset ids that can be shown.
        sizes: of both objects of an attribute pair: one size for both, or drawn separately.

    Raises:
        WrongUse: too few names can be shown.
    """
    names = usable(vocabulary, aspect, available)
    sampler = _Sampler(vocabulary, names, available, Balance(generator_for(seed, subset, "captions")), sizes)
    draw, enough = {
        "location": (sampler.location, len(names.objects) > 1),
        "counting": (sampler.counting, len(names.objects) > 0),
        "attribute": (sampler.attribute, len(names.sets) > 0),
    }[aspect]
    if not enough:
        raise WrongUse(
            f"{subset}: the assets show only {len(names.objects)} objects and {len(names.sets)} attribute sets of the "
            "vocabulary; name a manifest that has more of them in the source's `assets`"
        )
    return (sampler.worded(draw()) for _ in count())


class _Sampler:
    """One draw after another. What is constrained most is drawn first, so that what follows can make up for it."""

    def __init__(
        self, vocabulary: Vocabulary, names: Usable, available: Collection[str], balance: Balance, sizes: str
    ) -> None:
        self._vocabulary, self._names, self._available = vocabulary, names, available
        self._equal_sizes = sizes == "shared"
        self._pick = balance.pick
        self._facts: Counter[Hashable] = Counter()
        self._beside = {name: [other for other in names.objects if other != name] for name in names.objects}
        self._carried = {name: [o for o in others if self._fits(o, name)] for name, others in self._beside.items()}

    def worded(self, drawn: Drawn) -> tuple[Drawn, str, str]:
        """What is drawn, with a caption for each of its images."""
        wordings = self._wording(0, drawn), self._wording(1, drawn)
        return drawn, caption(drawn, 0, wordings[0], self._vocabulary), caption(drawn, 1, wordings[1], self._vocabulary)

    def location(self) -> Drawn:
        """One object at two places around one subject."""
        possible = [relation for relation in RELATIONS if relation != "on-top" or any(self._carried.values())]
        relations = self._pick("relations", list(permutations(possible, 2)))
        beside = self._carried if "on-top" in relations else self._beside
        subject = self._pick("subject", [name for name in beside if beside[name]], relations)
        name = self._new("object", beside[subject], subject, frozenset(relations))
        thing = self._asset(name)
        return Drawn("location", thing, thing, self._asset(subject), *relations, 1, 1)

    def counting(self) -> Drawn:
        """One kind of thing, two counts of it."""
        name = self._pick("object", self._names.objects)
        counts = self._new("counts", list(permutations(COUNTS, 2)), name)
        thing = self._asset(name)
        return Drawn("counting", thing, thing, None, "", "", *counts)

    def attribute(self) -> Drawn:
        """Two members of one set at the same place beside a thing that is not of their kind."""
        kind = self._pick("set", list(self._names.sets))
        names = self._names.sets[kind]
        name0 = self._pick("member0", names)
        name1 = self._pick("member1", [name for name in names if told_apart(name, name0)], name0)
        subjects = [name for name in self._names.objects if self._vocabulary.objects[name].kind != kind]
        carriers = [name for name in subjects if self._fits(name0, name) and self._fits(name1, name)]
        relation = self._pick("relation", [r for r in RELATIONS if r != "on-top" or carriers], kind)
        sizes = [triple for triple in product(SIZES, repeat=3) if self._sizes_fit(relation, *triple)]
        size0, size1, size = self._pick("sizes", sizes, relation)
        members = frozenset(((name0, size0), (name1, size1)))
        subject = self._new("subject", carriers if relation == "on-top" else subjects, relation, (members, size))
        object0, object1 = self._asset(name0, size0), self._asset(name1, size1)
        return Drawn("attribute", object0, object1, self._asset(subject, size), relation, relation, 1, 1)

    def _new(self, slot: str, options: Sequence[T], *given: Hashable) -> T:
        """One of the options, of which none comes beside the same ``given`` again before all have."""
        uses = [self._facts[slot, option, given] for option in options]
        least = [option for option, use in zip(options, uses, strict=True) if use == min(uses)]
        option = self._pick(slot, least, *given)
        self._facts[slot, option, given] += 1
        return option

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

    def _asset(self, name: str, size: Size = "") -> NamedAsset:
        uses = self._vocabulary.entry(name).uses(self._available)
        return NamedAsset(name, self._pick("asset", [use.id for use in uses]), size)

    def _fits(self, name: str, under: str) -> bool:
        fits = self._vocabulary.entry(name).fits_on(self._vocabulary.entry(under))
        return fits and not (all_black(name) and all_black(under))


def caption(drawn: Drawn, which: Literal[0, 1], wording: Wording, vocabulary: Vocabulary) -> str:
    """The caption of one of the two images."""
    shown, number = (drawn.object0, drawn.count0) if which == 0 else (drawn.object1, drawn.count1)
    entry = vocabulary.entry(shown.name)
    if drawn.subject is None:
        name, subject, plural = counted(shown.name, entry, number), "", number > 1
    else:
        name, subject, plural = _sized(shown), _sized(drawn.subject), entry.unit == "pair"
    verb = "are" + wording.verb.removeprefix("is") if plural else wording.verb
    return wording.template.format(object=name, verb=verb, place=wording.place, subject=subject)


def counted(name: str, entry: Entry, number: int) -> str:
    """``number`` things of a name: "1 red coffee mug", "2 white gaming mice", "3 pairs of red scissors"."""
    if entry.unit:
        return f"{number} {entry.unit}{'s' if number > 1 else ''} of {name}"
    return f"{number} {name if number == 1 else entry.plural or name + 's'}"


def _sized(thing: NamedAsset) -> str:
    return f"{thing.size} {thing.name}" if thing.size else thing.name
