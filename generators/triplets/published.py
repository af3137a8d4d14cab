"""The rules of GeneCIS as its released code has them, weaknesses too.

Target and reference differ in object and image, but after 101 draws whatever came last is taken. The distractor is any
relation with the target's object: of the reference's image, of the target's, or the target itself. The score is the
mean rating of six words, subject and object of all three, where an unrated word counts as -1.
"""

from __future__ import annotations

import numpy as np

from generators.triplets.draws import U64, below, uniform
from generators.triplets.graphs import Codes
from generators.triplets.pool import Floats, Pool
from generators.triplets.proposals import Proposals, make_lottery

DRAWS = 101  # of a target, the last of which is taken as it is
WORDS = 6
LATE, DISTRACTOR = 3, 4  # slots of random numbers
CERTAIN = 1e-9
ROUNDING = 1e-9  # of a sum of ratings: one that is the threshold's may round to more
NEGLIGIBLE = 1e-9  # a chance; references that only so can pass are left out


class PublishedRules:
    """Draws that follow the published procedure's distribution exactly, in a fraction of its draws.

    The procedure gives a target of chance ``p`` in one draw the chance ``p * (1 + q + ... + q^100)`` when it differs
    from the reference and ``p * q^100`` when it does not, ``q`` being the chance of one that does not. Here one target
    is proposed, a reference is weighed with the first factor, and a target that does not differ is accepted with the
    ratio of the second to the first.
    """

    def __init__(self, pool: Pool, threshold: float) -> None:
        """Raises `WrongUse` when nothing can pass."""
        self.pool = pool
        self.threshold = threshold
        rating = pool.subject_rating + pool.object_rating
        most = np.maximum.reduceat(pool.subject_rating[pool.by_object], pool.object_start)
        gain = (rating + pool.object_rating)[pool.start] + most[pool.object]
        alike = _chance_alike(pool)
        with np.errstate(divide="ignore", invalid="ignore"):
            all_draws = np.where(1 - alike > CERTAIN, (1 - _power(alike, DRAWS)) / (1 - alike), DRAWS)
        late = _power(alike, DRAWS - 1) / all_draws
        need = WORDS * threshold - rating
        self.lottery = make_lottery(pool, gain, need, all_draws, late > NEGLIGIBLE, WORDS, threshold, -ROUNDING)
        self._late = late[self.lottery.reference].astype(np.float32)

    def propose(self, states: U64) -> Proposals:
        """One draw of a triplet a state."""
        pool = self.pool
        ticket, reference, pair, target = self.lottery.draw(pool, states)
        alike = (pool.pair[reference] == pair) | (pool.image[reference] == pool.image[target])
        passes = ~alike | (uniform(states, LATE) < self._late[ticket])
        object_ = pool.object[pair]
        distractor = pool.by_object[pool.object_start[object_] + below(states, DISTRACTOR, pool.object_count[object_])]
        mean = published_mean(pool, reference, target, distractor)
        return Proposals(passes & (mean > self.threshold), reference, target, distractor, mean)


def published_mean(pool: Pool, reference: Codes, target: Codes, distractor: Codes) -> Floats:
    """Mean of the six ratings, added up in the order in which numpy adds those of one triplet."""
    total = np.zeros(len(reference))
    for relation in (reference, target, distractor):
        total += pool.subject_rating[relation]
        total += pool.object_rating[relation]
    return total / WORDS


def _power(base: Floats, exponent: int) -> Floats:
    """By multiplication alone, which rounds alike on every processor; numpy's own ``**`` does not."""
    result = np.ones_like(base)
    while exponent:
        if exponent & 1:
            result = result * base
        base, exponent = base * base, exponent >> 1
    return result


def _chance_alike(pool: Pool) -> Floats:
    """Of each relation: the chance that a target drawn for it has its object or its image.

    One of the subject's objects is drawn, then one of the relations with it: the reference's object always counts; of
    any other object, the share of relations that are of the reference's image.
    """
    share = 1.0 / pool.count[pool.pair]
    image = pool.image.astype(np.int64)
    _, of_subject = np.unique(pool.subject[pool.pair].astype(np.int64) << 32 | image, return_inverse=True)
    _, of_pair = np.unique(pool.pair.astype(np.int64) << 32 | image, return_inverse=True)
    every, own = np.bincount(of_subject, share)[of_subject], np.bincount(of_pair, share)[of_pair]
    return np.minimum((1 + every - own) / pool.pairs_count[pool.subject[pool.pair]], 1.0)
