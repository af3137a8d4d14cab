"""What one caption of a pair says and the other does not: objects, or attributes of objects."""

from collections.abc import Sequence
from dataclasses import dataclass

from twinset.generators.image_verification.questions import ImageQuestion, distinguishing

SIDES = (0, 1)
#: First words of attributes that say where something is, which a box by itself does not show.
_PLACES = frozenset(("in", "on", "at", "to", "by", "near", "behind", "under", "above", "below"))


@dataclass(frozen=True, slots=True)
class Label:
    """What a box shows in one image. caption: 0 or 1. text: such as ``red car``. question: whether it is there."""

    caption: int
    text: str
    question: str


def labels_of(asked: Sequence[Sequence[ImageQuestion]]) -> list[Label]:
    """Objects that one caption alone names; attributes where no object differs. asked: questions of both captions."""
    for kind in ("entity", "attribute"):
        found = [
            Label(side, " ".join(reversed(one.words)), one.question)
            for side in SIDES
            for one in asked[side]
            if one.kind == kind and one.meaning in distinguishing(asked[side], asked[1 - side])
            if kind == "entity" or one.words[1].split()[0] not in _PLACES
        ]
        if found:
            return found
    return []
