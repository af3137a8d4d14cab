"""Triplets by number: any range of them, the same whoever mines the others and in whatever order."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from itertools import count

import numpy as np
import polars as pl

from twinset.contracts.errors import WrongUse
from twinset.generators.triplets.draws import U64, Draws
from twinset.generators.triplets.pool import Pool
from twinset.generators.triplets.relations import Relations

ATTEMPTS = 1000  # at one triplet, after which its number is left out
BATCH = 1 << 16  # attempts held at once
BLOCK = 1 << 14  # numbers that a stream mines together
IN_A_ROW = 1000  # triplets in which uses are counted


class Miner(ABC):
    """Rules, and what they mine from."""

    relations: Relations
    pool: Pool

    @abstractmethod
    def propose(self, states: U64) -> pl.DataFrame:
        """One draw of a triplet a state.

        Returns:
            ``passes``, whether the rules let it pass; ``reference``, ``target`` and ``distractor``, rows of relations,
            the last one null where none is asked for; ``concreteness``, the mean rating.
        """

    def mine(self, draws: Draws, first: int, last: int) -> pl.DataFrame:
        """Triplets by ``number``, from ``first`` to before ``last``, as `propose` has them; null where none passed."""
        missing, attempt, passed = np.arange(first, last), 0, []
        while len(missing) and attempt < ATTEMPTS:
            # The fewer are missing, the more attempts at each are made at once; the first that passes counts.
            tries = min(max(1, BATCH // len(missing)), ATTEMPTS - attempt)
            number, attempts = np.repeat(missing, tries), np.arange(attempt, attempt + tries)
            drawn = self.propose(draws.states(number, np.tile(attempts, len(missing)))).with_columns(number=number)
            passed.append(drawn.filter("passes").unique("number", keep="first"))
            missing = np.setdiff1d(missing, passed[-1]["number"], assume_unique=True)
            attempt += tries
        numbers = pl.DataFrame({"number": np.arange(first, last)})
        return numbers.join(pl.concat(passed), on="number", how="left", maintain_order="left")

    def stream(self, draws: Draws, max_uses: int | None = None) -> Iterator[pl.DataFrame]:
        """Triplets, a table a block of numbers: without end, or up to the first block whose triplets all break a limit.

        max_uses: under the strict rules, as `generators.triplets.source.Triplets`; triplets that break it are left out.

        Raises `WrongUse` for a block in which none passes: ones after it would look for ever.
        """
        times = Counter[tuple[str | int, ...]]()
        for first in count(0, BLOCK):
            table = self.mine(draws, first, first + BLOCK)
            if not table["passes"].any():
                raise WrongUse(
                    f"no triplet in {BLOCK} times {ATTEMPTS} draws, where only pairs that nearly always break a rule "
                    f"are left ({self.pool.steps}); give more captions or lower the threshold"
                )
            if max_uses is not None:
                mined = table.drop_nulls("passes")
                refused = mined.filter(~pl.Series(self._admitted(mined, max_uses, times), dtype=pl.Boolean))
                if len(refused) == len(mined):
                    return
                table = table.join(refused, on="number", how="anti", maintain_order="left")
            yield table

    def _admitted(self, table: pl.DataFrame, most: int, times: Counter[tuple[str | int, ...]]) -> list[bool]:
        """Whether each may pass: of 1,000 triplets in a row, one photo or caption is the reference at most so often,
        and the target as often, and the same two captions come once. times: uses before, in this thousand."""
        names = self.pool.relations.select("row", "image", "text")
        sides = (
            table.select(row=part).join(names, on="row", how="left", maintain_order="left").drop("row").iter_rows()
            for part in ("reference", "target")
        )
        admitted = []
        for reference, target in zip(*sides, strict=True):
            uses = [(part, *use) for part, used in (("r", reference), ("t", target)) for use in enumerate(used)]
            pair = (reference[1], target[1])
            passes = pair not in times and all(times[use] < most for use in uses)
            if passes:
                times.update([*uses, pair, ("held",)])
            if times[("held",)] == IN_A_ROW:
                times.clear()
            admitted.append(passes)
        return admitted
