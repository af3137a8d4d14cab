"""The published mining procedure, one triplet at a time: slow, and the measure of what is fast.

What GeneCIS's released code does, told step by step: dictionaries of subjects and objects, rows of a table, and a loop
that begins again until the six words of a triplet are concrete enough.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from twinset.generators.triplets.relations import Relations

TARGET_DRAWS = 101


class Drawn(NamedTuple):
    """Rows of the table."""

    reference: int
    target: int
    distractor: int


class Said(NamedTuple):
    """A row of the table."""

    image: str
    subject: str
    predicate: str
    object: str


def table_of(relations: Relations) -> list[Said]:
    """A row a relation."""
    rows = relations.index.select("image_id", "subject", "predicate", "object").collect()
    return [Said(*row) for row in rows.iter_rows()]


class PublishedProcedure:
    """rows: what a row of the table is looked up in, if not the table itself. ratings: `Ratings.published`."""

    def __init__(
        self,
        table: Sequence[Said],
        ratings: Mapping[str, float],
        threshold: float,
        min_images: int,
        seed: int,
        rows: Any = None,
    ) -> None:
        self.rows = table if rows is None else rows
        self.ratings = ratings
        self.threshold = threshold
        self.random = np.random.RandomState(seed)
        self.rows_of_subject: dict[str, list[int]] = {}
        self.rows_of_pair: dict[str, dict[str, list[int]]] = {}
        self.rows_of_object: dict[str, list[int]] = {}
        images: dict[str, set[str]] = {}
        for row, (image, subject, _, object_) in enumerate(table):
            self.rows_of_subject.setdefault(subject, []).append(row)
            self.rows_of_pair.setdefault(subject, {}).setdefault(object_, []).append(row)
            self.rows_of_object.setdefault(object_, []).append(row)
            images.setdefault(subject, set()).add(image)
        self.subjects = [
            subject
            for subject, found in images.items()
            if len(found) >= min_images and len(self.rows_of_pair[subject]) >= 2
        ]
        numbers = np.array([len(images[subject]) for subject in self.subjects], dtype=float)
        self.chances = numbers / numbers.sum()

    def triplet(self) -> Drawn:
        """One triplet whose mean rating exceeds the threshold."""
        while True:
            drawn = self.draw()
            if self.concreteness(drawn) > self.threshold:
                return drawn

    def draw(self) -> Drawn:
        """One triplet of any concreteness."""
        subject = self.random.choice(self.subjects, p=self.chances)
        reference = int(self.random.choice(self.rows_of_subject[subject]))
        said = self.rows[reference]
        for _ in range(TARGET_DRAWS):
            object_ = self.random.choice(list(self.rows_of_pair[subject]))
            target = int(self.random.choice(self.rows_of_pair[subject][object_]))
            other = self.rows[target]
            if other.object != said.object and other.image != said.image:
                break
        return Drawn(reference, target, int(self.random.choice(self.rows_of_object[object_])))

    def concreteness(self, drawn: Drawn) -> float:
        found = []
        for row in drawn:
            said = self.rows[row]
            found += [self.ratings.get(said.subject, -1), self.ratings.get(said.object, -1)]
        return float(np.mean(found))
