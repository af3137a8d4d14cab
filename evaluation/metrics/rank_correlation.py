"""Whether two benchmarks put models in the same order (BiVLC, Finding 3; GeneCIS, Figure 6): Kendall's tau-b."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from twinset.evaluation.metrics.bootstrap import interval
from twinset.evaluation.metrics.figures import Figure
from twinset.evaluation.metrics.outcomes import Floats

LEAST = 4  # models: of three, one order in six is the same by chance
_DRAWS = 100  # of models, that are compared together


def rank_correlation(a: Sequence[float], b: Sequence[float], seed: int = 0, resamples: int = 2000) -> Figure:
    """Kendall's tau-b, -1 to 1, of what two benchmarks give to the same models; NaN where one ties them all.

    The interval is of models drawn with replacement.
    """
    order = [np.sign(np.subtract.outer(some, some)).astype(np.int8) for some in (np.array(a), np.array(b))]
    draws = np.random.default_rng(seed).integers(0, len(a), (resamples, len(a)))
    lots = [draws[first : first + _DRAWS] for first in range(0, resamples, _DRAWS)]
    again = np.concatenate([tau(*(one[lot[:, :, None], lot[:, None, :]] for one in order)) for lot in lots])
    return Figure(float(tau(order[0][None], order[1][None])[0]), None, *interval(again))


def tau(a: NDArray[np.int8], b: NDArray[np.int8]) -> Floats:
    """Of signs of differences, shape (n, models, models), shape (n,)."""
    # tau_b = Σ sign(a_i - a_j) sign(b_i - b_j) / sqrt(Σ sign(a_i - a_j)^2 · Σ sign(b_i - b_j)^2)
    above = np.einsum("nij,nij->n", a, b, dtype=np.int64)
    below = np.einsum("nij,nij->n", a, a, dtype=np.int64) * np.einsum("nij,nij->n", b, b, dtype=np.int64)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(above / np.sqrt(below), np.float64)
