"""Two tables of scores compared row by row."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from twinset.contracts.errors import WrongUse
from twinset.evaluation.metrics.compare import compare, holm
from twinset.evaluation.metrics.matching import SCORES
from twinset.evaluation.metrics.measure import measure
from twinset.generators.blind_guesses import sign_test


def scores(n: int, lead: float, seed: int, **columns: Any) -> pa.Table:
    drawn = np.random.default_rng(seed).normal(size=(4, n))
    drawn[[0, 3]] += lead
    return pa.table({"key": [f"k{row}" for row in range(n)]} | dict(zip(SCORES, drawn, strict=True)) | columns)


@given(st.integers(0, 3000), st.integers(0, 3000))
def test_mcnemar_is_the_binomial_test(only_a: int, only_b: int) -> None:
    wanted = scipy.stats.binomtest(only_a, only_a + only_b).pvalue if only_a + only_b else 1.0
    assert sign_test(only_a, only_b) == pytest.approx(wanted, rel=1e-9, abs=1e-250)


@pytest.mark.parametrize(("only_a", "only_b"), [(500_000, 502_000), (1, 40), (0, 5), (7, 7), (8, 7)])
def test_mcnemar_of_extremes(only_a: int, only_b: int) -> None:
    assert sign_test(only_a, only_b) == pytest.approx(scipy.stats.binomtest(only_a, only_a + only_b).pvalue, rel=1e-7)


def test_holm() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.7]) == [1, 1] and holm([]) == []


def test_compare_equals_measuring_both_and_a_loop_over_pairs() -> None:
    half = ["x", "y"] * 100
    a, b = scores(200, 1.0, 0, type=half), scores(200, 0.6, 1, type=half)
    found = compare(a, b, ["type"])
    assert [(line.rows, line.figure) for line in found.table] == [
        (rows, figure) for rows in ("all", "x", "y") for figure in ("text", "image", "group")
    ]
    one, other = (measure(table, ["type"], resamples=0) for table in (a, b))
    for line in found.table:
        first, second = ((which.all if line.rows == "all" else which.by[line.rows]) for which in (one, other))
        assert (line.a, line.b) == pytest.approx((first.figures[line.figure].value, second.figures[line.figure].value))
        assert line.difference == pytest.approx(line.a - line.b)
        assert line.p == pytest.approx(scipy.stats.binomtest(line.only_a, line.only_a + line.only_b).pvalue)
        assert line.low is not None and line.high is not None and line.low < line.difference < line.high
    assert [line.p_holm for line in found.table] == pytest.approx(holm([line.p for line in found.table]))
    right = [
        np.array([row["s00"] > row["s01"] and row["s11"] > row["s10"] for row in table.to_pylist()]) for table in (a, b)
    ]
    assert found.table[0].only_a == (right[0] & ~right[1]).sum()


def test_the_interval_is_paired_and_clustered() -> None:
    groups = [f"g{row // 5}" for row in range(500)]
    a = scores(500, 1.0, 0, group=groups)
    same = compare(a, a)
    assert {(line.difference, line.low, line.high, line.p) for line in same.table} == {(0, 0, 0, 1)}
    assert same.table[0].groups == 100
    b = scores(500, 1.0, 1)
    rng, right = np.random.default_rng(0), []
    for table in (a, b):
        s00, s01, s10, s11 = (table[name].to_numpy() for name in SCORES)
        right.append((s00 > s01) & (s11 > s10))
    difference = (right[0].astype(int) - right[1]).reshape(100, 5).sum(1)
    drawn = [100 * difference[rng.integers(0, 100, 100)].sum() / 500 for _ in range(4000)]
    line = compare(a, b, resamples=4000).table[0]
    assert (line.low, line.high) == pytest.approx(np.percentile(drawn, [2.5, 97.5]), abs=1.0)


def test_rows_are_joined_by_key_and_the_others_counted() -> None:
    a, b = scores(100, 1.0, 0), scores(100, 0.5, 1)
    whole = compare(a, b, resamples=0)
    shuffled = b.take(np.random.default_rng(0).permutation(100))
    assert compare(a, shuffled, resamples=0) == whole
    found = compare(a, b.slice(30), resamples=0)
    assert (found.n, found.only_in_a, found.only_in_b) == (70, 30, 0)
    assert any("30 rows of table are not in table" in note for note in found.notes)


def test_recall_and_outcomes_and_chosen_figures() -> None:
    ranks = {"key": ["a", "b"], "tied": [0, 0], "entries": [15, 15], "targets": [1, 1]}
    found = compare(pa.table(ranks | {"higher": [0, 1]}), pa.table(ranks | {"higher": [0, 0]}))
    assert [(line.figure, line.a, line.b) for line in found.table][:2] == [
        ("recall@1", 50, 100),
        ("recall@2", 100, 100),
    ]
    a, b = scores(20, 1.0, 0), scores(20, 1.0, 1)
    assert [line.figure for line in compare(a, b, figures=["tpos2i"]).table] == ["tpos2i"]
    with pytest.raises(WrongUse, match="--figures accuracy: the files have text, image"):
        compare(a, b, figures=["accuracy"])
    outcomes = pa.table({"correct": [1, 0, 1]}), pa.table({"correct": [1, 1, 1]})
    (line,) = compare(*outcomes, key=None).table
    assert (line.only_a, line.only_b, line.p) == (0, 1, 1)


def test_files_that_cannot_be_compared() -> None:
    a = scores(5, 1.0, 0)
    double = pa.concat_tables([a, a.slice(2, 1)])
    for pair in ((double, a), (a, double)):
        with pytest.raises(WrongUse, match="rows 3 and 6 have the same key"):
            compare(*pair)
    with pytest.raises(WrongUse, match="no key in common"):
        compare(a, a.set_column(0, "key", [["1", "2", "3", "4", "5"]]))
    with pytest.raises(WrongUse, match="different kinds"):
        compare(a, pa.table({"key": ["k1"], "higher": [0], "tied": [0], "entries": [9], "targets": [1]}))
    with pytest.raises(WrongUse, match="no column 'name' for --key"):
        compare(a, a, key=["name"])
    with pytest.raises(WrongUse, match="5 and 4 rows"):
        compare(a, a.slice(1), key=None)
    with pytest.raises(WrongUse, match="some rows have one image"):
        compare(a, a.select(["key", "s00", "s01"]))


def test_figures_of_a_threshold_are_compared_where_both_files_have_one() -> None:
    table = pa.table({"key": ["a", "b"], "s00": [0.9, 0.8], "s01": [0.1, 0.2]})
    told = table.replace_schema_metadata({"twinset": '{"threshold": 0.5}'})
    assert [row.b for row in compare(told, told, figures=["p_c"]).table] == [100]
    for pair in ((told, table), (table, told)):
        with pytest.raises(WrongUse, match="--figures p_c: the files have accuracy"):
            compare(*pair, figures=["p_c"])
