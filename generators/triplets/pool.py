"""What triplets are drawn from: relations grouped by subject and object, and which subjects may be drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from twinset.generators.triplets.draws import Codes, Floats, distinct, first_of_each, numbered
from twinset.generators.triplets.ratings import UNKNOWN, Ratings
from twinset.generators.triplets.relations import Relations, identity


class Pool:
    """Relations sorted by subject, then object, then place in the stage; a "pair" is a subject with an object.

    Of each relation: row, its number in the stage; image, equal for relations of one image; pair; the two ratings. Of
    each pair: start and count, its relations; subject, object. Of each subject: pairs_start and pairs_count;
    relations_count; images, how many it is in; eligible, whether it can be drawn. Of each object: object_start and
    object_count, its relations in ``by_object``, which sorts relations by object, then subject. funnel: what is left of
    the captions at each step.
    """

    def __init__(
        self,
        rules: str,
        frame: pl.DataFrame,
        ratings: tuple[Floats, Floats],
        min_images: int,
        funnel: dict[str, int],
        seen: Codes | None = None,
    ) -> None:
        """Group relations.

        Args:
            rules: as `generators.triplets.source.Triplets`.
            frame: ``row``, ``subject`` and ``object`` as numbers in the order of the words, and ``image``.
            ratings: of each relation, the ratings of its subject and its object.
            min_images: how many images a subject needs; it needs two objects besides (GeneCIS, as released: 5 images).
            funnel: steps so far.
            seen: by number of the subject, images that count for ``min_images``; those of the pool where absent.
        """
        self.rules = rules
        words = frame["subject"].to_numpy().astype(np.int64) << 32 | frame["object"].to_numpy()
        self.order = np.argsort(words, kind="stable")
        words = words[self.order]
        self.row = frame["row"].to_numpy()[self.order]
        self.image = numbered(frame["image"].to_numpy().view(np.int64))[self.order]
        self.subject_rating, self.object_rating = (rating[self.order] for rating in ratings)
        self.start, self.pair, self.count = _groups(words)
        of_pair = words[self.start]
        self.pairs_start, self.subject, self.pairs_count = _groups(of_pair >> 32)
        self.object = numbered(of_pair & 0xFFFFFFFF)
        subject = self.subject[self.pair]
        self.relations_count = np.bincount(subject).astype(np.int32)
        self.images = np.bincount(distinct(subject.astype(np.int64) << 32 | self.image) >> 32).astype(np.int32)
        images = self.images if seen is None else seen[of_pair[self.pairs_start] >> 32]
        self.eligible = (images >= min_images) & (self.pairs_count >= 2)
        self.by_object = np.argsort(self.object[self.pair], kind="stable").astype(np.int32)
        self.object_start, _, self.object_count = _groups(self.object[self.pair][self.by_object])
        self.funnel = {
            **funnel,
            "subjects": len(self.images),
            "eligible subjects": int(self.eligible.sum()),
            "relations of eligible subjects": int(self.relations_count[self.eligible].sum()),
        }

    def __len__(self) -> int:
        return len(self.row)

    @property
    def nothing(self) -> str:
        """What is said where no triplet can be mined: what is left at each step."""
        steps = ", ".join(f"{count} {step}" for step, count in self.funnel.items())
        return f"no triplet can be mined from these captions under the {self.rules} rules: {steps}"


def published_pool(relations: Relations, ratings: Ratings, min_images: int) -> Pool:
    """Every relation; words are the same where they are written the same, and unrated ones count as -1."""
    sides = ("subject", "object")
    every = pl.concat([relations.index.select(word=side) for side in sides]).unique()
    words = every.collect(engine="streaming")["word"].sort()
    numbers = [pl.col(side).cast(pl.Enum(words)).to_physical().cast(pl.Int32) for side in sides]
    frame = (
        relations.index.select(*numbers, image=identity("image_id"))
        .collect(engine="streaming")
        .with_row_index("row")
        .with_columns(pl.col("row").cast(pl.Int32))
    )
    of_word = np.array([ratings.published.get(word, UNKNOWN) for word in words.to_list()])
    rated = of_word[frame["subject"].to_numpy()], of_word[frame["object"].to_numpy()]
    funnel = {
        "captions": relations.captions,
        "captions with relations": relations.begins().select(pl.len()).collect(engine="streaming").item(),
        "relations": frame.height,
        "relations with both words rated": int(((rated[0] > 0) & (rated[1] > 0)).sum()),
    }
    return Pool("published", frame, rated, min_images, funnel)


def _groups(ordered: NDArray[Any]) -> tuple[Codes, Codes, Codes]:
    """Of sorted values: where each different one begins, which of them each value is, and how often each comes."""
    new = first_of_each(ordered)
    start = np.flatnonzero(new).astype(np.int32)
    which = np.cumsum(new, dtype=np.int32) - 1
    return start, which, np.diff(start, append=np.int32(len(ordered))).astype(np.int32)
