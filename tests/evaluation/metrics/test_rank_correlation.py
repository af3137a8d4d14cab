"""Rank correlation of two benchmarks over models."""

import numpy as np
import pytest
from scipy.stats import kendalltau

from twinset.evaluation.metrics.rank_correlation import rank_correlation


@pytest.mark.parametrize("seed", range(5))
def test_it_is_scipys_tau_b_with_ties(seed: int) -> None:
    a, b = np.random.default_rng(seed).integers(0, 6, (2, 9)).tolist()
    found = rank_correlation(a, b)
    assert found.value == pytest.approx(kendalltau(a, b).statistic)
    assert found.low is not None and found.high is not None and -1 <= found.low <= found.value <= found.high <= 1
    draws = np.random.default_rng(0).integers(0, 9, (2000, 9))
    again = [kendalltau(np.array(a)[draw], np.array(b)[draw]).statistic for draw in draws[:300]]
    some = rank_correlation(a, b, resamples=300)
    wanted = np.percentile([one for one in again if not np.isnan(one)], [2.5, 97.5])
    # The first draws of a generator do not depend on how many are asked for.
    assert (some.low, some.high) == pytest.approx(tuple(wanted))


def test_one_order_and_the_reverse() -> None:
    assert rank_correlation([1, 2, 3, 4], [10, 20, 30, 40]).value == 1
    assert rank_correlation([1, 2, 3, 4], [4, 3, 2, 1]).value == -1
    assert np.isnan(rank_correlation([1, 2, 3, 4], [5, 5, 5, 5]).value)
