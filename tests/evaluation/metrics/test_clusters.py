"""Clusters are summed and counted as a loop would, and in an order that does not depend on that of rows."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinset.evaluation.metrics.bootstrap import alike, distinct_rows
from twinset.evaluation.metrics.measure import measure

TRUTH = np.array([[1, 0, 0], [1, 1, 0], [1, 1, 1], [1, 0, 1]], np.uint8)
NUMBERS = st.one_of(st.integers(-3, 3), st.integers(-200, 200), st.integers(-(2**40), 2**40))


@given(st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), min_size=1, max_size=40))
def test_rows_are_counted_in_the_order_of_their_bytes(batch: list[tuple[int, int, int]]) -> None:
    rows, counts = distinct_rows(np.array(batch, np.int64), np.ones(len(batch), np.int64))
    assert {tuple(row): n for row, n in zip(rows.tolist(), counts.tolist(), strict=True)} == Counter(batch)
    wide = [row.tobytes() for row in rows]
    assert wide == sorted(wide) and len({*wide}) == len(wide)
    again = distinct_rows(np.array(batch[::-1], np.int64), np.full(len(batch), 2))
    np.testing.assert_array_equal(again[0], rows)
    np.testing.assert_array_equal(again[1], 2 * counts)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 6)), min_size=1, max_size=50))
def test_clusters_are_summed_and_counted_like_a_loop(rows: list[tuple[int, int]]) -> None:
    rows = sorted(rows, key=lambda row: row[1])
    codes, groups = np.array([row[0] for row in rows]), np.array([row[1] for row in rows], np.uint64)
    sums, counts = alike(codes, TRUTH, groups)
    each = [tuple(TRUTH[codes[groups == group]].sum(0).tolist()) for group in np.unique(groups)]
    found = {tuple(row): count for row, count in zip(sums.tolist(), counts.tolist(), strict=True)}
    assert found == {row: each.count(row) for row in each}


def test_figures_do_not_depend_on_how_many_rows_are_read_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    scores = {name: rng.normal(size=3000).round(1) for name in ("s00", "s01", "s10", "s11")}
    identity = {"group": rng.integers(0, 400, 3000).astype(str), "half": rng.choice(["a", "b", "c"], 3000)}
    table = pa.table(identity | scores)
    whole = measure(table, ["half"])
    monkeypatch.setattr("twinset.evaluation.score_files.opening.ROWS", 70)
    blocks = measure(table, ["half"])
    for one, other in ((whole.all, blocks.all), *zip(whole.by.values(), blocks.by.values(), strict=True)):
        assert (one.n, one.groups, one.ties) == (other.n, other.groups, other.ties)
        for name, figure in one.figures.items():
            same = other.figures[name]
            if name.startswith("mean_"):  # sums of floating point numbers in another order
                assert (figure.value, figure.low) == pytest.approx((same.value, same.low), rel=1e-12)
            else:
                assert (figure.value, figure.low, figure.high) == (same.value, same.low, same.high)
