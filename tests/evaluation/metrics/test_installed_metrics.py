"""Figures that installed packages add to every table with the columns that they read."""

from importlib.metadata import EntryPoint
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from twinset.contracts import doors
from twinset.contracts.errors import WrongUse
from twinset.evaluation.metrics.compare import compare
from twinset.evaluation.metrics.measure import measure
from twinset.evaluation.metrics.outcomes import Metric
from twinset.evaluation.score_files.batch import Batch


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
