"""How alike the orders of people and of a model are (EqBen, Figure 7): rank correlations, overlap of the first."""

import numpy as np
from numpy.typing import NDArray

from twinset.evaluation.metrics import correlation
from twinset.evaluation.metrics.outcomes import Floats, Outcomes, ScoreKind
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
    found = correlation.correlations([*a], [*b], None, resamples=0)
    first, theirs = (_first(some) for some in (a, b))
    overlap = 100 * float((first & theirs).sum()) / FIRST if theirs.sum() == FIRST else float("nan")
    return found[correlation.KENDALL].value, found[correlation.SPEARMAN].value, overlap


def _first(before: Floats) -> NDArray[np.bool_]:
    """Entries that are among the first five however ties fall."""
    _, which, counts = np.unique(before, return_inverse=True, return_counts=True)
    return np.asarray((counts.cumsum() <= FIRST)[which], np.bool_)
