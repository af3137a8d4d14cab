"""What one row of a table of scores comes to: a few facts that are true or false, and from their sums the figures."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twinset.contracts.errors import WrongUse
from twinset.evaluation.score_files.batch import Batch

Floats = NDArray[np.float64]
Codes = NDArray[np.uint16]
Truth = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Outcomes of n rows.

    code: facts of each row as bits, shape (n,).
    expected: probability of each event under random breaking of ties, shape (n, events); None where not known.
    numbers: numbers whose means are figures, shape (n, names); NaN where a row has none.
    """

    code: Codes
    expected: Floats | None
    numbers: Floats


class ScoreKind(ABC):
    """What a kind of table of scores asks, and its figures.

    columns: that it reads. events: names of what is summed; the first, ``rows``, is true of every row.
    truth: shape (codes, events), which events are true of a row with this code.
    means: names of the figures that are means of ``Outcomes.numbers``; unless percent, they begin with ``mean_``.
    expected_means: whether as many numbers follow, the same under random breaking of ties.
    below: events of which others are shares. optional: those of them that two tables may have of different rows: their
        figures are then not compared.
    """

    columns: tuple[str, ...]
    events: tuple[str, ...]
    truth: Truth
    means: tuple[str, ...] = ()
    expected_means = False
    below: tuple[str, ...] = ("rows",)
    optional: tuple[str, ...] = ()

    @abstractmethod
    def outcomes(self, batch: Batch) -> Outcomes:
        """Of each row of a batch; raises `WrongUse` for a row that cannot be."""

    @abstractmethod
    def names(self, sums: Floats) -> tuple[str, ...]:
        """Figures that rows with these sums of events have, shape (events,); the main ones first."""

    @abstractmethod
    def tied(self, sums: Floats) -> float | None:
        """Rows that a tie makes wrong in some figure, or None where it cannot be known."""

    def share(self, name: str) -> tuple[str, str] | None:
        """Events of which a figure is the ratio, or None where it is made of other figures."""
        return name, "rows"

    def figure(self, name: str, sums: Floats) -> Floats:
        """A figure in percent from sums of events, shape (..., events) → (...); NaN for 0 rows."""
        above, below = (sums[..., self.events.index(event)] for event in self.share(name) or ())
        return ratio(above, below)

    def has_expected(self, name: str) -> bool:
        """Whether random breaking of ties gives the figure another value, and it is known."""
        return True

    def main(self, sums: Floats) -> tuple[str, ...]:
        """Figures that are compared unless others are asked for."""
        return self.names(sums)


class Metric(ScoreKind):
    """One figure of your own: percent of rows that are right, of those that it is asked of.

    name: of the figure. columns: every table of scores that has them gets the figure, with intervals and tests.
    """

    name: str
    events = ("rows", "asked", "right")
    truth = np.array([[1, 0, 0], [1, 1, 0], [1, 1, 1]], np.uint8)
    below = ("rows", "asked")

    @abstractmethod
    def right(self, batch: Batch) -> Floats | NDArray[np.bool_]:
        """Of each row 1 where it is right, 0 where it is wrong, NaN where it is not asked; shape (n,)."""

    def outcomes(self, batch: Batch) -> Outcomes:
        """As `ScoreKind.outcomes`; raises `WrongUse` where `right` gives something else."""
        right = np.asarray(self.right(batch), np.float64)
        if right.shape != (len(batch),) or not (np.isnan(right) | (right == 0) | (right == 1)).all():
            raise WrongUse(f"metric {self.name}: right() gives 1, 0 or NaN for each of {len(batch)} rows; correct it")
        return Outcomes(np.nan_to_num(right + 1).astype(np.uint16), None, np.empty((len(batch), 0)))

    def names(self, sums: Floats) -> tuple[str, ...]:
        return (self.name,) if sums[1] else ()

    def share(self, name: str) -> tuple[str, str]:
        return "right", "asked"

    def tied(self, sums: Floats) -> None:
        return None


def truth_of(bits: int) -> NDArray[np.bool_]:
    """All codes of so many bits, shape (2**bits, bits): which bits are set."""
    return np.asarray((np.arange(2**bits)[:, None] >> np.arange(bits)) & 1, np.bool_)


def code_of(facts: Sequence[NDArray[np.bool_]]) -> Codes:
    """Codes of rows from their bits, lowest first."""
    code = np.zeros(len(facts[0]), np.uint16)
    for bit, fact in enumerate(facts):
        code |= fact.astype(np.uint16) << np.uint16(bit)
    return code


def ratio(above: Floats, below: Floats) -> Floats:
    """Percent; NaN where there is nothing below."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(100 * above / below, np.float64)
