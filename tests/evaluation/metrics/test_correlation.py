"""Correlations with ties, and their intervals."""

import numpy as np
import pytest
from scipy.stats import kendalltau, pearsonr, spearmanr

from twinset.contracts.errors import WrongUse
from twinset.evaluation.metrics import correlation
from twinset.evaluation.metrics.correlation import correlations, rank_correlation

SCIPY = {"kendall": kendalltau, "spearman": spearmanr, "pearson": pearsonr}


@pytest.mark.parametrize("seed", range(3))
def test_they_are_scipys_with_ties(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = np.random.default_rng(seed).integers(0, 6, (2, 30)).tolist()
    found = correlations(a, b, None)
    for name, theirs in SCIPY.items():
        one = found[name]
        assert one.value == pytest.approx(theirs(a, b).statistic)
        draws = np.random.default_rng(1).integers(0, 30, (600, 30))
        again = [theirs(np.array(a)[draw], np.array(b)[draw]).statistic for draw in draws]
        assert (one.low, one.high) == pytest.approx(tuple(np.percentile(again, [2.5, 97.5])), abs=0.1)
    assert rank_correlation(a, b) == found["kendall"]
    monkeypatch.setattr(correlation, "_CELLS", 1 + len({*a}) * len({*b}))  # a table at a time
    assert correlations(a, b, None, resamples=50)["pearson"].low is not None


def test_one_order_and_the_reverse() -> None:
    assert rank_correlation([1, 2, 3, 4], [10, 20, 30, 40]).value == 1
    assert rank_correlation([1, 2, 3, 4], [4, 3, 2, 1]).value == -1
    for one in correlations([1, 2, 3, 4], [5, 5, 5, 5], None).values():
        assert np.isnan(one.value) and one.low is None


def test_rows_of_a_group_are_drawn_together() -> None:
    draw = np.random.default_rng(0)
    a = draw.normal(size=40).round(1)
    b = (a + draw.normal(size=40)).round(1)
    groups = [str(n) for n in range(40)]
    alone, whole = (correlations(list(x), list(y), g) for x, y, g in (
        (a, b, groups), (np.tile(a, 4), np.tile(b, 4), groups * 4),
    ))  # fmt: skip
    for name in SCIPY:  # four copies of a row are no more evidence than one, if they are a group
        assert (whole[name].low, whole[name].high) == pytest.approx((alone[name].low, alone[name].high), abs=1e-6)
    assert correlations([1, 2, 3], [1, 3, 2], ["a"] * 3)["kendall"].low is None


def test_too_many_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(correlation, "_CELLS", 8)
    with pytest.raises(WrongUse, match="3 and 3 different values are too many"):
        correlations([1, 2, 3], [1, 2, 3], None)
