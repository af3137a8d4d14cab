"""Grounding of boundaries at EqBen's eight thresholds.

Figures that installed packages add to every table with the columns that they read.
The bootstrap clustered by group: its weights, and what groups do to an interval.
Recall@K against galleries that are really sorted.
"""

from importlib.metadata import EntryPoint
from itertools import permutations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from twinset.contracts import doors
from twinset.contracts.errors import WrongUse
from twinset.evaluation.examples import GROUNDING_ERRORS
from twinset.evaluation.metrics.bootstrap import interval, resampled
from twinset.evaluation.metrics.compare import compare
from twinset.evaluation.metrics.measure import measure
from twinset.evaluation.metrics.outcomes import Metric
from twinset.evaluation.metrics.score_kinds import THRESHOLDS
from twinset.evaluation.score_files.batch import Batch

ERRORS = st.lists(st.sampled_from([0.0, 0.1, 0.3, 0.9, 2.0, 2.75, 8.0]), min_size=1, max_size=4)


def table(errors: Any) -> pa.Table:
    return pa.table({"errors": pa.array(errors, pa.list_(pa.float32()))})


@given(st.lists(ERRORS, min_size=1, max_size=20))
def test_grounding_equals_a_loop_over_gaps(errors: list[list[float]]) -> None:
    found = measure(table(errors), resamples=0).all
    within = {seconds: [[error <= seconds for error in row] for row in errors] for seconds in THRESHOLDS}
    for seconds, rows in within.items():
        figure = found.figures[f"grounding@{seconds}"]
        assert figure.value == pytest.approx(100 * np.mean([all(row) for row in rows]))
        assert figure.expected == pytest.approx(100 * np.mean([np.mean(row) for row in rows]))
    values = [found.figures[f"grounding@{seconds}"].value for seconds in THRESHOLDS]
    assert found.figures["grounding"].value == pytest.approx(np.mean(values))
    tied = [any(any(rows[place]) and not all(rows[place]) for rows in within.values()) for place in range(len(errors))]
    assert found.ties == pytest.approx(100 * np.mean(tied))


def test_our_own_table_has_all_it_needs() -> None:
    rows = [{"key": f"k{n}", "subset": "gebc", "category": "", "group": f"v{n // 2}", "errors": [n]} for n in range(6)]
    found = measure(pa.Table.from_pylist(rows, GROUNDING_ERRORS), ["subset"])
    assert (found.all.n, found.all.groups) == (6, 3)
    assert [figure.value for figure in found.all.figures.values()][-4:] == pytest.approx([200 / 6, 50, 50, 400 / 6])
    assert found.by["gebc"].figures["grounding@3.0"].low is not None


@pytest.mark.parametrize(
    ("errors", "message"),
    [
        ([[1.0], []], "row 2, column errors is empty"),
        ([[1.0], None], "row 2, column errors is empty"),
        ([[1.0], [0.5], [2.0, -1.0]], "row 3, column errors has -1.0"),
        ([[1.0], [float("nan"), 1.0]], "row 2, column errors has nan"),
        ([[1.0], [None]], "row 2, column errors has nan"),
    ],
)
def test_errors_that_are_no_seconds(errors: Any, message: str) -> None:
    with pytest.raises(WrongUse, match=message):
        measure(table(errors))


def test_errors_that_are_no_lists() -> None:
    with pytest.raises(WrongUse, match="column errors is double; write lists"):
        measure(pa.table({"errors": [1.0]}))


class Diagonal(Metric):
    """Both matching scores together are above both others together; asked of two images."""

    name = "diagonal"
    columns = ("s00", "s01", "s10", "s11")

    def right(self, batch: Batch) -> NDArray[np.float64]:
        s00, s01, s10, s11 = (batch.numbers(name, nullable=True) for name in self.columns)
        return np.where(np.isnan(s10), np.nan, s00 + s11 > s01 + s10)


class Confident(Metric):
    """Asked only where the model says much: of other rows for each model."""

    name = "confident"
    columns = ("s00", "s01")

    def right(self, batch: Batch) -> NDArray[np.float64]:
        s00, s01 = (batch.numbers(name) for name in self.columns)
        return np.where(np.maximum(s00, s01) < 0.5, np.nan, s00 > s01)


class Agreed(Metric):
    """Of a table of no other kind."""

    name = "agreed"
    columns = ("said", "meant")

    def right(self, batch: Batch) -> NDArray[np.bool_]:
        return batch.flags("said") == batch.flags("meant")


class Halves(Agreed):
    name = "halves"

    def right(self, batch: Batch) -> Any:
        return np.full(len(batch), 0.5)


