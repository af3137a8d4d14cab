"""Mined triplets as records with their words, captions and places of images."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from generators.scene_graphs.generator import TEXTS
from generators.triplets.graphs import Codes, Relations
from generators.triplets.mining import TripletTable
from generators.triplets.strict import NONE

BLOCK = 1 << 14  # triplets whose texts are held at once


@dataclass(frozen=True, slots=True)
class Mention:
    """One relation where it is said.

    subject, predicate, object: surface words. caption_id, image_id: of the caption. image: where the image is, as the
    captions' source says it; may be empty.
    """

    subject: str
    predicate: str
    object: str
    caption_id: str
    image_id: str
    caption: str
    image: str

    @property
    def condition(self) -> str:
        """What a triplet asks for whose target this is (GeneCIS, section 5.2): predicate and object."""
        return f"{self.predicate} {self.object}"


#: Number of its draw, mean rating, and reference, target and distractor, which is None where none was asked for.
Mined = tuple[int, float, tuple[Mention, Mention, Mention | None]]


def rows(relations: Relations, table: TripletTable) -> Iterator[Mined]:
    """The triplets of a table, in its order; memory holds the texts of some thousands."""
    for start in range(0, len(table), BLOCK):
        block = slice(start, start + BLOCK)
        sides = [_mentions(relations, column[block]) for column in (table.reference, table.target, table.distractor)]
        numbers, means = table.number[block].tolist(), table.concreteness[block].tolist()
        for number, mean, reference, target, distractor in zip(numbers, means, *sides, strict=True):
            assert reference is not None and target is not None
            yield number, mean, (reference, target, distractor)


def _mentions(relations: Relations, relation: Codes) -> list[Mention | None]:
    words = relations.words
    texts = relations.texts.take(pa.array(relations.caption[relation]))
    columns = [
        [words[code] for code in codes[relation].tolist()]
        for codes in (relations.subject, relations.predicate, relations.object)
    ]
    columns += [texts[name].to_pylist() for name in TEXTS]
    return [None if at == NONE else Mention(*fields) for at, *fields in zip(relation.tolist(), *columns, strict=True)]
