"""Grounding of boundaries at EqBen's eight thresholds; recall@K against galleries that are really sorted; metrics of
installed packages; EqBen's equivariance score.
"""

import json
from importlib.metadata import EntryPoint
from itertools import permutations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinset.contracts import doors
from twinset.contracts.errors import WrongUse
from twinset.evaluation.metrics.compare import compare
from twinset.evaluation.metrics.galleries import THRESHOLDS
from twinset.evaluation.metrics.matching import SCORES
from twinset.evaluation.metrics.measure import measure
from twinset.evaluation.metrics.row_values import Floats, RowValues

ERRORS = st.lists(st.sampled_from([0.0, 0.1, 0.3, 0.9, 2.0, 2.75, 8.0]), min_size=1, max_size=4)


def boundaries(errors: Any) -> pa.Table:
    return pa.table({"errors": pa.array(errors, pa.list_(pa.float32()))})


@given(st.lists(ERRORS, min_size=1, max_size=20))
def test_grounding_equals_a_loop_over_gaps(errors: list[list[float]]) -> None:
    found = measure(boundaries(errors), resamples=0).all
    within = {seconds: [[error <= seconds for error in row] for row in errors] for seconds in THRESHOLDS}
    for seconds, rows in within.items():
        figure = found.figures[f"grounding@{seconds}"]
        assert figure.value == pytest.approx(100 * np.mean([all(row) for row in rows]))
        assert figure.expected == pytest.approx(100 * np.mean([np.mean(row) for row in rows]))
    values = [found.figures[f"grounding@{seconds}"].value for seconds in THRESHOLDS]
    assert found.figures["grounding"].value == pytest.approx(np.mean(values))
    tied = [any(any(rows[place]) and not all(rows[place]) for rows in within.values()) for place in range(len(errors))]
    assert found.ties == pytest.approx(100 * np.mean(tied))


GALLERY = st.lists(st.sampled_from([0.0, 1.0, 2.0]), min_size=1, max_size=5)


def ranks(galleries: list[list[float]], targets: int = 1) -> pa.Table:
    """The table of galleries whose first entries are the targets; as many as there are in a small one."""
    rows = []
    for gallery in galleries:
        best, wrong = max(gallery[:targets]), gallery[targets:]
        row = {"higher": sum(score > best for score in wrong), "tied": sum(score == best for score in wrong)}
        row |= {"entries": len(gallery), "targets": len(gallery[:targets])}
        rows.append(row | {"tied_targets": gallery[:targets].count(best)})
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


def test_a_metric_that_a_file_names_is_measured_or_the_notes_say_why() -> None:
    named = {b"twinset": json.dumps({"metrics": ["map", "semantic-map"]})}
    table = ranks([[1.0, 0.0], [0.0, 1.0]])
    assert (
        "map is not measured: table has no column above, level" in measure(table.replace_schema_metadata(named)).notes
    )
    for name, column in {"above": [[0], [1]], "level": [[0], [0]], "tags": ["", ""]}.items():  # CIRCO's first release
        table = table.append_column(name, pa.array(column))
    assert measure(table.replace_schema_metadata(named)).all.figures["map@5"].value == 75


def diagonal(s00: Floats, s01: Floats, s10: Floats, s11: Floats) -> dict[str, Floats]:
    """Both matching scores together are above both others together; asked of two images."""
    return {"diagonal": np.where(np.isnan(s10), np.nan, s00 + s11 > s01 + s10)}


def agreed(said: Floats, meant: Any) -> RowValues:
    """Of a table of no other kind, with a number and a plain mean."""
    same = np.array([a == (b == "yes") for a, b in zip(said, meant, strict=True)], np.float64)
    return RowValues({"agreed": same, "mean_length": np.array([len(word) for word in meant])}, {"agreed": same / 2})


def install(monkeypatch: pytest.MonkeyPatch, *metrics: Any) -> None:
    found = {one.__name__: EntryPoint(one.__name__, f"{__name__}:{one.__name__}", "twinset.metrics") for one in metrics}
    monkeypatch.setattr(doors, "installed", lambda group: found if group == "twinset.metrics" else {})


def scores(seed: int, rows: int = 200) -> pa.Table:
    numbers = np.random.default_rng(seed).random((rows, 4))
    table = {"key": [f"k{row}" for row in range(rows)], "group": [f"g{row // 3}" for row in range(rows)]}
    table |= {"side": ["left" if row % 2 else "right" for row in range(rows)]}
    return pa.table(table | dict(zip(SCORES, numbers.T, strict=True)))


def test_an_installed_metric_is_measured_and_compared_beside_the_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, diagonal)
    found = measure(scores(1), ["side"])
    right = diagonal(*(scores(1)[name].to_numpy() for name in SCORES))["diagonal"]
    figure = found.all.figures["diagonal"]
    assert figure.value == pytest.approx(100 * right.mean()) and figure.low < figure.value < figure.high  # type: ignore[operator]
    assert found.by["left"].figures["diagonal"].value == pytest.approx(100 * right[1::2].mean())
    lines = {line["figure"]: line for line in compare(scores(1), scores(2)).table.to_dicts()}
    assert [*lines] == ["text", "image", "group", "diagonal"]
    assert lines["diagonal"]["low"] < lines["diagonal"]["difference"] < lines["diagonal"]["high"]
    one_image = pa.table({"s00": [1.0, 2.0], "s01": [0.0, 3.0], "s10": [0.0, None], "s11": [1.0, None]})
    assert measure(one_image).all.figures["diagonal"].value == 100  # of the row that is asked


def test_a_table_of_no_other_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"key": ["a", "b", "c"], "said": [True, False, True], "meant": ["yes", "yes", "yes"]})
    with pytest.raises(WrongUse, match="no scores in its columns: key, said, meant"):
        measure(table)
    install(monkeypatch, agreed)
    figures = measure(table).all.figures
    assert (figures["agreed"].value, figures["agreed"].expected) == pytest.approx((200 / 3, 100 / 3))
    assert figures["mean_length"].value == 3
    assert compare(table, table).table["difference"].to_list() == [0]
    with pytest.raises(WrongUse, match="different kinds"):
        compare(table, scores(1))
