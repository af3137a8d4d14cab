"""The rules of GeneCIS as its paper has them (sections 5.2 and 6.2), without pairs that teach the wrong thing.

All four words of reference and target are rated, and their mean exceeds the threshold. Of no relation does the
reference's image show the target's subject with the target's object, so that it never satisfies the condition: object
and image differ always. The distractor's image shows the target's object with another subject, and not with the
target's: it would be as right as the target. Its own two words pass the threshold too, which keeps out pronouns: they
may stand for the target's subject.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from generators.triplets.draws import U64, below
from generators.triplets.graphs import NONE, Codes
from generators.triplets.pool import Bools, Pool, distinct, found_in
from generators.triplets.proposals import NEVER, Proposals, References

WORDS = 4
DISTRACTOR = 3  # slot of random numbers
EXACT = 1e-9  # sums that differ by less are equal: ratings have two decimals


class StrictRules:
    """Draws as the published procedure's first ones, of which every one that breaks a rule is drawn again."""

    def __init__(self, pool: Pool, threshold: float, distractors: bool) -> None:
        """Raises `WrongUse` when nothing can pass. distractors: whether each triplet needs one."""
        self.pool = pool
        self.threshold = threshold
        self.distractors = distractors
        self._rating = pool.subject_rating + pool.object_rating
        # A triplet passes when the ratings of reference and target, two words each, sum up to more than 4 * threshold.
        gain = np.maximum.reduceat(self._rating, pool.start)
        if distractors:
            self._others = _OtherSubjects(pool, self._rating > 2 * threshold + EXACT)
            gain = np.where(self._others.count > 0, gain, NEVER)
        alike = np.zeros(len(pool), dtype=np.bool_)
        self.references = References(pool, gain, np.ones(len(pool)), alike, WORDS, threshold, EXACT)
        self._shown = distinct(pool.pair.astype(np.int64) << 32 | pool.image)

    def propose(self, states: U64) -> Proposals:
        """One draw of a triplet a state; `NONE` stands for the distractor where none is asked for."""
        pool = self.pool
        _, reference, pair, target = self.references.sample(states)
        total = self._rating[reference] + self._rating[target]
        passes = (total > WORDS * self.threshold + EXACT) & ~self._shows(pool.image[reference], pair)
        distractor = np.full(len(reference), NONE, dtype=np.int32)
        if self.distractors:
            distractor = self._others.at(pair, below(states, DISTRACTOR, self._others.count[pair]))
            image = pool.image[distractor]
            passes &= (image != pool.image[reference]) & ~self._shows(image, pair)
        return Proposals(passes, reference, target, distractor, total / WORDS)

    def _shows(self, image: Codes, pair: Codes) -> Bools:
        """Whether some relation of each image has the pair's subject and object."""
        return found_in(self._shown, pair.astype(np.int64) << 32 | image)


class _OtherSubjects:
    """For each pair of subject and object: the relations with that object, but not that subject, that may distract,
    drawn evenly without drawing twice.

    count: how many there are, of each pair.
    """

    def __init__(self, pool: Pool, allowed: Bools) -> None:
        """allowed: of each relation of the pool."""
        among = allowed[pool.by_object]
        before = np.concatenate([[0], np.cumsum(among)])  # of each place in by_object: allowed ones that lie before it
        self._relations = pool.by_object[among]
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
