"""Figures over seeds: of one seed as `measure` has them; several widen the interval by what seeds differ.

Rank correlations of two orders, against SciPy's; the first five however ties fall.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau, spearmanr

from twinset.contracts.errors import WrongUse
from twinset.evaluation.metrics.measure import measure
from twinset.evaluation.metrics.over_seeds import mean_of, over_seeds
from twinset.evaluation.metrics.ranking import correlations

GROUPS = 60


def scores(path: Path, seed: int, skill: float, groups: int = GROUPS) -> Path:
    """Two pairs a group; skill: what the right score is higher by, on average."""
    rng = np.random.default_rng(seed)
    n = 2 * groups
    right, wrong = rng.normal(skill, 1, (2, n)), rng.normal(0, 1, (2, n))
    columns = {"s00": right[0], "s11": right[1], "s01": wrong[0], "s10": wrong[1]}
    keys = {"key": [f"k{i}" for i in range(n)], "group": [f"g{i // 2}" for i in range(n)]}
    pq.write_table(pa.table({**keys, **columns}), path)
    return path


def test_one_seed_is_the_bootstrap_of_measure(tmp_path: Path) -> None:
    path = scores(tmp_path / "a.parquet", 0, 0.7)
    measured = measure(path).all.figures
    for name, one in over_seeds([path], "all").items():
        figure = one.figure()
        assert figure.value == pytest.approx(measured[name].value)
        assert (figure.low, figure.high) == pytest.approx((measured[name].low, measured[name].high), abs=1e-9)


def test_seeds_that_agree_add_nothing_and_seeds_that_differ_widen_the_interval(tmp_path: Path) -> None:
    weak, strong = scores(tmp_path / "w.parquet", 1, 0.2), scores(tmp_path / "s.parquet", 2, 1.5)
    alone = over_seeds([weak], "t")["group"]
    same = over_seeds([weak, weak, weak], "t")["group"]
    assert same.value == alone.value and np.allclose(np.sort(same.again), np.sort(alone.again))
    apart = over_seeds([weak, strong], "t")["group"]
    strong_alone = over_seeds([strong], "t")["group"]
    assert apart.value == pytest.approx((alone.value + strong_alone.value) / 2)
    widths = [np.subtract(*np.percentile(one.again, [97.5, 2.5])) for one in (apart, alone, strong_alone)]
    assert widths[0] > max(widths[1:])


def test_a_mean_over_tests_is_narrower_than_each(tmp_path: Path) -> None:
    each = [over_seeds([scores(tmp_path / f"{n}.parquet", n, 0.7)], f"test {n}")["group"] for n in range(4)]
    mean = mean_of(each)
    assert mean.value == pytest.approx(np.mean([one.value for one in each]))
    assert np.std(mean.again) < 0.7 * min(np.std(one.again) for one in each)


def test_seeds_of_other_examples_are_refused(tmp_path: Path) -> None:
    one, other = scores(tmp_path / "a.parquet", 0, 1), scores(tmp_path / "b.parquet", 0, 1, groups=20)
    with pytest.raises(WrongUse, match=r"b.parquet: has other examples than .*a.parquet; score both on the same data"):
        over_seeds([one, other], "t")


def test_one_group_has_no_interval(tmp_path: Path) -> None:
    one = over_seeds([scores(tmp_path / "a.parquet", 0, 1, groups=1)], "t")["group"]
    assert one.figure().low is None and mean_of([one, one]).figure().low is None


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
