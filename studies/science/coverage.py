"""How often the intervals of the bootstrap hold the true difference, by simulation."""

from dataclasses import dataclass

import numpy as np

from studies.science.bootstrap import interval, resampled_differences, wide_level

#: Spread of seeds, in standard errors of the mean over groups of one seed.
SPREADS = (0.0, 1.0, 2.0, 5.0)
#: Spread of a group's difference that all seeds share, where each seed's own spread is 1.
SHARED = 0.3
_UNIT = 1000  # of the simulated differences, which the bootstrap takes as integers


@dataclass(frozen=True, slots=True)
class Coverage:
    """Shares (0-1) of simulated studies whose interval holds the true difference: the plain and the wide one."""

    spread: float
    plain: float
    wide: float


def simulate(seeds: int, groups: int, spread: float, trials: int, resamples: int, seed: int = 0) -> Coverage:
    """Simulate studies whose true difference is 0.

    A study's differences are a_s + b_g + e_sg: of a seed with standard deviation spread / √groups, of a group that all
    seeds share with `SHARED`, and of both with 1; all are normal.

    Args:
        spread: of seeds, in standard errors of the mean over groups of one seed.
        trials: studies. resamples: of the bootstrap of each.
    """
    rng, level, held = np.random.default_rng(seed), wide_level(seeds), np.zeros(2)
    for trial in range(trials):
        drawn = spread * rng.normal(size=(seeds, 1)) / np.sqrt(groups)
        drawn = drawn + SHARED * rng.normal(size=groups) + rng.normal(size=(seeds, groups))
        added = np.round(_UNIT * drawn).astype(np.int64)
        found = resampled_differences(added[None], np.full(groups, _UNIT), resamples, trial)[:, 0]
        for place, (low, high) in enumerate((interval(found), interval(found, level))):
            held[place] += low <= 0 <= high
    return Coverage(spread, *(held / trials).tolist())
