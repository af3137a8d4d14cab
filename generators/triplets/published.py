"""The rules of GeneCIS as its released code has them, weaknesses too."""

import numpy as np
from numpy.typing import NDArray

from twinset.generators.triplets.draws import U64, Floats, below, numbered, uniform
from twinset.generators.triplets.pool import Pool, published_pool
from twinset.generators.triplets.ratings import Ratings
from twinset.generators.triplets.references import Proposals, References
from twinset.generators.triplets.relations import Relations

DRAWS = 101  # of a target, the last of which is taken as it is
PUBLISHED_WORDS = 6
LATE, PUBLISHED_DISTRACTOR = 3, 4  # slots of random numbers
CERTAIN = 1e-9
ROUNDING = 1e-9  # of a sum of ratings: one that is the threshold's may round to more
NEGLIGIBLE = 1e-9  # a chance; references that only so can pass are left out


class PublishedRules:
    """Samples with the published procedure's distribution, exactly, in a fraction of its draws.

    Target and reference differ in object and image, but after 101 draws whatever came last is taken. The distractor is
    any relation with the target's object: of the reference's image, of the target's, or the target itself. The score is
    the mean rating of six words, subject and object of all three, where an unrated word counts as -1.

    Let p be the chance of a target t in one draw, and q the chance that one draw is *alike*, which is that its object
    or its image is the reference's. Up to n = 101 targets are drawn until one is not alike, and the last is taken as it
    is. So t is the outcome with the chance

        t not alike:    p * (1 + q + ... + q^(n-1)) = p * a      some alike ones, then t;  a = (1 - q^n) / (1 - q)
        t alike:        p * q^(n-1)                 = p * a * l  n - 1 alike ones, then t; l = q^(n-1) / a

    Here one target is proposed, with p. The factor a depends on the reference alone and is multiplied into its weight;
    a target that is alike is accepted with the chance l.
    """

    def __init__(self, relations: Relations, ratings: Ratings, threshold: float, min_images: int) -> None:
        """Raises `WrongUse` when nothing can pass."""
        self.pool = pool = published_pool(relations, ratings, min_images)
        self.threshold = threshold
        rating = pool.subject_rating + pool.object_rating
        # A triplet passes when the ratings of reference (rs + ro), target (ts + to) and distractor (ds + do) sum up to
        # more than 6 * threshold. The distractor has the target's object, do = to. So with the best distractor, a
        # target's pair adds at most gain = (ts + to) + to + max ds, where a reference needs 6 * threshold - (rs + ro).
        most = np.maximum.reduceat(pool.subject_rating[pool.by_object], pool.object_start)  # max ds of each object
        gain = (rating + pool.object_rating)[pool.start] + most[pool.object]
        q = _chance_alike(pool)
        with np.errstate(divide="ignore", invalid="ignore"):
            a = np.where(1 - q > CERTAIN, (1 - _power(q, DRAWS)) / (1 - q), DRAWS)  # its limit for q = 1 is n
        late = _power(q, DRAWS - 1) / a
        own, late32 = late > NEGLIGIBLE, late.astype(np.float32)
        del rating, q, late  # a number of each relation, of which there may be tens of millions
        self.references = References(pool, gain, a, own, PUBLISHED_WORDS, threshold, -ROUNDING)
        self._late = late32[self.references.relation]

    def propose(self, states: U64) -> Proposals:
        """One draw of a triplet a state."""
        pool = self.pool
        place, reference, pair, target = self.references.sample(states)
        alike = (pool.pair[reference] == pair) | (pool.image[reference] == pool.image[target])
        passes = ~alike | (uniform(states, LATE) < self._late[place])
        object_ = pool.object[pair]
        distractor = pool.by_object[
            pool.object_start[object_] + below(states, PUBLISHED_DISTRACTOR, pool.object_count[object_])
        ]
        total = np.zeros(len(reference))  # added up in the order in which numpy adds the ratings of one triplet
        for relation in (reference, target, distractor):
            total += pool.subject_rating[relation]
            total += pool.object_rating[relation]
        mean = total / PUBLISHED_WORDS
        return Proposals(passes & (mean > self.threshold), reference, target, distractor, mean)


def _power(base: Floats, exponent: int) -> Floats:
    """By squaring: base^101 = base^64 * base^32 * base^4 * base. numpy's ``**`` may round
    differently on another processor."""
    result = np.ones_like(base)
    while exponent:
        if exponent & 1:
            result = result * base
        base, exponent = base * base, exponent >> 1
    return result


def _chance_alike(pool: Pool) -> Floats:
    """q of each relation as a reference: the chance that a target drawn for it has its object or its image.

    One of the subject's k objects is drawn evenly, then one of its relations evenly. The reference's own object always
    counts; of any other, the share of its relations that are of the reference's image:

        q = (1 + sum over other objects o of n(o, image) / n(o)) / k
    """
    share = 1.0 / pool.count[pool.pair]  # 1 / n(o), of each relation
    # Summed over the relations of subject and image, the shares are the sum over all objects; over those of pair and
    # image, the term of the reference's own object.
    chance = 1 + _summed(pool.subject[pool.pair].astype(np.int64) << 32 | pool.image, share)
    chance -= _summed(pool.pair.astype(np.int64) << 32 | pool.image, share)
    chance /= pool.pairs_count[pool.subject[pool.pair]]
    return np.minimum(chance, 1.0, out=chance)


def _summed(keys: NDArray[np.int64], values: Floats) -> Floats:
    """Of each key, the sum of the values of all that equal it."""
    number = numbered(keys)
    return np.asarray(np.bincount(number, values)[number])
