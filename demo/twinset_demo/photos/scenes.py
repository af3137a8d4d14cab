"""Which things stand where in each of the photos, and how they look: sampled evenly, the same on every machine.

Photos of a family share their surroundings and many of their things, which makes them close to each other as GeneCIS
wants it; photos of other families, above all of the plain ones, are far away.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import cycle, islice
from random import Random  # its shuffle is the same in all versions of Python 3

from twinset_demo.photos import surroundings
from twinset_demo.photos.painter import KINDS, Painter, Photo, Thing
from twinset_demo.photos.sheet import Look

#: Twelve digits, so that ``ID.jpg`` (Visual Genome) and ``%012d.jpg`` (COCO) are the same name.
FIRST_ID = 100_000_000_001
_NEVER_MIRRORED = {"stop sign", "clock"}  # they bear letters or numbers


@dataclass(frozen=True, slots=True)
class Slot:
    """A place for one of several kinds of things.

    Args:
        kinds: They take turns.
        share: Of the family's photos that have one.
        x: Of its foot, from the left; from the middle of what it stands on where that is a thing. Likewise ``y``.
        support: Noun of the surroundings, or kinds of things, that carry it; without them the place stays empty.
        only_with: What the surroundings must have too.
    """

    kinds: tuple[str, ...]
    share: float
    x: float
    y: float
    zoom: float
    support: str | tuple[str, ...]
    preposition: str = "on"
    only_with: str = ""


@dataclass(frozen=True, slots=True)
class Family:
    """Photos with the same surroundings. extras: optional surroundings and the share of photos that have them."""

    pictures: int
    surroundings: Callable[[Painter, int, Set[str]], None]
    slots: tuple[Slot, ...]
    extras: tuple[tuple[str, float], ...] = ()


_STREET = (
    Slot(("tree",), 0.65, 34, 154, 0.95, "sidewalk"),
    Slot(("bench", "bench", "plant"), 0.8, 78, 158, 0.85, "sidewalk"),
    Slot(("man", "woman"), 0.7, 122, 165, 0.95, "sidewalk"),
    Slot(("umbrella",), 0.5, 13, -34, 0.75, ("man", "woman"), "over"),
    Slot(("dog", "fire hydrant", "suitcase", "cat"), 0.85, 166, 169, 0.95, "sidewalk"),
    Slot(("bicycle",), 0.6, 212, 168, 0.95, "sidewalk"),
    Slot(("bird", "backpack"), 0.6, 256, 170, 1.0, "sidewalk"),
    Slot(("traffic light", "stop sign"), 0.8, 292, 162, 0.95, "sidewalk"),
    Slot(("car",), 0.7, 64, 206, 1.0, "road"),
    Slot(("bus", "truck"), 0.8, 226, 232, 0.95, "road"),
)
_PARK = (
    Slot(("boat",), 0.6, 78, 114, 0.8, "lake"),
    Slot(("kite",), 0.5, 262, 80, 0.86, "sky", "in"),
    Slot(("bench",), 0.6, 52, 172, 0.95, "grass"),
    Slot(("bird",), 0.5, 198, 158, 1.0, "grass"),
    Slot(("man", "woman"), 0.7, 116, 190, 0.95, "grass"),
    Slot(("umbrella",), 0.3, 13, -34, 0.75, ("man", "woman"), "over"),
    Slot(("dog", "cat"), 0.8, 160, 206, 0.95, "grass"),
    Slot(("bicycle",), 0.5, 280, 182, 0.95, "grass"),
    Slot(("flowers",), 0.55, 38, 226, 1.0, "grass"),
    Slot(("ball",), 0.55, 104, 232, 1.15, "grass"),
    Slot(("rock", "backpack", "towel"), 0.75, 276, 224, 1.0, "grass"),
)
_BEACH = (
    Slot(("boat",), 0.6, 238, 118, 0.8, "sea"),
    Slot(("kite",), 0.55, 34, 82, 0.86, "sky", "in"),
    Slot(("tree",), 0.45, 292, 166, 0.9, "sand"),
    Slot(("rock", "suitcase", "backpack"), 0.7, 28, 176, 0.95, "sand"),
    Slot(("umbrella",), 0.7, 98, 196, 1.15, "sand"),
    Slot(("chair",), 0.5, 121, 204, 0.78, "sand"),
    Slot(("man", "woman"), 0.7, 180, 188, 0.95, "sand"),
    Slot(("surfboard",), 0.6, 224, 190, 0.85, "sand"),
    Slot(("towel",), 0.55, 136, 228, 1.0, "sand"),
    Slot(("ball",), 0.6, 42, 228, 1.15, "sand"),
    Slot(("dog", "bird"), 0.8, 268, 226, 1.0, "sand"),
)
_FARM = (
    Slot(("house",), 0.7, 62, 130, 0.9, "grass"),
    Slot(("tree",), 0.7, 272, 132, 0.9, "grass"),
    Slot(("fence",), 0.6, 160, 152, 1.0, "grass"),
    Slot(("flowers",), 0.55, 196, 154, 1.1, "grass"),
    Slot(("horse",), 0.55, 156, 184, 0.95, "grass"),
    Slot(("cow",), 0.6, 50, 196, 0.95, "grass"),
    Slot(("sheep",), 0.6, 230, 186, 0.95, "grass"),
    Slot(("man", "woman"), 0.65, 110, 206, 0.95, "grass"),
    Slot(("bicycle", "rock"), 0.55, 288, 190, 0.9, "grass"),
    Slot(("truck", "car"), 0.8, 246, 230, 0.85, "road", only_with="road"),
    Slot(("dog", "cat", "bird"), 0.8, 160, 224, 1.0, "road", only_with="road"),
)
_KITCHEN = (
    Slot(("window",), 0.6, 158, 92, 1.0, "wall"),
    Slot(("clock",), 0.5, 224, 60, 1.0, "wall"),
    Slot(("refrigerator",), 0.65, 286, 224, 1.0, "floor"),
    Slot(("oven",), 0.6, 126, 214, 0.93, "floor"),
    Slot(("microwave",), 0.6, 36, 138, 0.95, "counter"),
    Slot(("bottle",), 0.5, 82, 138, 0.95, "counter"),
    Slot(("cup",), 0.55, 112, 139, 0.95, "counter"),
    Slot(("sink",), 0.6, 158, 139, 0.8, "counter"),
    Slot(("bowl", "banana", "pizza"), 0.8, 207, 141, 1.1, "counter"),
    Slot(("apple",), 0.5, 240, 140, 1.15, "counter"),
    Slot(("dog", "cat"), 0.75, 60, 236, 1.05, "floor"),
    Slot(("chair",), 0.5, 206, 236, 1.0, "floor"),
)
_LIVING_ROOM = (
    Slot(("window",), 0.6, 62, 84, 1.0, "wall"),
    Slot(("curtain",), 0.55, 22, 118, 1.0, "wall"),
    Slot(("clock",), 0.55, 142, 62, 1.1, "wall"),
    Slot(("lamp",), 0.55, 34, 182, 0.95, "floor"),
    Slot(("couch", "couch", "bed"), 0.8, 142, 192, 1.05, "floor"),
    Slot(("pillow",), 0.5, -38, 2, 1.05, ("couch",)),
    Slot(("cat", "teddy bear"), 0.75, 26, 2, 0.95, ("couch", "bed")),
    Slot(("table",), 0.75, 266, 208, 0.85, "floor"),
    Slot(("television", "vase", "laptop"), 0.9, 2, 6, 0.85, ("table",)),
    Slot(("rug",), 0.65, 146, 237, 1.0, "floor"),
    Slot(("dog", "cat"), 0.6, -44, -9, 0.95, ("rug",)),
    Slot(("ball", "book", "backpack"), 0.8, 190, 232, 1.12, "floor"),
    Slot(("plant", "plant", "chair"), 0.75, 28, 226, 1.05, "floor"),
    Slot(("man", "woman"), 0.4, 236, 226, 1.35, "floor"),
)
_SNOWED_IN = ("car", "house", "tree", "bench", "truck", "bicycle", "fire hydrant", "stop sign", "bus", "traffic light")
_IN_FRONT = ("dog", "bird", "man", "backpack", "woman", "cat", "suitcase", "rock", "umbrella")
_SNOW = (Slot(_SNOWED_IN, 1.0, 98, 190, 1.3, "snow"), Slot(_IN_FRONT, 1.0, 236, 206, 1.25, "snow"))
_LAWN = (
    Slot(("horse", "cow", "sheep", "couch", "tree", "chair", "bed", "house"), 1.0, 104, 184, 1.2, "grass"),
    Slot(("chair", "umbrella", "surfboard", "bicycle", "plant", "bench"), 0.6, 252, 190, 1.15, "grass"),
    Slot(("ball", "teddy bear", "dog", "book", "cat", "cake", "towel"), 0.8, 190, 226, 1.2, "grass"),
)
_TABLETOP = (
    Slot(("vase", "clock", "bottle", "laptop", "plant", "television"), 1.0, 76, 196, 1.5, "table"),
    Slot(("cup", "bowl", "teddy bear", "book", "cake", "ball", "box"), 1.0, 176, 206, 1.5, "table"),
    Slot(("apple", "banana", "pizza", "cup", "book", "bowl"), 0.8, 266, 214, 1.4, "table"),
)

FAMILIES: dict[str, Family] = {
    "street": Family(24, surroundings.street, _STREET),
    "park": Family(24, surroundings.park, _PARK, (("mountains", 0.5), ("path", 0.5))),
    "beach": Family(24, surroundings.beach, _BEACH, (("mountains", 0.5),)),
    "farm": Family(24, surroundings.farm, _FARM, (("mountains", 0.5), ("road", 0.65))),
    "kitchen": Family(24, surroundings.kitchen, _KITCHEN, (("wood", 0.5),)),
    "living room": Family(24, surroundings.living_room, _LIVING_ROOM),
    "snow": Family(20, surroundings.snow, _SNOW),
    "lawn": Family(18, surroundings.lawn, _LAWN),
    "tabletop": Family(26, surroundings.tabletop, _TABLETOP),
}


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