class Group(Diagonal):
    name = "group"


def install(monkeypatch: pytest.MonkeyPatch, *metrics: type[Metric]) -> None:
    found = {one.name: EntryPoint(one.name, f"{__name__}:{one.__name__}", "twinset.metrics") for one in metrics}
    monkeypatch.setattr(doors, "installed", lambda group: found if group == "twinset.metrics" else {})


def scores(seed: int, rows: int = 200) -> pa.Table:
    numbers = np.random.default_rng(seed).random((rows, 4))
    table = {"key": [f"k{row}" for row in range(rows)], "group": [f"g{row // 3}" for row in range(rows)]}
    table |= {"side": ["left" if row % 2 else "right" for row in range(rows)]}
    return pa.table(table | {name: numbers[:, place] for place, name in enumerate(("s00", "s01", "s10", "s11"))})


def test_a_metric_is_measured_beside_the_figures_which_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    before = measure(scores(1), ["side"])
    install(monkeypatch, Diagonal)
    found = measure(scores(1), ["side"])
    s00, s01, s10, s11 = (scores(1)[name].to_numpy() for name in Diagonal.columns)
    right = s00 + s11 > s01 + s10
    figure = found.all.figures["diagonal"]
    assert figure.value == pytest.approx(100 * right.mean()) and figure.low < figure.value < figure.high  # type: ignore[operator]
    assert found.by["left"].figures["diagonal"].value == pytest.approx(100 * right[1::2].mean())
    for one in (found.all, *found.by.values()):
        one.figures.pop("diagonal")
    assert found == before and found.notes == before.notes


def test_a_metric_is_compared_with_intervals_and_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    before = compare(scores(1), scores(2))
    install(monkeypatch, Diagonal)
    found = {line.figure: line for line in compare(scores(1), scores(2)).table}
    line = found.pop("diagonal")
    assert line.difference == pytest.approx(line.a - line.b) and line.low < line.difference < line.high  # type: ignore[operator]
    assert [(one.figure, one.a, one.b, one.low, one.high, one.p) for one in before.table] == [
        (one.figure, one.a, one.b, one.low, one.high, one.p) for one in found.values()
    ]
    (alone,) = compare(scores(1), scores(2), figures=["diagonal"]).table
    assert (alone.only_a, alone.only_b) == (line.only_a, line.only_b)
    with pytest.raises(WrongUse, match=r"--figures nothing: the files have text, .*, diagonal"):
        compare(scores(1), scores(2), figures=["diagonal", "nothing"])


def test_rows_of_one_image_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, Diagonal)
    one_image = pa.table({"s00": [1.0, 2.0], "s01": [0.0, 3.0], "s10": [0.0, None], "s11": [1.0, None]})
    assert measure(one_image).all.figures["diagonal"].value == 100
    assert "diagonal" not in measure(one_image.slice(1)).all.figures


def test_a_metric_asked_of_other_rows_by_each_model_is_left_out_of_the_comparison(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    install(monkeypatch, Confident)
    found = compare(scores(1), scores(2))
    assert "confident" not in {line.figure for line in found.table}
    assert "Confident is not compared: it is asked of other rows in B than in A" in found.notes


def test_a_table_of_no_other_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"key": ["a", "b", "c"], "said": [True, False, True], "meant": [True, True, True]})
    with pytest.raises(WrongUse, match="no scores in its columns: key, said, meant"):
        measure(table)
    install(monkeypatch, Agreed)
    assert measure(table).as_json()["all"]["agreed"] == pytest.approx(200 / 3)
    assert compare(table, table).table[0].difference == 0
    with pytest.raises(WrongUse, match="different kinds"):
        compare(table, scores(1))


def test_what_is_wrong_with_a_metric_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, Halves)
    with pytest.raises(WrongUse, match=r"metric halves: right\(\) gives 1, 0 or NaN for each of 1 rows"):
        measure(pa.table({"said": [True], "meant": [True]}))
    install(monkeypatch, Group)
    with pytest.raises(WrongUse, match="two metrics have a figure 'group'; give the installed one another name"):
        measure(scores(1))


