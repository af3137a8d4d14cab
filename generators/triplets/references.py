"""References and targets sampled without those that can never pass; the rules then accept or reject each proposal.

The released code of GeneCIS samples subject, reference, target and distractor, and begins again until their words are
concrete enough. That keeps 1 in 10 of the triplets of COCO's captions at the threshold of the paper (4.8), 1 in 280 at
4.95, and of some captions none. A relation or pair that can never pass may be left out beforehand without changing the
distribution of what passes, if the others keep the ratios of their chances. The chance of a reference r with subject s
and of a target t with object o is

    P(r, t) = images(s) / sum of images       subject: by its number of images
            * 1 / relations(s)                reference: evenly among the relations of the subject
            * 1 / objects(s)                  object of the target: evenly among those of the subject
            * 1 / relations(s, o)             target: evenly among the relations of subject and object

Of the objects only the choices(r) that can pass are sampled from, so that each has the chance 1 / choices(r) instead of
1 / objects(s). The reference makes up for it: its weight is P's first two factors times choices(r) / objects(s).

Whether an object can pass is known by sums of ratings: ``gain`` is the most that a target with it can add, ``need``
what a reference lacks.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinset.contracts.errors import WrongUse
from twinset.generators.triplets.draws import U64, Bools, Codes, Floats, below, uniform
from twinset.generators.triplets.pool import Pool

SLACK = 1e-6  # of a sum of ratings: sums that come so close are left to the exact test
HALF, SPAN = 32.0, 64.0  # sums of ratings lie between -HALF and HALF
NEVER = -HALF

REFERENCE, OBJECT, TARGET = range(3)  # slots of random numbers


class Proposals(NamedTuple):
    """Draws, and whether each of them passes. reference, target, distractor: relations of the pool; mean: rating."""

    passes: Bools
    reference: Codes
    target: Codes
    distractor: Codes
    mean: Floats


class References:
    """The references of a pool that can pass, with their targets. relation: of the pool, one entry a reference."""

    def __init__(
        self, pool: Pool, gain: Floats, factor: Floats, own: Bools, words: int, threshold: float, least: float
    ) -> None:
        """Weigh the references.

        Args:
            gain: of each pair.
            factor: of each relation, by which its weight is multiplied.
            own: of each relation, whether a target of its own pair can pass.
            words: how many ratings are averaged.
            threshold: that their mean must exceed.
            least: by how much some gain must exceed what its reference lacks.

        Raises:
            WrongUse: no reference can pass.
        """
        if not pool.eligible.any():
            lower = "min_images or min_support" if pool.rules == "strict" else "min_images"
            raise WrongUse(f"{pool.nothing}; give more captions, or lower {lower}")
        subject = pool.subject[pool.pair]  # of each relation
        # Of each relation, what the gain of its target's pair must exceed.
        need = words * threshold - (pool.subject_rating + pool.object_rating)
        targets = np.lexsort((gain, pool.subject)).astype(np.int32)
        # One ascending number for each pair, subject * 64 + 32 + gain, so that one search serves all references: of the
        # pairs from ``first`` to the end of the subject's, gain > need - SLACK. Clipped, it stays among its subject's.
        keys = pool.subject[targets] * SPAN + (HALF + gain[targets])
        wanted = subject * SPAN + np.clip(HALF + need - SLACK, 1.0, SPAN - 1)
        first = np.searchsorted(keys, wanted, side="right").astype(np.int32)
        ends = pool.pairs_start + pool.pairs_count
        choices = ends[subject] - first
        # A reference whose only choice is its own pair, which its rules bar, can never pass.
        others = choices - (~own & (gain[pool.pair] > need - SLACK))
        reference = np.flatnonzero(pool.eligible[subject] & (others > 0)).astype(np.int32)
        # The best that any reference can do: with the pair of the highest gain, or the second where the best is barred.
        best, second = targets[ends - 1], targets[np.maximum(ends - 2, 0)]
        pair = np.where(~own & (best[subject] == pool.pair), second[subject], best[subject])
        most = (gain[pair] - need)[pool.eligible[subject]].max()
        if not len(reference) or most <= least:  # those within the slack alone: every draw would fail the exact test
            reach = threshold + most / words
            if reach < 0:  # every gain is NEVER
                raise WrongUse(
                    f"{pool.nothing}; none of their objects has a distractor above {threshold:g}: lower the threshold"
                    ", give more captions, or mine without distractors"
                )
            raise WrongUse(
                f"{pool.nothing}; their mean concreteness is at most {reach:.3f} and must exceed {threshold:g}: lower "
                "the threshold or give more captions"
            )
        of = subject[reference]
        # images(s) / relations(s) * choices(r) / objects(s); the sum of images is the same for all.
        chance = pool.images[of] / pool.relations_count[of] * (choices[reference] / pool.pairs_count[of])
        self.relation, self._pool, self._targets = reference, pool, targets
        self._cumulative = np.cumsum(chance * factor[reference])  # sums of the weights up to and with each
        # The pairs of its targets, as a range of ``targets``, which sorts the pairs of each subject by gain.
        self._first, self._choices = first[reference], choices[reference]

    def sample(self, states: U64) -> tuple[NDArray[np.int64], Codes, Codes, Codes]:
        """A place in ``relation``, the reference there, the target's pair and the target, for each state."""
        # The first place whose cumulative weight exceeds u * total has a chance in proportion to its own weight.
        place = np.searchsorted(self._cumulative, uniform(states, REFERENCE) * self._cumulative[-1], side="right")
        np.minimum(place, len(self._cumulative) - 1, out=place)  # the product may round up to the last sum
        pair = self._targets[self._first[place] + below(states, OBJECT, self._choices[place])]
        target = self._pool.start[pair] + below(states, TARGET, self._pool.count[pair])
        return place, self.relation[place], pair, target.astype(np.int32)
