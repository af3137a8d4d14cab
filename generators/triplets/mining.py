"""Triplets by number: any range of them, the same whoever mines the others and in whatever order."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from typing import cast

import numpy as np
from numpy.typing import NDArray

from twinset.contracts.errors import WrongUse
from twinset.generators.triplets.draws import NONE, Codes, Draws, Floats
from twinset.generators.triplets.published import PublishedRules
from twinset.generators.triplets.strict import StrictRules

ATTEMPTS = 1000  # at one triplet, after which its number is left out
BATCH = 1 << 16  # attempts held at once
BLOCK = 1 << 14  # numbers that a stream mines together
IN_A_ROW = 1000  # triplets in which uses are counted
COLUMNS = ("number", "reference", "target", "distractor", "concreteness")


@dataclass(frozen=True, slots=True)
class TripletTable:
    """Mined triplets, one entry each in the order of their numbers.

    number: 0, 1, …; reference, target, distractor: relations of the pool, `NONE` for no distractor; concreteness: the
    mean rating that was held against the threshold. left_out: numbers of the range for which nothing passed. used:
    those whose triplet `Uses` refused.
    """

    number: NDArray[np.int64]
    reference: Codes
    target: Codes
    distractor: Codes
    concreteness: Floats
    left_out: int
    used: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.number)


class Uses:
    """Of 1,000 triplets in a row, lets one photo or caption be the reference so many times, and the target as often.

    The same two are not let pass again.
    """

    def __init__(self, most: int) -> None:
        """most: times."""
        self._most = most
        self._begin()

    def _begin(self) -> None:
        self._held = 0
        self._times = Counter[tuple[str, int]]()
        self._pairs = set[tuple[int, int]]()

    def admits(self, photo: int, text: int, target_photo: int, target_text: int) -> bool:
        """Whether the next triplet may pass; photos and texts of reference and target."""
        uses = (("photo", photo), ("text", text), ("target", target_photo), ("target's text", target_text))
        pair = (text, target_text)
        if pair in self._pairs or any(self._times[use] >= self._most for use in uses):
            return False
        self._pairs.add(pair)
        self._times.update(uses)
        self._held += 1
        if self._held == IN_A_ROW:
            self._begin()
        return True


class Miner:
    """Mines by one set of rules."""

    def __init__(self, rules: PublishedRules | StrictRules) -> None:
        self.rules = rules

    def mine(self, draws: Draws, first: int, last: int) -> TripletTable:
        """The triplets with numbers from ``first`` up to, without, ``last``; memory grows with how many these are."""
        missing = np.arange(first, last, dtype=np.int64)
        relations = np.full((3, len(missing)), NONE, dtype=np.int32)  # reference, target, distractor of each number
        mean = np.full(len(missing), np.nan)
        attempt = 0
        while len(missing) and attempt < ATTEMPTS:
            # The fewer are missing, the more attempts at each are made at once; the first that passes counts.
            tries = min(max(1, BATCH // len(missing)), ATTEMPTS - attempt)
            states = draws.states(np.repeat(missing, tries), np.tile(np.arange(attempt, attempt + tries), len(missing)))
            drawn = self.rules.propose(states)
            passes = drawn.passes.reshape(len(missing), tries)
            found = passes.any(axis=1)
            at = passes.argmax(axis=1)[found] + np.flatnonzero(found) * tries
            place = missing[found] - first
            relations[:, place] = drawn.reference[at], drawn.target[at], drawn.distractor[at]
            mean[place] = drawn.mean[at]
            missing = missing[~found]
            attempt += tries
        mined = np.flatnonzero(~np.isnan(mean))
        reference, target, distractor = relations[:, mined]
        return TripletTable(mined + first, reference, target, distractor, mean[mined], left_out=len(missing))

    def stream(self, draws: Draws, max_uses: int | None = None) -> Iterator[TripletTable]:
        """Triplets, a table a block of numbers: without end, or up to the first block whose triplets all break a limit.

        max_uses: under the strict rules, as `generators.triplets.source.Triplets`.

        Raises `WrongUse` for a block in which none passes: ones after it would look for ever.
        """
        uses = Uses(max_uses) if max_uses is not None and isinstance(self.rules, StrictRules) else None
        for first in count(0, BLOCK):
            table = self.mine(draws, first, first + BLOCK)
            if not len(table):
                raise WrongUse(
                    f"no triplet in {BLOCK} times {ATTEMPTS} draws under the {self.rules.pool.rules} rules, where only "
                    "pairs that nearly always break one are left; give more captions or lower the threshold"
                )
            if uses is not None:
                table = self._admitted(table, uses)
                if not len(table):
                    return
            yield table

    def _admitted(self, table: TripletTable, uses: Uses) -> TripletTable:
        rules = cast(StrictRules, self.rules)
        named = [
            names[part].tolist()
            for part in (table.reference, table.target)
            for names in (rules.pool.image, rules.texts)
        ]
        passes = np.array([uses.admits(*names) for names in zip(*named, strict=True)], dtype=np.bool_)
        columns = {name: getattr(table, name)[passes] for name in COLUMNS}
        return replace(table, **columns, used=table.number[~passes])
