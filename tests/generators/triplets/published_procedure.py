"""The published mining procedure, one triplet at a time: slow, and the measure of what is fast.

What GeneCIS's released code does, told step by step: dictionaries of subjects and objects, rows of a table, and a loop
that begins again until the six words of a triplet are concrete enough.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from twinset.generators.triplets.relations import Relations

TARGET_DRAWS = 101
Drawn = tuple[int, int, int]  # rows of the table: reference, target, distractor


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
        self.rows, self.ratings, self.threshold = table if rows is None else rows, ratings, threshold
        self.random = np.random.RandomState(seed)
        self.rows_of_subject = defaultdict[str, list[int]](list)
        self.rows_of_pair = defaultdict[str, dict[str, list[int]]](dict)
        self.rows_of_object = defaultdict[str, list[int]](list)
        images = defaultdict[str, set[str]](set)
        for row, (image, subject, _, object_) in enumerate(table):
            self.rows_of_subject[subject].append(row)
            self.rows_of_pair[subject].setdefault(object_, []).append(row)
            self.rows_of_object[object_].append(row)
            images[subject].add(image)
        many = {name: len(shown) for name, shown in images.items() if len(shown) >= min_images}
        self.subjects = [name for name in many if len(self.rows_of_pair[name]) >= 2]
        numbers = np.array([many[subject] for subject in self.subjects], dtype=float)
        self.chances = numbers / numbers.sum()

    def triplet(self) -> Drawn:
        """One triplet whose mean rating exceeds the threshold."""
        while self.concreteness(drawn := self.draw()) <= self.threshold:
            pass
        return drawn

    def draw(self) -> Drawn:
        """One triplet of any concreteness."""
        subject = self.random.choice(self.subjects, p=self.chances)
        reference = int(self.random.choice(self.rows_of_subject[subject]))
        first = self.rows[reference]
        for _ in range(TARGET_DRAWS):
            object_ = self.random.choice(list(self.rows_of_pair[subject]))
            target = int(self.random.choice(self.rows_of_pair[subject][object_]))
            second = self.rows[target]
            if second.object != first.object and second.image != first.image:
                break
        return reference, target, int(self.random.choice(self.rows_of_object[object_]))

    def concreteness(self, drawn: Drawn) -> float:
        words = [word for row in drawn for word in (self.rows[row].subject, self.rows[row].object)]
        return float(np.mean([self.ratings.get(word, -1) for word in words]))
