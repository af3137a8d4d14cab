"""The hierarchical bootstrap of paired differences: seeds are resampled, then groups of test examples.

All seeds are tested on the same examples. So the groups of a resample are drawn once and hold for each of its seeds:
an example that is hard is hard for every seed, and averaging over seeds must not hide it (Owen, 2007, "The pigeonhole
bootstrap"). With scenes as the larger source of chance this makes intervals a little too wide. With seeds as the
larger one they are too narrow, since five seeds say little of their spread; `wide_level` widens them for that.
"""

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
LEVEL = 95.0  # percent
_BLOCK = 4_000_000  # weights at a time


def resampled_differences(added: Integers, rows: Integers, resamples: int, seed: int) -> Floats:
    """Differences over resamples of seeds and of groups; all comparisons share the resamples.

    With weights w of seeds and v of groups, both multinomial with as many draws as there are seeds and groups,
    difference = 100 · Σ_s Σ_g w_s v_g added_sg / (Σ_s w_s · Σ_g v_g rows_g).

    Args:
        added: rows that A has right less those that B has, shape (comparisons, seeds, groups).
        rows: of each group, shape (groups,).
        resamples: number of them.
        seed: of the random numbers.

    Returns:
        Percentage points, shape (resamples, comparisons).
    """
    comparisons, seeds, groups = added.shape
    rng = np.random.default_rng(seed)
    found = np.empty((resamples, comparisons))
    block = max(1, _BLOCK // max(groups, 1))
    each_seed, each_group = np.full(seeds, 1 / seeds), np.full(groups, 1 / groups)
    for first in range(0, resamples, block):
        size = min(block, resamples - first)
        of_seeds = rng.multinomial(seeds, each_seed, size).astype(np.float64)
        of_groups = rng.multinomial(groups, each_group, size).astype(np.float64)
        # (size, groups) @ (groups, comparisons) for each seed, then weighed by the seed's own weight.
        total = np.zeros((size, comparisons))
        for place in range(seeds):
            total += of_seeds[:, place, None] * (of_groups @ added[:, place].T.astype(np.float64))
        found[first : first + size] = 100 * total / (seeds * (of_groups @ rows.astype(np.float64)))[:, None]
    return found


def differences(added: Integers, rows: Integers) -> Floats:
    """The differences themselves in percentage points, shape (comparisons,); arguments as `resampled_differences`."""
    found: Floats = 100 * added.sum((1, 2)) / (added.shape[1] * rows.sum())
    return found


def interval(values: Floats, level: float = LEVEL) -> tuple[float, float]:
    """The percentiles between which ``level`` percent of the resamples lie, as many below as above."""
    low, high = np.percentile(values, [(100 - level) / 2, (100 + level) / 2])
    return float(low), float(high)


def wide_level(seeds: int) -> float:
    """The level (percent) at which percentiles of a bootstrap of so few seeds cover 95 percent.

    Resampled seeds spread too little, by (n - 1) / n in variance, and their spread is itself uncertain, as in a t test.
    Hesterberg's (2015) expanded percentiles mend both: Φ(-z) and Φ(z) with z = t_{.975, n - 1} · √(n / (n - 1)).

    Raises:
        ValueError: fewer than two seeds have no spread.
    """
    from scipy.special import ndtr, stdtrit

    if seeds < 2:
        raise ValueError("two seeds or more")
    z = float(stdtrit(seeds - 1, 0.5 + LEVEL / 200)) * math.sqrt(seeds / (seeds - 1))
    return 100 * (1 - 2 * float(ndtr(-z)))


def p_value(values: Floats) -> float:
    """Two-sided p of no difference: twice the smaller share of resamples on one side of 0.

    One is added to both counts, so that no p is 0: p = min(1, 2 · (1 + min(#{d ≤ 0}, #{d ≥ 0})) / (1 + resamples)).
    """
    least = min(int((values <= 0).sum()), int((values >= 0).sum()))
    return min(1.0, 2 * (1 + least) / (1 + len(values)))
