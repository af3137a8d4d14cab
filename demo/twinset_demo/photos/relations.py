"""Relations between the things of a photo, and how captions say them."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from twinset_demo.photos.painter import Photo, Segment, Thing
from twinset_demo.photos.scenes import Scene

CAPTIONS = 3  # a picture
VISIBLE = 300  # pixels of a thing that captions speak of
_GAP = 46  # pixels at most between two things that are beside each other
_LEVEL = 16  # rows at most between their feet
_CLOTHES = {"man": "shirt", "woman": "dress"}


@dataclass(frozen=True, slots=True)
class Relation:
    """One true relation. subject, object: nouns; said: the caption."""

    subject: str
    preposition: str
    object: str
    said: str


def captions(scene: Scene, photo: Photo) -> list[Relation]:
    """At most `CAPTIONS` relations of a photo, of different subjects as far as there are."""
    found = list(relations(photo))
    random = Random(f"captions {scene.image_id}")
    random.shuffle(found)
    first = {relation.subject: relation for relation in reversed(found)}
    leading = [relation for relation in found if first[relation.subject] is relation]
    return list(dict.fromkeys([*leading, *found]))[:CAPTIONS]


def relations(photo: Photo) -> Iterator[Relation]:
    """All relations of a photo."""
    shown = [
        (segment, segment.thing)
        for segment in photo.segments
        if segment.thing is not None and int((photo.labels == segment.number).sum()) >= VISIBLE
    ]
    nouns = {segment.noun for segment, _ in shown}
    for segment, thing in shown:
        if thing.kind in _CLOTHES:
            clothes = _CLOTHES[thing.kind]
            yield Relation(thing.kind, "in", clothes, f"a {thing.kind} in {_article(f'{thing.look.color} {clothes}')}")
        if thing.preposition == "over":
            yield _said(thing.support, f"a {thing.support}", "under", thing.kind, _phrase(thing))
        elif thing.support in nouns:
            carrier = next(one for other, one in shown if other.noun == thing.support)
            yield _said(thing.kind, _phrase(thing), thing.preposition, carrier.kind, _phrase(carrier))
        elif any(other.noun == thing.support for other in photo.segments):
            yield _said(thing.kind, _phrase(thing), thing.preposition, thing.support, f"the {thing.support}")
        if thing.support == "sidewalk":
            yield _said(thing.kind, _phrase(thing), "in front of", "building", "a building")
        for other, another in shown:
            if segment.number != other.number and beside(photo, segment, other):
                yield _said(thing.kind, _phrase(thing), "beside", another.kind, _phrase(another))
            if shelters(photo, other, segment):
                yield _said(thing.kind, _phrase(thing), "under", another.kind, _phrase(another))
        if thing.kind == "house" and "fence" in nouns:
            fence = next(one for other, one in shown if other.noun == "fence")
            yield _said("house", _phrase(thing), "behind", "fence", _phrase(fence))


def beside(photo: Photo, one: Segment, other: Segment) -> bool:
    """Whether two things stand on the same, on one level, with a small gap between them."""
    if one.thing is None or other.thing is None or one.thing.support != other.thing.support:
        return False
    if "fence" in (one.noun, other.noun) or one.thing.support in ("sky", "wall", "man", "woman"):
        return False
    (left, _, width, _), (other_left, _, other_width, _) = photo.extents[one.number], photo.extents[other.number]
    gap = max(left, other_left) - min(left + width, other_left + other_width)
    return 0 <= gap <= _GAP and abs(one.thing.where[1] - other.thing.where[1]) <= _LEVEL


def shelters(photo: Photo, umbrella: Segment, other: Segment) -> bool:
    """Whether a thing stands under an open umbrella that stands too."""
    roof, below = umbrella.thing, other.thing
    if roof is None or below is None or roof.look.state != "open" or roof.kind != "umbrella" or below is roof:
        return False
    if roof.support in _CLOTHES or below.support != roof.support:
        return False
    left, top, width, height = photo.extents[umbrella.number]
    other_left, other_top, other_width, _ = photo.extents[other.number]
    inside = left <= other_left and other_left + other_width <= left + width
    return inside and other_top > top + height * 0.3 and below.where[1] <= top + height + _LEVEL


def _said(subject: str, whose: str, preposition: str, object_: str, what: str) -> Relation:
    return Relation(subject, preposition, object_, f"{whose} {preposition} {what}")


def _phrase(thing: Thing) -> str:
    """As in "a red car" or "a striped towel"."""
    look = thing.look
    adjective = look.pattern if look.pattern in ("striped", "dotted") else look.color
    if thing.kind in _CLOTHES:
        return f"a {thing.kind}"
    if thing.kind == "stop sign":  # "red stop sign" is read as somebody who stops
        adjective = ""
    words = f"{adjective} {thing.kind}".strip()
    return words if thing.kind == "flowers" else _article(words)


def _article(words: str) -> str:
    return f"{'an' if words[0] in 'aeiou' else 'a'} {words}"
