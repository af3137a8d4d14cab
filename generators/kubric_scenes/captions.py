"""The pairs of EQ-Kubric: what is shown and how it is worded, with near-uniform statistics (EqBen, Figure 14).

Captions are the templates of EqBen in right English. The vocabulary says of each name its grammar, its shape and the
assets that show it.
"""

from __future__ import annotations

from collections import ChainMap, Counter
from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations, product
from typing import Annotated, Literal, TypeVar

from pydantic import Field

from twinset.contracts.canonical import generator_for
from twinset.contracts.errors import WrongUse
from twinset.contracts.locations import VOCABULARIES
from twinset.contracts.parts import LeftOut
from twinset.contracts.source import Settings
from twinset.generators.even_sampling import Balance
from twinset.generators.record_fields import read_words

SHIPPED = VOCABULARIES / "eq_kubric.yaml"

#: A thing lies on another when it is at most this many times as wide, and as deep, as what it lies on: at most 19 % of
#: it then sticks out at either end, and its middle rests.
OVERHANG = 1.6

Aspect = Literal["location", "counting", "attribute"]
Relation = Literal["in-front", "behind", "left", "right", "on-top"]
Size = Literal["", "small", "large"]
Length = Annotated[float, Field(gt=0, le=3)]
AssetId = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$")]
T = TypeVar("T", bound=Hashable)

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
COUNTING_TEMPLATES = ("There {verb} {object} {place}.", "{object} {verb} {place}.")
PLACES = ("in the scene", "on the platform")
COUNTS = (1, 2, 3, 4, 5)
SIZES: tuple[Size, ...] = ("small", "", "large")  # in order; empty: ordinary, and not said


class Assets(Settings):
    """The assets that show a name, by collection; none where none plainly does."""

    gso: tuple[AssetId, ...] = ()
    procedural: tuple[AssetId, ...] = ()


class Entry(Settings):
    """What the vocabulary says of a name.

    extent: longest side. footprint: width and depth, as it faces the viewer. top: width and depth of the part that can
    carry another thing. All in scene units, of a thing of ordinary size.
    plural: the name and an "s" when empty. unit: what such things are counted in; a pair takes "are".
    kind: the attribute set that such a thing belongs to.
    """

    extent: Length
    footprint: tuple[Length, Length]
    top: tuple[Length, Length] | None = None
    can_lie_on_top: bool = True
    plural: str = ""
    unit: Literal["", "pair", "piece"] = ""
    kind: str = ""
    assets: Assets

    def fits_on(self, under: Entry) -> bool:
        """Whether this thing can lie on ``under``, both of ordinary size."""
        if not self.can_lie_on_top or under.top is None:
            return False
        return all(own <= OVERHANG * below for own, below in zip(self.footprint, under.top, strict=True))

    def shown_by(self, available: Collection[str]) -> list[str]:
        """Those of its assets that are available."""
        return [asset for asset in self.assets.gso + self.assets.procedural if asset in available]


class Vocabulary(Settings):
    """objects: names of objects and subjects. sets: the attribute sets, by kind, each with its members."""

    objects: dict[str, Entry]
    sets: dict[str, dict[str, Entry]]

    def entry(self, name: str) -> Entry:
        """What is said of a name, of the general list or of a set."""
        return ChainMap(self.objects, *self.sets.values())[name]


@lru_cache
def load_vocabulary() -> Vocabulary:
    """The shipped vocabulary."""
    return read_words(SHIPPED, Vocabulary)


@dataclass(frozen=True, slots=True)
class NamedAsset:
    """What a caption names. name: of the vocabulary; asset: id in the asset source; size: empty when not drawn."""

    name: str
    asset: str
    size: Size = ""

    def sized(self) -> str:
        """The name with its size, where one was drawn."""
        return f"{self.size} {self.name}" if self.size else self.name


@dataclass(frozen=True, slots=True)
class Drawn:
    """One planned pair without its pixels: everything that its two captions say.

    object0, object1: differ in the attribute aspect only. subject: None when counting. relation0, relation1: empty when
    counting, and equal in the attribute aspect. count0, count1: 1 except when counting.
    """

    aspect: Aspect
    object0: NamedAsset
    object1: NamedAsset
    subject: NamedAsset | None
    relation0: Relation | Literal[""]
    relation1: Relation | Literal[""]
    count0: int
    count1: int


