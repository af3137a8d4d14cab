"""Triplets by number: any range of them, the same whoever mines the others and in whatever order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from generators.triplets.draws import Draws
from generators.triplets.graphs import Codes
from generators.triplets.pool import Bools, Floats, Pool
from generators.triplets.proposals import require_eligible
from generators.triplets.published import PublishedRules
from generators.triplets.strict import NONE, StrictRules
from manifests.errors import WrongUse

ATTEMPTS = 1000  # at one triplet, after which its number is left out
BATCH = 1 << 16  # attempts held at once
BLOCK = 1 << 14  # numbers that are mined together


@dataclass(frozen=True, slots=True)
class TripletTable:
    """Mined triplets, one entry each in the order of their numbers.

    number: 0, 1, …; reference, target, distractor: relations, as places in the columns of `Relations`, `NONE` for no
    distractor; concreteness: the mean rating that was held against the threshold. left_out: numbers of the range for
    which nothing passed.
    """

    number: NDArray[np.int64]
    reference: Codes
    target: Codes
    distractor: Codes
    concreteness: Floats
    left_out: int

    def __len__(self) -> int:
        return len(self.number)


class Miner:
    """Mines one pool at one threshold."""

    def __init__(self, pool: Pool, threshold: float, distractors: bool = True) -> None:
        """distractors: whether every triplet needs one; the published rules always draw one, to score it.

        Raises `WrongUse` when no triplet can pass.
        """
        require_eligible(pool)
        self.pool = pool
        self.rules: PublishedRules | StrictRules
        if pool.rules == "published":
            self.rules = PublishedRules(pool, threshold)
        else:
            self.rules = StrictRules(pool, threshold, distractors)

    def mine(self, draws: Draws, first: int, last: int) -> TripletTable:
        """The triplets with numbers from ``first`` up to, without, ``last``."""
        tables = [self._block(draws, start, min(start + BLOCK, last)) for start in range(first, last, BLOCK)]
        if not tables:
            return self._block(draws, first, first)
        columns = {
            name: np.concatenate([getattr(table, name) for table in tables])
            for name in ("number", "reference", "target", "distractor", "concreteness")
        }
        return TripletTable(**columns, left_out=sum(table.left_out for table in tables))

    def stream(self, draws: Draws) -> Iterator[TripletTable]:
        """Triplets without end, a table a block of numbers.

        Raises `WrongUse` for a block in which none passes: ones after it would look for ever.
        """
        first = 0
        while True:
            table = self.mine(draws, first, first + BLOCK)
            if not len(table):
                raise WrongUse(
                    f"no triplet in {BLOCK} times {ATTEMPTS} draws under the {self.pool.rules} rules, where only pairs "
                    "that nearly always break one are left; give more captions or lower the threshold"
                )
            yield table
            first += BLOCK

    def _block(self, draws: Draws, first: int, last: int) -> TripletTable:
        missing = np.arange(first, last, dtype=np.int64)
        size = len(missing)
        reference, target, distractor = (np.full(size, NONE, dtype=np.int32) for _ in range(3))
        mean = np.zeros(size)
        attempt = 0
        while len(missing) and attempt < ATTEMPTS:
            # The fewer are missing, the more attempts at each are made at once; the first that passes counts.
            tries = min(max(1, BATCH // len(missing)), ATTEMPTS - attempt)
            states = draws.states(np.repeat(missing, tries), np.tile(np.arange(attempt, attempt + tries), len(missing)))
            drawn = self.rules.propose(states)
            found, at = _first(drawn.passes.reshape(len(missing), tries))
            place = missing[found] - first
            reference[place] = drawn.reference[at]
            target[place] = drawn.target[at]
            distractor[place] = drawn.distractor[at]
            mean[place] = drawn.mean[at]
            missing = missing[~found]
            attempt += tries
        mined = np.ones(size, dtype=np.bool_)
        mined[missing - first] = False
        return TripletTable(
            number=np.flatnonzero(mined) + first,
            reference=self._rows(reference[mined]),
            target=self._rows(target[mined]),
            distractor=self._rows(distractor[mined]),
            concreteness=mean[mined],
            left_out=len(missing),
        )

    def _rows(self, relation: Codes) -> Codes:
        return np.where(relation == NONE, NONE, self.pool.row[relation]).astype(np.int32)


def _first(passes: Bools) -> tuple[Bools, NDArray[np.int64]]:
    """Which rows have a True, and where the first one of each of those lies in the flattened array."""
    found = np.asarray(passes.any(axis=1))
    return found, passes.argmax(axis=1)[found] + np.flatnonzero(found) * passes.shape[1]
