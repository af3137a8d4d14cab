"""How alike the orders of people and of a model are (EqBen, Figure 7): rank correlations, overlap of the first."""

import numpy as np
from numpy.typing import NDArray

from twinset.evaluation.metrics.outcomes import Floats, Outcomes, ScoreKind
from twinset.evaluation.metrics.rank_correlation import tau
from twinset.evaluation.score_files.batch import Batch

#: Columns: of each entry in turn, how many the model scores higher, and how many people put before it.
ORDERS = ("places", "people")
FIRST = 5


class Ranking(ScoreKind):
    """Means over queries: ``mean_kendall`` (tau-b) and ``mean_spearman``, -1 to 1; ``overlap@5``, percent of people's
    first five that are among the model's. Images that nobody put in order tie.
    """

    columns = ORDERS
    events = ("rows",)
    truth = np.ones((1, 1), np.uint8)
    means = ("mean_kendall", "mean_spearman", f"overlap@{FIRST}")

    def outcomes(self, batch: Batch) -> Outcomes:
        (model, begins), (people, other) = (batch.lists(name) for name in ORDERS)
        if (unlike := np.diff([*begins, len(model)]) != np.diff([*other, len(people)])).any():
            raise batch.wrong("columns places and people", unlike, "of another length; write one of each entry in both")
        rows = zip(*(np.split(some, begins[1:]) for some in (model, people)), strict=True)
        return Outcomes(np.zeros(len(batch), np.uint16), None, np.array([correlations(*row) for row in rows]))

    def names(self, sums: Floats) -> tuple[str, ...]:
        return ()

    def tied(self, sums: Floats) -> None:
        return None


def correlations(a: Floats, b: Floats) -> tuple[float, float, float]:
    """Kendall's tau-b, Spearman's rho, and the percent of the first five of ``b`` that are among those of ``a``; NaN
    where one of them ties all, or ``b`` has no first five.

    Args:
        a, b: how many entries are before each, shape (n,); equal ones tie.
    """
    signs = [np.sign(np.subtract.outer(some, some)).astype(np.int8)[None] for some in (a, b)]
    ranks = np.stack([_mean_ranks(some) for some in (a, b)])
    deviations = ranks - ranks.mean(1, keepdims=True)
    # rho = Pearson's correlation of ranks, those of a tie being their mean
    squares = np.square(deviations).sum(1).prod()
    rho = float(deviations.prod(0).sum() / np.sqrt(squares)) if squares else float("nan")
    first, theirs = (_first(some) for some in (a, b))
    overlap = 100 * float((first & theirs).sum()) / FIRST if theirs.sum() == FIRST else float("nan")
    return float(tau(*signs)[0]), rho, overlap


def _mean_ranks(before: Floats) -> Floats:
    _, which, counts = np.unique(before, return_inverse=True, return_counts=True)
    ends = counts.cumsum()
    return np.asarray((ends - (counts - 1) / 2)[which], np.float64)


def _first(before: Floats) -> NDArray[np.bool_]:
    """Entries that are among the first five however ties fall."""
    _, which, counts = np.unique(before, return_inverse=True, return_counts=True)
    return np.asarray((counts.cumsum() <= FIRST)[which], np.bool_)
