"""Recall@K from the ranks of queries: GeneCIS (1, 2, 3), CIRR, MIT-States, retrieval of captions (1, 5, 10, 50).

A query has ``higher`` wrong entries that score more than its best target, and ``tied`` ones that score the same. Its
target is found within K strictly if it is there however ties fall: higher + tied < K. ``tied_targets`` targets score
as the best one; without this column it is 1.
"""

import numpy as np
from numpy.typing import NDArray

from twinset.evaluation.metrics.outcomes import Floats, Outcomes, ScoreKind, code_of, truth_of
from twinset.evaluation.score_files.batch import Batch

RANKS = ("higher", "tied", "entries", "targets")
TIED_TARGETS = "tied_targets"
SMALL = 20  # entries: GeneCIS has 10 or 15, CIRR's subsets 5
AT = {"small": (1, 2, 3), "large": (1, 5, 10, 50)}
ALL = tuple(sorted({*AT["small"], *AT["large"]}))
_BITS = truth_of(len(ALL) + 3)
_EVENTS = {
    "rows": _BITS[:, 0] | True,
    **{f"recall@{k}": _BITS[:, bit] for bit, k in enumerate(ALL)},
    "large": _BITS[:, len(ALL)],
    "tie small": _BITS[:, len(ALL) + 1],
    "tie large": _BITS[:, len(ALL) + 2],
}


class Queries(ScoreKind):
    """Recall@K, K as is usual for galleries of that size: 1, 2, 3 where all have at most `SMALL` entries.

    Args:
        columns: of the table: `RANKS`, with or without `TIED_TARGETS`.
    """

    events = tuple(_EVENTS)
    truth = np.stack([*_EVENTS.values()], axis=1).astype(np.uint8)

    def __init__(self, columns: tuple[str, ...] = RANKS) -> None:
        self.columns = columns

    def outcomes(self, batch: Batch) -> Outcomes:
        higher, tied, entries, targets = (batch.counts(name) for name in RANKS)
        if (none := targets == 0).any():
            raise batch.wrong("column targets", none, "0; a query has one target or more in its gallery")
        if (over := higher + tied + targets > entries).any():
            raise batch.wrong(
                "column entries", over, "fewer than higher, tied and targets together; count all that is ranked"
            )
        alike = batch.counts(TIED_TARGETS) if TIED_TARGETS in self.columns else np.ones(len(batch), np.int64)
        if (wrong := (alike == 0) | (alike > targets)).any():
            raise batch.wrong(f"column {TIED_TARGETS}", wrong, "not 1 to targets; the best target is one of them")
        found = {k: higher + tied < k for k in ALL}
        # A tie matters where the target is among the first K in the best order of equal scores, but not in the worst.
        matters = {k: (higher < k) & ~found[k] for k in ALL}
        ties = [np.any([matters[k] for k in AT[size]], axis=0) for size in ("small", "large")]
        code = code_of([*found.values(), entries > SMALL, *ties])
        expected = self.truth[code].astype(np.float64)
        for k in ALL:
            expected[:, self.events.index(f"recall@{k}")] = _hit(k - higher, tied, alike)
        return Outcomes(code, expected, np.empty((len(batch), 0)))

    def names(self, sums: Floats) -> tuple[str, ...]:
        return tuple(f"recall@{k}" for k in AT[self._size(sums)])

    def tied(self, sums: Floats) -> float | None:
        return float(sums[self.events.index(f"tie {self._size(sums)}")])

    def _size(self, sums: Floats) -> str:
        return "large" if sums[self.events.index("large")] else "small"


def _hit(places: NDArray[np.int64], wrong: NDArray[np.int64], targets: NDArray[np.int64]) -> Floats:
    """Chance that a target is among the first places, in random order of entries with one score; all shape (n,).

    The first r of w wrong entries and t targets are all wrong with chance C(w, r) / C(w + t, r)
    = Π_{i < r} (w - i) / (w + t - i). For one target, 1 minus this is r / (w + 1).
    """
    miss = np.ones(len(places))
    for i in range(max(0, int(places.max(initial=0)))):
        factor = np.maximum(wrong - i, 0) / np.maximum(wrong + targets - i, 1)
        miss = np.where(i < places, miss * factor, miss)
    return 1 - miss
