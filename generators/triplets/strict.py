"""The strict rules: those of GeneCIS's paper (sections 5.2 and 6.2), and no pairs that teach the wrong thing.

Relations are those of `generators.triplets.strict_relations`. All four words of reference and target are rated, and
their mean exceeds the threshold. Both subjects are singular, or both plural. No caption of the reference's photo has
the target's object in it, in whatever sentence and under whatever name, so that it never satisfies the condition:
object and photo differ always. What the captions leave out is estimated (`generators.triplets.mentions`): no target has
an object that the reference may well show unsaid. Where this can be estimated, and the target's photo has several
captions, two of them name the subject and two the object, so that an error in one caption makes no condition. Where it
cannot, no target has an object that is worn, nor a place where the reference's relation does not say one. No caption of
the distractor's photo has the target's subject in it: it would be as right as the target. The distractor's own two
words pass the threshold too, which keeps out pronouns: they may stand for the target's subject.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from twinset.contracts.errors import WrongUse
from twinset.generators.triplets.draws import NONE, U64, Bools, Codes, below, found_in
from twinset.generators.triplets.mentions import Mentions, Nouns, mentions
from twinset.generators.triplets.pool import Pool
from twinset.generators.triplets.ratings import Ratings
from twinset.generators.triplets.references import NEVER, Proposals, References
from twinset.generators.triplets.relations import Relations
from twinset.generators.triplets.strict_relations import (
    CLASSES,
    LEMMAS,
    PHRASES,
    VERB,
    among,
    both_rated,
    judged,
    last,
    low,
    photos_of,
)

Balance = Literal["images", "subjects"]
WORDS = 4
DISTRACTOR = 3  # slot of random numbers
EXACT = 1e-9  # sums that differ by less are equal: ratings have two decimals
RELIABLE = 0.7  # odds up to which an object may be a target's: three of five photos that show it say so


class StrictRules:
    """Draws as the published procedure's first ones, of which every one that breaks a rule is drawn again.

    estimated: whether it is known how reliably captions name things. reliable: of each pair of the pool, whether its
    object is named so reliably that it may be a target.
    """

    def __init__(
        self,
        relations: Relations,
        ratings: Ratings,
        threshold: float,
        min_images: int,
        min_support: int = 2,
        max_unsaid: float = 1.0,
        balance: Balance = "images",
        distractors: bool = False,
    ) -> None:
        """Prepare the relations; the arguments are those of `generators.triplets.source.Triplets`.

        Raises `WrongUse` when nothing can pass.
        """
        frame, funnel = judged(relations, ratings, min_support)
        self.pool = pool = _pool(relations, ratings, frame, min_images, funnel)
        if balance == "subjects":
            pool.images = np.ones_like(pool.images)
        self.threshold, self.distractors = threshold, distractors
        frame = frame[pool.order].with_columns(photo_number=pl.Series(pool.image))
        # Photos of the web share captions, and a photo has several of its own.
        self.texts = frame["text"].to_numpy()
        self.number = frame["subject_number"].cast(pl.Enum(["", "singular", "plural"])).to_physical().to_numpy()
        nouns = Nouns(frame.select(pl.concat([pl.col(name) for name in LEMMAS]).unique()).to_series())
        self._nouns = nouns
        self.subject, self.object = (
            frame[name].replace_strict(nouns.of_lemma, return_dtype=pl.Int64).to_numpy() for name in LEMMAS
        )
        named = mentions(relations, frame["image"], nouns)
        self.estimated = named.estimable
        photos = frame.select("image", "photo_number").unique()
        keys = pl.col("photo_number").cast(pl.Int64) * 2**32 + pl.col("noun")
        of_photo = named.of_photo.join(photos, on="image").select("captions", "image", key=keys).sort("key")
        self._says = of_photo["key"].to_numpy()
        self._confirmed = np.ones(len(pool), dtype=np.bool_)
        if self.estimated:  # a few photos may have captions of one fact each, which need not repeat each other
            twice = of_photo.filter(pl.col("captions") > 1)["key"].to_numpy()
            several = frame["image"].is_in(named.several["image"].implode()).to_numpy()
            for side in (self.subject, self.object):
                self._confirmed &= ~several | found_in(twice, _keys(pool.image, side))
        worn = frame.select(among(last("object_lemma"), "worn")).to_series().to_numpy()
        self._placed = frame.select(_says_where()).to_series().to_numpy() & ~worn
        self._guarded = not self.estimated and max_unsaid < 1
        self.reliable = self._said_reliably(named, max_unsaid, worn)
        self._rating = pool.subject_rating + pool.object_rating
        # A triplet passes when the ratings of reference and target, two words each, sum up to more than 4 * threshold.
        gain = np.maximum.reduceat(self._rating, pool.start)
        if distractors:
            self._others = _OtherSubjects(pool, self._rating > 2 * threshold + EXACT)
            gain = np.where(self._others.count > 0, gain, NEVER)
        gain = np.where(self.reliable, gain, NEVER)
        alike = np.zeros(len(pool), dtype=np.bool_)
        self.references = References(pool, gain, np.ones(len(pool)), alike, WORDS, threshold, EXACT)

    def propose(self, states: U64) -> Proposals:
        """One draw of a triplet a state; `NONE` stands for the distractor where none is asked for."""
        _, reference, pair, target = self.references.sample(states)
        distractor = np.full(len(reference), NONE, dtype=np.int32)
        if self.distractors:
            distractor = self._others.at(pair, below(states, DISTRACTOR, self._others.count[pair]))
        total = self._rating[reference] + self._rating[target]
        passes = total > WORDS * self.threshold + EXACT
        passes &= (self.number[reference] == self.number[target]) & self._confirmed[target]
        passes &= ~self._named(reference, self.object[target])
        if self._guarded:
            passes &= self._placed[reference] | ~self._placed[target]
        if self.distractors:
            passes &= ~self._named(distractor, self.subject[target])
        return Proposals(passes, reference, target, distractor, total / WORDS)

    def _named(self, relations: Codes, nouns: NDArray[np.int64]) -> Bools:
        """Whether some caption of each relation's photo names or implies a noun."""
        return found_in(self._says, _keys(self.pool.image[relations], nouns))

    def _said_reliably(self, named: Mentions, max_unsaid: float, worn: Bools) -> Bools:
        """Of each pair, whether captions that leave out its object hardly ever stand for a photo that shows it. Raises
        `WrongUse` when no pair of a subject that can be drawn is so."""
        pool = self.pool
        if max_unsaid == 1:
            return np.ones(len(pool.start), dtype=np.bool_)
        reliable = ~worn[pool.start]
        if self.estimated:
            pairs = {"subject": self.subject[pool.start], "object": self.object[pool.start]}
            unsaid = named.unsaid(pl.DataFrame(pairs).cast(pl.Int32))
            reliable = (
                unsaid.select((pl.col("share") <= max_unsaid) & (pl.col("odds") <= RELIABLE)).to_series().to_numpy()
            )
        if not (reliable & pool.eligible[pool.subject]).any() and pool.eligible.any():
            raise WrongUse(
                f"{pool.nothing}; of each of their objects, captions leave out too much to tell which images do not "
                f"show it (max_unsaid {max_unsaid:g}): give more captions, or raise max_unsaid"
            )
        return np.asarray(reliable)


