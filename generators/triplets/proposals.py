"""References and targets drawn without what can never pass: the proposals that the rules then accept or reject.

The released code of GeneCIS draws subject, reference, target and distractor, and begins again until their words are
concrete enough, which on captions of photographs happens once in some twenty times. Rejection keeps the ratio of what
passes. So does leaving out beforehand what cannot pass, when what is left is weighed as it would have been drawn:

    subject       by its number of images        \\
    reference     evenly, of its relations        > one draw of a reference, weighed by the product of all three
    target's object is one that can pass         /
    target        evenly, of the subject's objects that can pass, then evenly of the relations with it

Whether an object can pass is known by sums of ratings: ``gain`` is the most that a target with it can add, ``need``
what a reference lacks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from generators.triplets.draws import U64, below, uniform
from generators.triplets.graphs import Codes
from generators.triplets.pool import Bools, Floats, Pool, funnel
from manifests.errors import WrongUse

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


@dataclass(frozen=True, slots=True)
class Lottery:
    """References that can pass, and their targets.

    reference: relations of the pool. cumulative: sums of their weights. first, choices: their targets, as a range in
    ``targets``, which sorts the pairs of each subject by gain.
    """

    reference: Codes
    cumulative: Floats
    first: Codes
    choices: Codes
    targets: Codes

    def draw(self, pool: Pool, states: U64) -> tuple[NDArray[np.int64], Codes, Codes, Codes]:
        """A ticket (place in ``reference``), its reference, the target's pair and the target, for each state."""
        ticket = np.searchsorted(self.cumulative, uniform(states, REFERENCE) * self.cumulative[-1], side="right")
        np.minimum(ticket, len(self.cumulative) - 1, out=ticket)  # the product may round up to the last sum
        pair = self.targets[self.first[ticket] + below(states, OBJECT, self.choices[ticket])]
        target = pool.start[pair] + below(states, TARGET, pool.count[pair])
        return ticket, self.reference[ticket], pair, target.astype(np.int32)


def make_lottery(
    pool: Pool, gain: Floats, need: Floats, weight: Floats, own: Bools, words: int, threshold: float, least: float
) -> Lottery:
    """The lottery of a pool.

    gain: of each pair. need: of each relation, what the gain of its target's pair must exceed. weight: of each
    relation, multiplied into that of its draw. own: of each relation, whether a target of its own pair can pass. words:
    how many ratings are averaged, for the message. least: how much a gain must be above ``need`` at the very least.
    Raises `WrongUse` when no reference can pass.
    """
    subject = pool.subject[pool.pair]
    targets = np.lexsort((gain, pool.subject)).astype(np.int32)
    keys = pool.subject[targets] * SPAN + (HALF + gain[targets])
    wanted = subject * SPAN + np.clip(HALF + need - SLACK, 1.0, SPAN - 1)
    first = np.searchsorted(keys, wanted, side="right").astype(np.int32)
    choices = (pool.pairs_start + pool.pairs_count)[subject] - first
    others = choices - (~own & (gain[pool.pair] > need - SLACK))
    reference = np.flatnonzero(pool.eligible[subject] & (others > 0)).astype(np.int32)
    ends = pool.pairs_start + pool.pairs_count
    best, second = targets[ends - 1], targets[np.maximum(ends - 2, 0)]
    pair = np.where(~own & (best[subject] == pool.pair), second[subject], best[subject])
    most = (gain[pair] - need)[pool.eligible[subject]].max()
    if not len(reference) or most <= least:  # those within the slack alone: every draw would fail the exact test
        raise WrongUse(f"{_nothing(pool)}; {_remedy(threshold + most / words, threshold)}")
    of = subject[reference]
    chance = pool.images[of] / pool.relations_count[of] * (choices[reference] / pool.pairs_count[of])
    return Lottery(reference, np.cumsum(chance * weight[reference]), first[reference], choices[reference], targets)


def require_eligible(pool: Pool) -> None:
    """Raise `WrongUse` when no subject of a pool can be drawn."""
    if not pool.eligible.any():
        raise WrongUse(f"{_nothing(pool)}; give more captions, or lower min_images")


def _remedy(reach: float, threshold: float) -> str:
    if reach < 0:  # every gain is NEVER
        return (
            f"none of their objects has a distractor above {threshold:g}: lower the threshold, give more captions, or "
            "mine without distractors"
        )
    return (
        f"their mean concreteness is at most {reach:.3f} and must exceed {threshold:g}: lower the threshold or give "
        "more captions"
    )


def _nothing(pool: Pool) -> str:
    steps = ", ".join(f"{count} {step}" for step, count in funnel(pool).items())
    return f"no triplet can be mined from these captions under the {pool.rules} rules: {steps}"
