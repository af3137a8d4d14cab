"""How far two lists of numbers go together: Kendall's tau-b, Spearman's rho and Pearson's r, -1 to 1.

Of benchmarks, over models (BiVLC, Finding 3; GeneCIS, Figure 6); of a check and people, over images (Hu et al. 2023).
"""

from collections.abc import Sequence

import numpy as np

from twinset.contracts.errors import WrongUse
from twinset.evaluation.metrics.bootstrap import interval
from twinset.evaluation.metrics.figures import Figure
from twinset.evaluation.metrics.outcomes import Floats

LEAST = 4  # values: of three, one order in six is the same by chance
KENDALL, SPEARMAN, PEARSON = "kendall", "spearman", "pearson"
_CELLS = 4_000_000  # of tables at a time


def rank_correlation(a: Sequence[float], b: Sequence[float], seed: int = 0, resamples: int = 2000) -> Figure:
    """Kendall's tau-b of what two benchmarks give to the same models."""
    return correlations(a, b, None, seed, resamples)[KENDALL]


def correlations(
    a: Sequence[float], b: Sequence[float], groups: Sequence[str] | None, seed: int = 0, resamples: int = 2000
) -> dict[str, Figure]:
    """All three, by name; NaN where one list has a single value.

    The intervals are of groups drawn with replacement; of rows where there are none.

    Raises `WrongUse`: both lists have thousands of different values.
    """
    (of_a, i), (of_b, j) = (np.unique(np.asarray(one, np.float64), return_inverse=True) for one in (a, b))
    if len(of_a) * len(of_b) > _CELLS:
        raise WrongUse(f"{len(of_a):,} and {len(of_b):,} different values are too many to compare; round one of them")
    # Rows with the same two numbers are one cell of a table of counts, from which all three follow.
    cells, cell = np.unique(i * len(of_b) + j, return_inverse=True)
    clusters = np.unique(groups, return_inverse=True)[1] if groups is not None else np.arange(len(cell))
    count = int(clusters.max()) + 1
    rng, found = np.random.default_rng(seed), list[Floats]()
    drawn, some = 0, max(1, _CELLS // (len(of_a) * len(of_b)))
    weights = np.ones((1, count))
    while True:
        table = np.zeros((len(weights), len(of_a) * len(of_b)))
        table[:, cells] = [np.bincount(cell, each[clusters], len(cells)) for each in weights]
        found.append(_three(table.reshape(-1, len(of_a), len(of_b)), of_a, of_b))
        if drawn == resamples:
            break
        size = min(some, resamples - drawn)
        weights = rng.multinomial(count, np.full(count, 1 / count), size).astype(np.float64)
        drawn += size
    values, names = np.concatenate(found), (KENDALL, SPEARMAN, PEARSON)
    ranges = [interval(each) if count > 1 else (None, None) for each in values[1:].T]
    return {name: Figure(float(values[0, n]), None, *ranges[n]) for n, name in enumerate(names)}


def _three(table: Floats, of_a: Floats, of_b: Floats) -> Floats:
    """Kendall, Spearman and Pearson, shape (n, 3), of tables of counts, shape (n, values of a, values of b)."""
    a, b, n = table.sum(2), table.sum(1), table.sum((1, 2))
    above = table.cumsum(1)[:, :-1]  # counts with a smaller a, by b
    below = above.cumsum(2)  # and with a b that is not larger
    # tau_b = (C - D) / sqrt((n^2 - Σ a_i^2) (n^2 - Σ b_j^2) / 4), over pairs of rows
    concordant = (table[:, 1:, 1:] * below[:, :, :-1]).sum((1, 2))
    discordant = (table[:, 1:] * (below[:, :, -1:] - below)).sum((1, 2))
    with np.errstate(invalid="ignore", divide="ignore"):
        tau = 2 * (concordant - discordant) / np.sqrt((n**2 - (a**2).sum(1)) * (n**2 - (b**2).sum(1)))
    # The mean rank of equal values, from 0: all that are smaller, and half of their own.
    ranks = [each.cumsum(1) - each / 2 for each in (a, b)]
    values = [np.broadcast_to(of, each.shape) for of, each in ((of_a, a), (of_b, b))]
    return np.stack([tau, _linear(table, *ranks), _linear(table, *values)], 1)


def _linear(table: Floats, x: Floats, y: Floats) -> Floats:
    """Pearson's r of weighted values, shapes (tables, values)."""
    a, b, n = table.sum(2), table.sum(1), table.sum((1, 2))
    x, y = (of - ((w * of).sum(1) / n)[:, None] for w, of in ((a, x), (b, y)))
    # r = Σ x y / sqrt(Σ x^2 Σ y^2) of what differs from the means
    spread = np.sqrt((a * x**2).sum(1) * (b * y**2).sum(1))
    with np.errstate(invalid="ignore", divide="ignore"):
        r = np.einsum("tij,ti,tj->t", table, x, y) / np.where(spread > 0, spread, np.nan)
    return np.asarray(np.clip(r, -1, 1))  # rounding may go beyond
