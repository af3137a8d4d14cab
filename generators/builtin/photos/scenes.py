"""Which things stand where in each of the photos, and how they look: sampled evenly, the same on every machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle, islice
from random import Random  # its shuffle is the same in all versions of Python 3

from generators.builtin.photos.families import FAMILIES, Family
from generators.builtin.photos.painter import KINDS, Painter, Photo, Thing
from generators.builtin.photos.sheet import Look

#: Twelve digits, so that ``ID.jpg`` (Visual Genome) and ``%012d.jpg`` (COCO) are the same name.
FIRST_ID = 100_000_000_001
_NEVER_MIRRORED = {"stop sign", "clock"}  # they bear letters or numbers


@dataclass(frozen=True, slots=True)
class Scene:
    """A photo before it is painted. variant: of the colours of its surroundings. things: from the back to the front."""

    image_id: int
    family: str
    variant: int
    extras: frozenset[str]
    things: tuple[Thing, ...]

    @property
    def file_name(self) -> str:
        """Name of its picture."""
        return f"{self.image_id}.jpg"

    def paint(self) -> Photo:
        """The photo of the scene."""
        painter = Painter()
        FAMILIES[self.family].surroundings(painter, self.variant, self.extras)
        for thing in self.things:
            painter.add(thing)
        return painter.finish()


def scenes() -> list[Scene]:
    """All photos, in the order of their ids."""
    looks = {kind: _dealt_looks(kind) for kind in KINDS}
    found: list[Scene] = []
    for name, family in FAMILIES.items():
        extras = {extra: _dealt((extra,), share, family.pictures, name) for extra, share in family.extras}
        decks = [_dealt(slot.kinds, slot.share, family.pictures, f"{name} {n}") for n, slot in enumerate(family.slots)]
        for number in range(family.pictures):
            present = frozenset(extra for extra, deck in extras.items() if deck[number])
            kinds = [deck[number] for deck in decks]
            random = Random(f"{name} {number}")
            things = _things(family, kinds, present, looks, random)
            found.append(Scene(FIRST_ID + len(found), name, number, present, things))
    return found


def _things(
    family: Family, kinds: Sequence[str], extras: frozenset[str], looks: Mapping[str, Iterator[Look]], random: Random
) -> tuple[Thing, ...]:
    things: list[Thing] = []
    for kind, slot in zip(kinds, family.slots, strict=True):
        if not kind or kind in {thing.kind for thing in things} or not {slot.only_with} - {""} <= extras:
            continue
        x, y, flip, support = slot.x, slot.y, False, slot.support
        if isinstance(support, str):
            look = next(looks[kind])
            if support != "wall":
                x += random.randint(-3, 3)
                flip = kind not in _NEVER_MIRRORED and random.random() < 0.5
        else:
            carrier = next((thing for thing in things if thing.kind in support), None)
            if carrier is None:
                continue
            look = replace(next(looks[kind]), state="open") if kind == "umbrella" else next(looks[kind])
            x, y = x + carrier.where[0], y + carrier.where[1] - KINDS[carrier.kind].top * carrier.zoom
            support = carrier.kind
        things.append(Thing(kind, look, (x, y), slot.zoom, flip, support, slot.preposition))
    return tuple(things)


def _dealt(kinds: Sequence[str], share: float, pictures: int, name: str) -> list[str]:
    """Which kind each picture has, "" for none; each as often as its turn comes."""
    count = round(share * pictures)
    deck = [*islice(cycle(kinds), count), *[""] * (pictures - count)]
    Random(f"{name} {kinds}").shuffle(deck)
    return deck


def _dealt_looks(kind: str) -> Iterator[Look]:
    """Looks of one thing of a kind after the other, each attribute as often as the others."""
    decks = {of: _turns(values, Random(f"{kind} {of}")) for of, values in KINDS[kind].choices.items()}
    while True:
        yield Look(**{of: next(deck) for of, deck in decks.items()})


def _turns(values: Sequence[str], random: Random) -> Iterator[str]:
    while True:
        deck = [*values] * 2
        random.shuffle(deck)  # another order each time: in the same one, all large trees could come to be green
        yield from reversed(deck)
