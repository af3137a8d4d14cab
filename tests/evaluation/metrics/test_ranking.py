"""Rank correlations of two orders, against SciPy's; the first five however ties fall."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau, spearmanr

from twinset.contracts.errors import WrongUse
from twinset.evaluation.metrics.measure import measure
from twinset.evaluation.metrics.ranking import correlations

Values = st.integers(2, 12).flatmap(lambda n: st.tuples(*[st.lists(st.integers(0, 6), min_size=n, max_size=n)] * 2))


@settings(max_examples=200)
@given(Values)
def test_as_scipy(values: tuple[list[int], list[int]]) -> None:
    a, b = (np.array(one, np.float64) for one in values)
    tau, rho, _ = correlations(a, b)
    if len({*a}) == 1 or len({*b}) == 1:
        assert np.isnan(tau) and np.isnan(rho)
    else:
        assert tau == pytest.approx(kendalltau(a, b).statistic)
        assert rho == pytest.approx(spearmanr(a, b).statistic)


def overlap(a: list[int], b: list[int]) -> float:
    return correlations(np.array(a, np.float64), np.array(b, np.float64))[2]


def test_the_first_five_are_those_who_are_there_however_ties_fall() -> None:
    order = [*range(10)]
    assert overlap(order, order) == 100 and overlap(order[::-1], order) == 0
    assert overlap([0, 1, 2, 3, 4, 4, 6, 7, 8, 9], order) == 80  # two tie for the fifth place
    assert np.isnan(overlap(order, [0, 1, 2, 3, 4, 4, 4, 4, 4, 4]))  # people put four in order
    assert overlap(order, [0, 1, 2, 3, 4, 5, 5, 5, 5, 5]) == 100


def table(places: list[list[int]], people: list[list[int]]) -> pa.Table:
    ranks = {"higher": 0, "tied": 0, "entries": 6, "targets": 1, "tied_targets": 1}
    rows = [
        {"key": f"k{n}", "subset": "s", "category": "", "group": f"g{n}", **ranks, "places": a, "people": b}
        for n, (a, b) in enumerate(zip(places, people, strict=True))
    ]
    return pa.Table.from_pylist(rows).replace_schema_metadata({"twinset": '{"metrics": ["ranking"]}'})


def test_figures_are_means_over_the_queries_that_have_one() -> None:
    up, down, tied = [0, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0], [0, 1, 1, 1, 1, 1]
    found = measure(table([up, up, up], [up, down, tied]), resamples=0).all.figures
    taus = [1, -1, correlations(np.array(up, float), np.array(tied, float))[0]]
    assert found["mean_kendall"].value == pytest.approx(np.mean(taus))
    assert found["overlap@5"].value == pytest.approx(np.mean([100, 80]))
    assert found["recall@1"].value == 100


def test_orders_of_unlike_length_are_refused() -> None:
    with pytest.raises(WrongUse, match="row 2, columns places and people: of another length"):
        measure(table([[0, 1], [0, 1]], [[0, 1], [0, 1, 2]]))
