"""What is measured from a table of scores: figures with their intervals, in all and by the values of columns."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure, in percent; but for means of numbers, whose names begin with ``mean_``.

    value: strict, a tie is wrong. expected: with ties broken at random; None where that is not known.
    low, high: 95 % interval of ``value``, clustered by group; None for fewer than 2 groups, or 0 resamples.
    sd: of a mean over runs of a model, their standard deviation (of a sample: n - 1); else None.
    rows: how many are asked it; 0 where that is not known.
    """

    value: float
    expected: float | None = None
    low: float | None = None
    high: float | None = None
    sd: float | None = None
    rows: int = 0


def figures_json(figures: Mapping[str, Figure]) -> dict[str, Any]:
    """``{FIGURE: value, …, "expected": {FIGURE: …}, "interval": {FIGURE: [low, high]}}``; nothing where it is None.

    Means over runs have ``"sd": {FIGURE: …}`` too.
    """
    spread = {name: figure.sd for name, figure in figures.items() if figure.sd is not None}
    return {
        **{name: figure.value for name, figure in figures.items()},
        "expected": {name: figure.expected for name, figure in figures.items() if figure.expected is not None},
        "interval": {name: [figure.low, figure.high] for name, figure in figures.items() if figure.low is not None},
        **({"sd": spread} if spread else {}),
    }


@dataclass(frozen=True, slots=True)
class Measured:
    """Figures of n rows, by name. ties: percent of rows that a tie makes wrong in some figure; None: not known."""

    n: int
    groups: int
    ties: float | None
    figures: dict[str, Figure]

    def as_json(self) -> dict[str, Any]:
        """``{"n", "groups", "ties", …}``, and as `figures_json`."""
        return {"n": self.n, "groups": self.groups, "ties": self.ties, **figures_json(self.figures)}


@dataclass(frozen=True, slots=True)
class Results:
    """All rows, and those of each value of the asked columns: "value / value" for two. notes: what to know of them."""

    all: Measured
    by: dict[str, Measured]
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """``{"all": …, "by": {VALUE: …}, "notes": […]}``."""
        by = {value: measured.as_json() for value, measured in self.by.items()}
        return {"all": self.all.as_json(), "by": by, "notes": [*self.notes]}