@pytest.mark.parametrize("counts", [[1] * 60, [400, 300, 200], [500, 20, *[1] * 30, 3]])
def test_resamples_are_those_of_clusters(counts: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Every resample has as many clusters; the sums have the variance of drawing clusters, G · var(cluster)."""
    monkeypatch.setattr("twinset.evaluation.metrics.bootstrap._CELLS", 5000)  # in several blocks
    rng = np.random.default_rng(1)
    sums = np.stack([np.ones(len(counts)), rng.integers(0, 9, len(counts)), rng.integers(0, 9, len(counts))], 1)
    found = resampled(sums.astype(np.int64), np.array(counts), 4000, seed=3)
    assert found.shape == (4000, 3) and {*found[:, 0]} == {sum(counts)}
    clusters = np.repeat(sums, counts, axis=0)
    wanted = np.cov(clusters, rowvar=False, bias=True) * len(clusters)
    np.testing.assert_allclose(found.mean(0), clusters.sum(0), rtol=0.02)
    np.testing.assert_allclose(np.cov(found, rowvar=False), wanted, rtol=0.15, atol=0.03 * wanted.max())


def test_sums_depend_neither_on_precision_nor_on_how_many_are_drawn_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    sums, counts = rng.integers(-5, 20, (90, 3)).astype(np.int8), rng.choice([1, 2, 5, 400], 90)
    once = resampled(sums, counts, 500, seed=1)
    monkeypatch.setattr("twinset.evaluation.metrics.bootstrap._DRAWS", 100)
    np.testing.assert_array_equal(resampled(sums, counts, 500, seed=1), once)
    monkeypatch.setattr("twinset.evaluation.metrics.bootstrap._EXACT", 0)
    np.testing.assert_array_equal(resampled(sums, counts, 500, seed=1), once)


def test_an_interval_equals_that_of_a_loop_over_drawn_clusters() -> None:
    rng = np.random.default_rng(5)
    groups = rng.integers(0, 50, 600)
    right = rng.random(600) < 0.2 + 0.6 * (groups % 2)
    table = pa.table({"correct": right, "group": [f"g{group}" for group in groups]})
    figure = measure(table, resamples=4000).all.figures["accuracy"]
    members = [right[groups == group] for group in np.unique(groups)]
    drawn = [100 * np.concatenate([members[one] for one in rng.integers(0, 50, 50)]).mean() for _ in range(4000)]
    assert (figure.low, figure.high) == pytest.approx(interval(np.array(drawn)), abs=0.6)


def test_copies_of_a_row_in_its_group_tell_nothing_new() -> None:
    right = np.random.default_rng(0).random(200) < 0.5
    once = pa.table({"correct": right, "group": [f"g{row}" for row in range(200)]})
    copied = pa.concat_tables([once] * 20)
    one, other = (measure(table).all.figures["accuracy"] for table in (once, copied))
    assert (one.low, one.high) == (other.low, other.high)
    rows = measure(copied.drop_columns("group")).all.figures["accuracy"]
    assert None not in (one.low, one.high, rows.low, rows.high)
    assert (one.high - one.low) / (rows.high - rows.low) == pytest.approx(20**0.5, rel=0.1)  # type: ignore[operator]


def test_an_interval_depends_on_seed_and_rows_but_not_on_their_order() -> None:
    rng = np.random.default_rng(0)
    columns = {"correct": rng.random(500) < 0.4, "video": rng.integers(0, 60, 500), "half": ["a", "b"] * 250}
    table, shuffled = pa.table(columns), pa.table({name: np.array(one)[::-1] for name, one in columns.items()})
    first, other, again = (
        measure(one, ["half"], seed, group="video") for one, seed in ((table, 0), (table, 1), (shuffled, 0))
    )
    assert first == again and first.all.figures != other.all.figures
    alone = measure(table, seed=0, group="video")
    assert alone.all == first.all


def test_one_group_has_no_interval() -> None:
    found = measure(pa.table({"correct": [True, False], "group": ["a", "a"]}))
    assert (found.all.figures["accuracy"].low, found.all.groups) == (None, 1)
    assert any("only one group" in note for note in found.notes)
    assert found.as_json()["all"]["interval"] == {}


def test_the_error_of_a_mean_is_that_of_its_clusters() -> None:
    rng = np.random.default_rng(2)
    groups = np.sort(rng.integers(0, 300, 3000).astype(np.uint64))
    numbers = np.abs(rng.normal(size=3000) + rng.normal(size=300)[groups.astype(int)]).astype(np.float32)
    # Equivariance of these scores is the numbers.
    table = pa.table({"s00": numbers, **dict.fromkeys(("s01", "s10", "s11"), np.zeros(3000)), "group": groups})
    found = measure(table).all.figures["mean_equivariance_text"]
    members = [numbers[groups == group] for group in np.unique(groups)]
    drawn = [np.concatenate([members[one] for one in rng.integers(0, len(members), len(members))]) for _ in range(1000)]
    assert found.value == pytest.approx(numbers.mean(dtype=np.float64), abs=1e-9)
    assert found.low is not None
    error = (found.value - found.low) / 1.96
    assert error == pytest.approx(np.std([one.mean() for one in drawn]), rel=0.1)
    sums = np.array([(one - found.value).sum(dtype=np.float64) for one in members])
    assert error == pytest.approx(np.sqrt(300 / 299 * np.square(sums).sum()) / 3000, rel=1e-4)


GALLERY = st.lists(st.sampled_from([0.0, 1.0, 2.0]), min_size=1, max_size=5)


def ranks(galleries: list[list[float]], targets: int = 1) -> pa.Table:
    """The table of galleries whose first entries are the targets; as many as there are in a small one."""
    rows = []
    for gallery in galleries:
        best, wrong = max(gallery[:targets]), gallery[targets:]
        rows.append(
            {
                "higher": sum(score > best for score in wrong),
                "tied": sum(score == best for score in wrong),
                "entries": len(gallery),
                "targets": len(gallery[:targets]),
                "tied_targets": gallery[:targets].count(best),
            }
        )
    return pa.Table.from_pylist(rows)


def found_at(gallery: list[float], k: int, noise: tuple[int, ...], targets: int) -> bool:
    """Whether a target is among the first K when equal scores are in the order of their noise."""
    order = sorted(range(len(gallery)), key=lambda entry: (-gallery[entry], noise[entry]))
    return any(entry < targets for entry in order[:k])


@given(st.lists(GALLERY, min_size=1, max_size=6), st.integers(1, 3))
def test_recall_equals_sorting_every_gallery(galleries: list[list[float]], targets: int) -> None:
    found = measure(ranks(galleries, targets), resamples=0).all
    assert [*found.figures] == ["recall@1", "recall@2", "recall@3"]
    orders = [[*permutations(range(len(gallery)))] for gallery in galleries]
    tied = set()
    for k in (1, 2, 3):
        each = [
            [found_at(gallery, k, noise, targets) for noise in noises]
            for gallery, noises in zip(galleries, orders, strict=True)
        ]
        figure = found.figures[f"recall@{k}"]
        assert figure.value == pytest.approx(100 * np.mean([all(answers) for answers in each]))
        assert figure.expected == pytest.approx(100 * np.mean([np.mean(answers) for answers in each]))
        tied |= {place for place, answers in enumerate(each) if any(answers) and not all(answers)}
    assert found.ties == pytest.approx(100 * len(tied) / len(galleries))


def test_a_constant_scorer_finds_nothing_in_genecis_and_one_in_15_by_chance() -> None:
    figures = measure(ranks([[0.5] * 15] * 20)).all.figures
    assert [(one.value, one.expected) for one in figures.values()] == [
        (0, pytest.approx(100 / 15)),
        (0, pytest.approx(200 / 15)),
        (0, pytest.approx(300 / 15)),
    ]


def test_a_table_that_does_not_count_tied_targets_has_one() -> None:
    table = ranks([[1.0, 1.0, 1.0]], 2)
    expected = [measure(one).all.figures["recall@1"].expected for one in (table, table.drop_columns("tied_targets"))]
    assert expected == [pytest.approx(200 / 3), pytest.approx(50)]


def test_large_galleries_have_the_ks_of_retrieval() -> None:
    table = pa.table({"higher": [0, 7], "tied": [0, 0], "entries": [1000, 15], "targets": [5, 1], "at": ["big", "15"]})
    found = measure(table, ["at"])
    recall = {name: figure.value for name, figure in found.all.figures.items()}
    assert recall == {"recall@1": 50, "recall@5": 50, "recall@10": 100, "recall@50": 100}
    assert [*found.by["15"].figures] == ["recall@1", "recall@2", "recall@3"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"targets": [1, 0]}, "row 2, column targets: 0; a query has one target"),
        ({"entries": [15, 3]}, "row 2, column entries: fewer than higher, tied and targets"),
        ({"higher": [0, -1]}, "row 2, column higher is -1. Write a count"),
        ({"tied_targets": [1, 2]}, "row 2, column tied_targets: not 1 to targets"),
        ({"tied": [0.5, 0]}, "row 1, column tied is 0.5. Write a count"),
    ],
)
def test_ranks_that_no_gallery_gives(change: dict[str, Any], message: str) -> None:
    table = pa.table({"higher": [0, 2], "tied": [0, 1], "entries": [15, 15], "targets": [1, 1]} | change)
    with pytest.raises(WrongUse, match=message):
        measure(table)