class PairSampler:
    """An endless stream of pairs with their two captions, the same for the same arguments.

    available: ids of the assets that can be shown. sizes: of both objects of an attribute pair, ``shared``: one size;
    ``each``: drawn separately.

    objects: the names of the general list that can be shown. sets: the attribute sets with two members that can be told
    apart and a subject beside them; empty for other aspects. excluded: how many names were left out, by reason:
    ``name-unmapped`` has no available asset, ``name-unpaired`` has one, but nothing of its set to differ from, or no
    subject of another kind.

    Raises:
        WrongUse: too few names can be shown.
    """

    def __init__(
        self, aspect: Aspect, available: Collection[str], seed: int, subset: str, sizes: Literal["shared", "each"]
    ) -> None:
        self._vocabulary, self._available = load_vocabulary(), available
        self._equal_sizes = sizes == "shared"
        self._pick = Balance(generator_for(seed, subset, "captions")).pick
        self._facts: Counter[Hashable] = Counter()
        self.excluded = LeftOut()
        self.objects = self._shown_objects()
        self.sets = self._shown_sets() if aspect == "attribute" else {}
        self._draw, enough = {
            "location": (self._location, len(self.objects) > 1),
            "counting": (self._counting, len(self.objects) > 0),
            "attribute": (self._attribute, len(self.sets) > 0),
        }[aspect]
        if not enough:
            raise WrongUse(
                f"{subset}: the assets show only {len(self.objects)} objects and {len(self.sets)} attribute sets of the"
                " vocabulary; name a manifest that has more of them in the source's `assets`"
            )
        self._beside = {name: [o for o in self.objects if o != name] for name in self.objects}
        self._carried = {name: [o for o in names if self._fits(o, name)] for name, names in self._beside.items()}

    def __iter__(self) -> Iterator[tuple[Drawn, str, str]]:
        while True:
            drawn = self._draw()
            yield drawn, self._caption(0, drawn), self._caption(1, drawn)

    def _shown_objects(self) -> tuple[str, ...]:
        objects = tuple(name for name, entry in self._vocabulary.objects.items() if entry.shown_by(self._available))
        for name in self._vocabulary.objects:
            if name not in objects:
                self.excluded.add("name-unmapped", name)
        return objects

    def _shown_sets(self) -> dict[str, tuple[str, ...]]:
        kinds = {self._vocabulary.objects[name].kind for name in self.objects}
        sets = {}
        for kind, members in self._vocabulary.sets.items():
            mapped = [name for name, entry in members.items() if entry.shown_by(self._available)]
            paired = tuple(n for n in mapped if kinds - {kind} and any(told_apart(n, second) for second in mapped))
            if paired:
                sets[kind] = paired
            for name in members:
                if name not in paired:
                    self.excluded.add(
                        "name-unpaired" if name in mapped else "name-unmapped", f"{name} of the set {kind}"
                    )
        return sets

    # What is constrained most is drawn first, so that what follows can make up for it.

    def _location(self) -> Drawn:
        """One object at two places around one subject."""
        possible = [relation for relation in RELATIONS if relation != "on-top" or any(self._carried.values())]
        relations = self._pick("relations", list(permutations(possible, 2)))
        beside = self._carried if "on-top" in relations else self._beside
        subject = self._pick("subject", [name for name in beside if beside[name]], relations)
        name = self._new("object", beside[subject], subject, frozenset(relations))
        asset = self._asset(name)
        return Drawn("location", asset, asset, self._asset(subject), *relations, 1, 1)

    def _counting(self) -> Drawn:
        """One kind of thing, two counts of it."""
        name = self._pick("object", self.objects)
        counts = self._new("counts", list(permutations(COUNTS, 2)), name)
        asset = self._asset(name)
        return Drawn("counting", asset, asset, None, "", "", *counts)

    def _attribute(self) -> Drawn:
        """Two members of one set at the same place beside a thing that is not of their kind."""
        kind = self._pick("set", list(self.sets))
        names = self.sets[kind]
        name0 = self._pick("member0", names)
        name1 = self._pick("member1", [name for name in names if told_apart(name, name0)], name0)
        subjects = [name for name in self.objects if self._vocabulary.objects[name].kind != kind]
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

    def _asset(self, name: str, size: Size = "") -> NamedAsset:
        return NamedAsset(name, self._pick("asset", self._vocabulary.entry(name).shown_by(self._available)), size)

    def _fits(self, name: str, under: str) -> bool:
        fits = self._vocabulary.entry(name).fits_on(self._vocabulary.entry(under))
        return fits and not (all_black(name) and all_black(under))

    def _caption(self, which: Literal[0, 1], drawn: Drawn) -> str:
        """The caption of one of the two images, in one of the wordings that mean the same."""
        asset, relation, number = (
            (drawn.object0, drawn.relation0, drawn.count0),
            (drawn.object1, drawn.relation1, drawn.count1),
        )[which]
        entry = self._vocabulary.entry(asset.name)
        if drawn.subject is None or not relation:
            template = self._pick(f"template{which}", COUNTING_TEMPLATES, number, drawn)
            place = self._pick(f"place{which}", PLACES, template, number, drawn)
            counted, verb = _counted(asset.name, entry, number), "are" if number > 1 else "is"
            return template.format(object=counted, verb=verb, place=place)
        verb = self._pick(f"verb{which}", VERBS, relation)
        place = self._pick(f"place{which}", PHRASES[relation], verb)
        if entry.unit == "pair":
            verb = "are" + verb.removeprefix("is")
        return f"The {asset.sized()} {verb} {place} the {drawn.subject.sized()}."


def told_apart(first: str, second: str) -> bool:
    """Whether neither name is also true of what the other names, as "blue bowl" is of a blue plastic dog bowl.

    Two colours are one: what is blue and white is not white.
    """
    words, other_words = (set(name.replace(" and ", "&").split()) for name in (first, second))
    return not (words <= other_words or other_words <= words)


def all_black(name: str) -> bool:
    """Whether a name says black and no other colour: one such thing on another cannot be made out, in any light."""
    return name.startswith("black ") and not name.startswith("black and ")


def _counted(name: str, entry: Entry, number: int) -> str:
    """``number`` things of a name: "1 red coffee mug", "2 white gaming mice", "3 pairs of red scissors"."""
    if entry.unit:
        return f"{number} {entry.unit}{'s' if number > 1 else ''} of {name}"
    return f"{number} {name if number == 1 else entry.plural or name + 's'}"
