"""The rules of GeneCIS as its released code has them, weaknesses too."""

from collections.abc import Mapping

import numpy as np
import polars as pl
from numpy.typing import NDArray

from twinset.contracts.kinds.triplet import PARTS
from twinset.generators.triplets.draws import U64, below, uniform
from twinset.generators.triplets.mining import Miner
from twinset.generators.triplets.pool import Pool
from twinset.generators.triplets.relations import Relations, identity

DRAWS = 101  # of a target, the last of which is taken as it is
PUBLISHED_WORDS = 6
UNKNOWN = -1.0  # rating of a word that nobody rated
LATE, PUBLISHED_DISTRACTOR = 3, 4  # slots of random numbers
NEGLIGIBLE = 1e-9  # a chance; references that only so can pass are left out


class PublishedRules(Miner):
    """Samples with the published procedure's distribution, exactly, in a fraction of its draws.

    Target and reference differ in object and image, but after 101 draws whatever came last is taken. The distractor is
    any relation with the target's object: of the reference's image, of the target's, or the target itself. The score is
    the mean rating of six words, subject and object of all three, where an unrated word counts as -1.

    Let p be the chance of a target t in one draw, and q the chance that one draw is *alike*, which is that its object
    or its image is the reference's. Up to n = 101 targets are drawn until one is not alike, and the last is taken as it
    is. So t is the outcome with the chance

        t not alike:    p * (1 + q + ... + q^(n-1)) = p * a      some alike ones, then t
        t alike:        p * q^(n-1)                 = p * a * l  n - 1 alike ones, then t; l = q^(n-1) / a

    Here one target is proposed, with p. The factor a depends on the reference alone and is multiplied into its weight;
    a target that is alike is accepted with the chance l.
    """

    def __init__(self, relations: Relations, ratings: Mapping[str, float], threshold: float, min_images: int) -> None:
        """Raises `WrongUse` when nothing can pass. ratings: as `generators.triplets.ratings.with_plurals`."""
        self.relations, self.threshold = relations, threshold
        self.pool = pool = published_pool(relations, ratings, min_images)
        # A triplet passes when the ratings of reference (rs + ro), target (ts + to) and distractor (ds + do) sum up to
        # more than 6 * threshold. The distractor has the target's object, do = to. So with the best distractor, a
        # target's pair adds at most gain = (ts + to) + to + max ds, where a reference needs 6 * threshold - (rs + ro).
        most = pool.relations.group_by("object").agg(pl.max("subject_rating"))
        most = pool.pairs.select("object").join(most, on="object", how="left", maintain_order="left")
        best = pool.relations[pool.pairs["start"]]
        gain = best["rating"] + best["object_rating"] + most["subject_rating"]
        self._of_object, self._places = pool.by_object()
        q = _chance_alike(pool)
        power, a = np.ones_like(q), np.ones_like(q)
        for _ in range(DRAWS - 1):
            power *= q
            a += power
        late = power / a
        pool.weigh(gain, a, late > NEGLIGIBLE, PUBLISHED_WORDS * threshold)
        self._late = late[pool.references]

    def propose(self, states: U64) -> pl.DataFrame:
        place, reference, target = self.pool.sample(states)
        given, asked = self.pool.relations[reference], self.pool.relations[target]
        alike = (given["pair"] == asked["pair"]) | (given["image"] == asked["image"])
        start, count, *_ = self._places[asked["pair"]].to_numpy().T
        distractor = self._of_object[start + below(states, PUBLISHED_DISTRACTOR, count)]
        three = given, asked, self.pool.relations[distractor]
        ratings = [rows[name].to_numpy() for rows in three for name in ("subject_rating", "object_rating")]
        mean = sum(ratings[1:], ratings[0]) / PUBLISHED_WORDS  # rounds as numpy does with those of one triplet
        passes = (mean > self.threshold) & (~alike.to_numpy() | (uniform(states, LATE) < self._late[place]))
        parts = dict(zip(PARTS, (rows["row"] for rows in three), strict=True))
        return pl.DataFrame({"passes": passes, **parts, "concreteness": mean})


def published_pool(relations: Relations, ratings: Mapping[str, float], min_images: int) -> Pool:
    """Every relation; words are the same where they are written the same, and unrated ones count as -1."""
    sides = ("subject", "object")
    every = pl.concat([relations.index.select(word=side) for side in sides]).unique()
    words = every.collect(engine="streaming")["word"].sort()
    of_word = pl.Series([ratings.get(word, UNKNOWN) for word in words])
    numbers = {side: pl.col(side).cast(pl.Enum(words)).to_physical() for side in sides}
    frame = relations.index.select("row", **numbers, image=identity("image_id")).collect(engine="streaming")
    frame = frame.with_columns(of_word.gather(frame[side]).alias(f"{side}_rating") for side in sides)
    frame = frame.with_columns(rating=pl.col("subject_rating") + pl.col("object_rating"))
    return Pool(frame, min_images, {"captions": relations.captions, "relations": frame.height})


def _chance_alike(pool: Pool) -> NDArray[np.float64]:
    """q of each relation as a reference: the chance that a target drawn for it has its object or its image.

    One of the subject's k objects is drawn evenly, then one of its relations evenly. The reference's own object always
    counts; of any other, the share of its relations that are of the reference's image:

        q = (1 + sum over other objects o of n(o, image) / n(o)) / k
    """
    subject, pair = pool.relations["subject"].to_numpy(), pool.relations["pair"].to_numpy()
    share = 1.0 / pool.pairs["count"].to_numpy()[pair]  # 1 / n(o), of each relation

    def summed(name: str) -> NDArray[np.float64]:
        """Of each relation, the sum of the shares of all with the same image and subject, or pair."""
        number = pool.relations.select(pl.struct(name, "image").rank("dense")).to_series().to_numpy()
        return np.asarray(np.bincount(number, share)[number])  # adds up in order, whatever the threads

    # Over the relations of subject and image it is the sum over all objects; over those of pair and image, the term of
    # the reference's own object.
    chance = (1 + summed("subject") - summed("pair")) / pool.subjects["pairs"].to_numpy()[subject]
    return np.asarray(np.minimum(chance, 1.0))
