"""What a design can detect: variances of made studies come out as they were put in, and power as it was asked for."""

import numpy as np
import pytest

from studies.science.power import _Seen, ratios, smallest_difference, spreads

OF_SEEDS, SHARED, OWN = 0.6, 8.0, 20.0  # standard deviations in percentage points
GROUPS = 500


def made(rng: np.random.Generator, seeds: int, groups: int, difference: float = 0.0) -> np.ndarray:
    """Differences of groups, shape (seeds, groups)."""
    of_groups = SHARED * rng.normal(size=groups) + OWN * rng.normal(size=(seeds, groups))
    return difference + OF_SEEDS * rng.normal(size=(seeds, 1)) + of_groups


def test_variances_of_seeds_and_scenes_are_told_apart() -> None:
    rng = np.random.default_rng(0)
    seen = [spreads(made(rng, 2, GROUPS)) for _ in range(4000)]
    of_seeds, shared = ratios(seen)
    every = SHARED**2 + OWN**2
    assert np.mean([one.within for one in seen]) == pytest.approx(every, rel=0.02)
    assert shared == pytest.approx(SHARED**2 / every, rel=0.05)
    assert of_seeds == pytest.approx(OF_SEEDS**2 / every, rel=0.15)


def test_seeds_that_differ_no_more_than_their_scenes_do_add_nothing() -> None:
    assert ratios([_Seen(100.0, 0.0, 0.1, 500)]) == (0.0, 0.0)
    assert ratios([_Seen(0.0, 0.0, 0.0, 500)]) == (0.0, 0.0)
    assert ratios([_Seen(100.0, -3.0, 0.4, 500)]) == (pytest.approx(0.002), 0.0)


@pytest.mark.parametrize("power", [50.0, 80.0, 95.0])
def test_the_smallest_difference_is_detected_as_often_as_is_asked(power: float) -> None:
    """Where seeds and their own noise are all that there is, the test is the t test that the power is of."""
    seeds, groups, trials = 5, 1000, 20_000
    within, of_seeds = OWN**2, 0.5
    smallest = smallest_difference(within, of_seeds**2 / within, 0.0, seeds, groups, power)
    rng = np.random.default_rng(0)
    means = smallest + rng.normal(size=(trials, seeds)) * np.sqrt(of_seeds**2 + within / groups)
    t = means.mean(1) / (means.std(1, ddof=1) / np.sqrt(seeds))
    critical = 2.7764451  # t_{.975, 4}
    assert 100 * np.mean(np.abs(t) > critical) == pytest.approx(power, abs=1.5)


def test_more_seeds_and_more_scenes_detect_less() -> None:
    def smallest(seeds: int, groups: int) -> float:
        return smallest_difference(400.0, 0.001, 0.2, seeds, groups, 80)

    assert smallest(5, 4000) < smallest(5, 1000) and smallest(10, 1000) < smallest(5, 1000)
