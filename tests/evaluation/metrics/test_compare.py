"""Two tables of scores compared row by row; the bootstrap clustered by group: what groups and seeds do."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import scipy.stats

from twinset.contracts.errors import WrongUse
from twinset.evaluation.metrics.compare import compare, holm
from twinset.evaluation.metrics.matching import SCORES
from twinset.evaluation.metrics.measure import measure


def scores(n: int, lead: float, seed: int, **columns: Any) -> pa.Table:
    drawn = np.random.default_rng(seed).normal(size=(4, n))
    drawn[[0, 3]] += lead
    return pa.table({"key": [f"k{row}" for row in range(n)]} | dict(zip(SCORES, drawn, strict=True)) | columns)


def text(table: pa.Table) -> Any:
    s00, s01, s10, s11 = (table[name].to_numpy() for name in SCORES)
    return (s00 > s01) & (s11 > s10)


def test_holm() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.7]) == [1, 1] and holm([]) == []


def test_compare_equals_measuring_both_and_a_loop_over_pairs() -> None:
    half = ["x", "y"] * 100
    a, b = scores(200, 1.0, 0, type=half), scores(200, 0.6, 1, type=half)
    lines = compare(a, b, ["type"]).as_json()["table"]
    assert [(line["rows"], line["figure"]) for line in lines] == [
        (rows, figure) for rows in ("all", "x", "y") for figure in ("text", "image", "group")
    ]
    measured = [measure(table, ["type"], resamples=0) for table in (a, b)]
    for line in lines:
        parts = [results.all if line["rows"] == "all" else results.by[line["rows"]] for results in measured]
        assert [line["a"], line["b"]] == pytest.approx([part.figures[line["figure"]].value for part in parts])
        assert line["difference"] == pytest.approx(line["a"] - line["b"])
        only = line["only_a"], line["only_b"]
        assert line["p"] == pytest.approx(scipy.stats.binomtest(only[0], sum(only)).pvalue)  # McNemar's exact test
        assert line["low"] < line["difference"] < line["high"]
    assert [line["p_holm"] for line in lines] == pytest.approx(holm([line["p"] for line in lines]))
    assert lines[0]["only_a"] == (text(a) & ~text(b)).sum()


def test_the_interval_is_paired_and_clustered() -> None:
    groups = [f"g{row // 5}" for row in range(500)]
    a, b = scores(500, 1.0, 0, group=groups), scores(500, 1.0, 1)
    same = compare(a, a).table
    assert same.select("difference", "low", "high", "p", "groups").unique().rows() == [(0, 0, 0, 1, 100)]
    difference = (text(a).astype(int) - text(b)).reshape(100, 5).sum(1)
    rng = np.random.default_rng(0)
    drawn = [100 * difference[rng.integers(0, 100, 100)].sum() / 500 for _ in range(4000)]
    line = compare(a, b, resamples=4000).table.row(0, named=True)
    assert (line["low"], line["high"]) == pytest.approx(np.percentile(drawn, [2.5, 97.5]), abs=1.0)


def test_rows_are_joined_by_key_and_the_others_counted() -> None:
    a, b = scores(100, 1.0, 0), scores(100, 0.5, 1)
    shuffled = b.take(np.random.default_rng(0).permutation(100))
    assert compare(a, shuffled).as_json() == compare(a, b).as_json()
    compared = compare(a, b.slice(30), resamples=0)
    assert (compared.n, compared.only_in_a, compared.only_in_b) == (70, 30, 0)
    assert any("30 rows of table are not in table" in note for note in compared.notes)
    with pytest.raises(WrongUse, match="is 'all', which all together are called"):
        compare(a.append_column("side", pa.array(["all", "x"] * 50)), b, ["side"])
    with pytest.raises(WrongUse, match="different kinds"):
        compare(a, pa.table({"key": ["k0"], "errors": [[0.5]]}))


def test_an_interval_depends_on_seed_and_rows_but_not_on_their_order() -> None:
    rng = np.random.default_rng(0)
    columns = {"correct": rng.random(500) < 0.4, "video": rng.integers(0, 60, 500), "half": ["a", "b"] * 250}
    table, shuffled = pa.table(columns), pa.table({name: np.array(column)[::-1] for name, column in columns.items()})
    first = measure(table, ["half"], 0, group="video")
    assert first == measure(shuffled, ["half"], 0, group="video")
    assert first.all == measure(table, seed=0, group="video").all != measure(table, seed=1, group="video").all


def test_the_error_of_a_mean_is_that_of_its_clusters_and_it_begins_at_0_or_above() -> None:
    rng = np.random.default_rng(2)
    groups = rng.integers(0, 300, 3000)
    numbers = np.abs(rng.normal(size=3000) + rng.normal(size=300)[groups])  # equivariance of these scores
    table = pa.table({"s00": numbers, **dict.fromkeys(("s01", "s10", "s11"), np.zeros(3000)), "group": groups})
    figure = measure(table).all.figures["mean_equivariance_text"]
    members = [numbers[groups == group] for group in np.unique(groups)]
    means = [np.concatenate([members[n] for n in rng.integers(0, 300, 300)]).mean() for _ in range(600)]
    assert figure.value == pytest.approx(numbers.mean(), abs=1e-9) and figure.low is not None
    assert (figure.value - figure.low) / 1.96 == pytest.approx(np.std(means), rel=0.1)
    few = {"s00": [0.5, 0.5, 5.0], **dict.fromkeys(("s01", "s10"), [0.0] * 3), "s11": [0.5] * 3}
    figure = measure(pa.table(few)).all.figures["mean_equivariance_text"]
    assert figure.value == 1.5 and figure.low == 0


def test_a_figure_that_one_group_is_asked_has_no_interval() -> None:
    scores = {"s00": [1.0, 0.0, 1.0] + [1.0] * 6, "s01": [0.0, 1.0, 0.0] + [0.0] * 6}
    scores |= {"s10": [None] * 3 + [0.0] * 6, "s11": [None] * 3 + [1.0] * 6}
    table = pa.table({"key": [*"abcdefghi"], "group": ["x"] * 3 + [*"stuvwy"], **scores})
    figures = measure(table).all.figures
    assert (figures["accuracy"].low, figures["accuracy"].rows) == (None, 3) and figures["text"].low == 100
    counts = compare(table, table).table.select("figure", "n", "groups", "low").rows()
    assert {("accuracy", 3, 1, None), ("text", 6, 6, 0)} < {*counts}