def _pool(relations: Relations, ratings: Ratings, frame: pl.DataFrame, min_images: int, funnel: dict[str, int]) -> Pool:
    sides = {}
    for side in ("s", "o"):
        words = frame[side].unique().sort()
        sides[side] = words, frame[side].cast(pl.Enum(words)).to_physical().cast(pl.Int32)
    numbered = frame.select(pl.col("row").cast(pl.Int32), "image", subject=sides["s"][1], object=sides["o"][1])
    rated = frame["s_rating"].to_numpy(), frame["o_rating"].to_numpy()
    seen = photos_of(relations, sides["s"][0].to_frame(), "s", of=both_rated(ratings)).to_numpy()
    return Pool("strict", numbered, rated, min_images, funnel, seen)


def _keys(photos: Codes, nouns: NDArray[np.int64]) -> NDArray[np.int64]:
    return photos.astype(np.int64) << 32 | nouns


def _says_where() -> pl.Expr:
    """Whether a predicate begins or ends with a preposition of a place, or is a phrase of one."""
    words, prepositions = low(VERB).str.splitn(" ", 2).struct, sorted(CLASSES["prepositions"])
    ends = words.field("field_0").is_in(prepositions) | words.field("field_1").is_in(prepositions).fill_null(False)
    return ends | low(VERB).is_in(sorted(PHRASES))


class _OtherSubjects:
    """For each pair of subject and object: the relations with that object, but not that subject, that may distract,
    drawn evenly without drawing twice. count: how many there are, of each pair."""

    def __init__(self, pool: Pool, allowed: Bools) -> None:
        """allowed: of each relation of the pool."""
        among_them = allowed[pool.by_object]
        before = np.concatenate([[0], np.cumsum(among_them)])  # of each place in by_object: allowed ones before it
        self._relations: Codes = pool.by_object[among_them]
        self._start = before[pool.object_start[pool.object]]
        own = np.argsort(pool.by_object)[pool.start]  # of each pair: where its relations begin in by_object
        self._own_start, own_end = before[own], before[own + pool.count]
        self._own_count = own_end - self._own_start
        end = before[pool.object_start[pool.object] + pool.object_count[pool.object]]
        self.count = (end - self._start - self._own_count).astype(np.int32)

    def at(self, pair: Codes, number: NDArray[np.int64]) -> Codes:
        """The relation with a number from 0 up to ``count`` of each pair."""
        place = self._start[pair] + number
        place += np.where(place >= self._own_start[pair], self._own_count[pair], 0)  # the pair's own lie together
        return self._relations[place]
