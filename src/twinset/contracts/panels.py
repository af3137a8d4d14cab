"""What a picture of numbers shows, before anybody draws it (`cards.plots` does)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#: How often each whole number occurs, or names with their counts, most frequent first.
Counts = Mapping[Any, int]


@dataclass(frozen=True, slots=True)
class Steps:
    """Histograms over the same bins, one line each. edges: of the bins; counts: of each bin, by the line's name."""

    edges: Sequence[float]
    counts: Mapping[str, Sequence[int]]


#: Panels side by side, by title.
Panels = Mapping[str, Counts | Steps]
