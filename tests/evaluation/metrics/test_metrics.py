"""Figures against what loops over every row say, and values that are known beforehand; metrics of other packages."""

import json
from importlib.metadata import EntryPoint
from itertools import permutations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinset.contracts import doors
from twinset.contracts.errors import WrongUse
from twinset.evaluation.metrics.compare import compare
from twinset.evaluation.metrics.galleries import THRESHOLDS
from twinset.evaluation.metrics.matching import FINER, RELEASED, SCORES
from twinset.evaluation.metrics.measure import measure
from twinset.evaluation.metrics.row_values import Floats

FEW_EXAMPLES = settings(max_examples=30)
Row = tuple[float, float, float | None, float | None]
#: Few values, so that many tie.
FEW = st.sampled_from([-1.0, 0.0, 0.5, 2.0])
TWO = st.tuples(FEW, FEW, FEW, FEW)
ONE = st.tuples(FEW, FEW, st.none(), st.none())


def table(rows: list[Row], **columns: list[Any]) -> pa.Table:
    scores = dict(zip(SCORES, ([*column] for column in zip(*rows, strict=True)), strict=True))
    return pa.table({name: pa.array(column, pa.float32()) for name, column in scores.items()} | columns)


def comparisons(row: Any) -> dict[str, bool]:
    """All but the figure of sums."""
    s00, s01, s10, s11 = row
    if s10 is None or s11 is None:
        return {"accuracy": s00 > s01}
    finer = dict(zip(FINER, (s00 > s01, s11 > s10, s00 > s10, s11 > s01), strict=True))
    text, image = finer["ipos2t"] and finer["ineg2t"], finer["tpos2i"] and finer["tneg2i"]
    return {"text": text, "image": image, "group": text and image, **finer}


def matched(row: Row) -> float:
    """Whether the true assignment has the higher sum; half where both have the same."""
    sums = np.float32([row[0], row[3]]).sum(dtype=float), np.float32([row[1], row[2]]).sum(dtype=float)
    return 0.5 if sums[0] == sums[1] else float(sums[0] > sums[1])


def by_every_order(row: Row) -> dict[str, float]:
    """Probability of each answer when every order of the four scores' noise is equally likely."""
    each = []
    for noise in permutations(range(4)):
        ranked: Any = [None if score is None else (score, rank) for score, rank in zip(row, noise, strict=True)]
        each.append(comparisons(ranked))
    means = {name: float(np.mean([right[name] for right in each])) for name in each[0]}
    return means if row[2] is None else means | {"group_match": matched(row)}


def is_tied(row: Row) -> bool:
    s00, s01, s10, s11 = row
    return s00 == s01 or (s10 is not None and (s00 == s10 or s11 in (s10, s01) or matched(row) == 0.5))


@FEW_EXAMPLES
@given(st.lists(TWO | ONE, min_size=1, max_size=40))
def test_figures_equal_a_loop_over_rows(rows: list[Row]) -> None:
    measured = measure(table(rows), resamples=0).all
    assert measured.n == measured.groups == len(rows)
    assert measured.ties == pytest.approx(100 * np.mean([is_tied(row) for row in rows]))
    known = [comparisons(row) | ({} if row[2] is None else {"group_match": matched(row) == 1}) for row in rows]
    chances = [by_every_order(row) for row in rows]
    shares = {name: figure for name, figure in measured.figures.items() if not name.startswith("mean_")}
    assert {*shares} == {name for row in known for name in row}
    for name, figure in shares.items():
        assert figure.value == pytest.approx(100 * np.mean([row[name] for row in known if name in row]))
        assert figure.expected == pytest.approx(100 * np.mean([row[name] for row in chances if name in row]))


@FEW_EXAMPLES
@given(st.lists(st.tuples(st.sampled_from([0.2, 0.5, 0.9]), st.sampled_from([0.1, 0.5, 0.7])), min_size=1, max_size=30))
def test_valse(pairs: list[tuple[float, float]]) -> None:
    scores = pa.table({"s00": [pair[0] for pair in pairs], "s01": [pair[1] for pair in pairs]})
    figures = measure(scores, threshold=0.5, resamples=0).all.figures
    p_c, p_f = 100 * np.mean([a > 0.5 for a, _ in pairs]), 100 * np.mean([b <= 0.5 for _, b in pairs])
    wanted = {"accuracy": 100 * np.mean([a > b for a, b in pairs]), "acc": (p_c + p_f) / 2, "p_c": p_c, "p_f": p_f}
    wanted["min"] = min(p_c, p_f)
    assert {name: figure.value for name, figure in figures.items()} == pytest.approx(wanted)


def test_a_row_without_an_answer_is_wrong_of_caption_and_foil() -> None:
    """Seven of ten are refused by a model that says yes to all; its file has the threshold for their scores."""
    about = json.dumps({"threshold": 0.3, "unanswered": {"refusal": 14}})
    given = table([(0.6, 0.6, None, None)] * 3 + [(0.3, 0.3, None, None)] * 7)
    figures = measure(given.replace_schema_metadata({b"twinset": about})).all.figures
    assert [figures[name].value for name in ("p_c", "acc", "p_f", "min")] == [30, 15, 0, 0]
    assert figures["accuracy"].expected == 50


def test_float64_is_not_rounded() -> None:
    near = pa.table({"s00": [1.0 + 1e-12], "s01": [1.0]})
    assert measure(near).all.figures["accuracy"].value == 100
    sums = {"s00": [-1000.00001], "s01": [-1000.00002], "s10": [-1000.00002], "s11": [-1000.00001]}
    assert measure(pa.table(sums)).all.figures["group_match"].value == 100
    for score in (np.float16(0.3), np.float32(0.3), 0.3, "0.3"):  # is not above a threshold of 0.3
        figures = measure(pa.table({"s00": [score], "s01": [score]}), threshold=0.3).all.figures
        assert (figures["p_c"].value, figures["p_f"].value) == (0, 100)


@pytest.mark.parametrize("names", RELEASED)
def test_outcomes_as_bivlc_released_them(names: tuple[str, ...]) -> None:
    rows = [(True, True, True, True), (True, True, True, False), (True, False, True, True), (False, False, False, True)]
    columns = dict(zip(names, ([*column] for column in zip(*rows, strict=True)), strict=True))
    measured = measure(pa.table(columns)).all
    wanted = {"text": 50, "image": 50, "group": 25, "ipos2t": 75, "ineg2t": 50, "tpos2i": 75, "tneg2i": 75}
    assert {name: figure.value for name, figure in measured.figures.items()} == wanted and measured.ties is None
    assert all(figure.expected is None for figure in measured.figures.values())


ERRORS = st.lists(st.sampled_from([0.0, 0.1, 0.3, 0.9, 2.0, 2.75, 8.0]), min_size=1, max_size=4)


@FEW_EXAMPLES
@given(st.lists(ERRORS, min_size=1, max_size=20))
def test_grounding_equals_a_loop_over_gaps(errors: list[list[float]]) -> None:
    measured = measure(pa.table({"errors": pa.array(errors, pa.list_(pa.float32()))}), resamples=0).all
    within = {seconds: [[error <= seconds for error in row] for row in errors] for seconds in THRESHOLDS}
    for seconds, rows in within.items():
        figure = measured.figures[f"grounding@{seconds}"]
        assert figure.value == pytest.approx(100 * np.mean([all(row) for row in rows]))
        assert figure.expected == pytest.approx(100 * np.mean([np.mean(row) for row in rows]))
    values = [measured.figures[f"grounding@{seconds}"].value for seconds in THRESHOLDS]
    assert measured.figures["grounding"].value == pytest.approx(np.mean(values))
    tied = [any(any(rows[place]) and not all(rows[place]) for rows in within.values()) for place in range(len(errors))]
    assert measured.ties == pytest.approx(100 * np.mean(tied))


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


@FEW_EXAMPLES
@given(st.lists(GALLERY, min_size=1, max_size=6), st.integers(1, 3))
def test_recall_equals_sorting_every_gallery(galleries: list[list[float]], targets: int) -> None:
    measured = measure(ranks(galleries, targets), resamples=0).all
    assert [*measured.figures] == ["recall@1", "recall@2", "recall@3"]
    orders = [[*permutations(range(len(gallery)))] for gallery in galleries]
    tied = set()
    for k in (1, 2, 3):
        each = [
            [found_at(gallery, k, noise, targets) for noise in noises]
            for gallery, noises in zip(galleries, orders, strict=True)
        ]
        figure = measured.figures[f"recall@{k}"]
        assert figure.value == pytest.approx(100 * np.mean([all(answers) for answers in each]))
        assert figure.expected == pytest.approx(100 * np.mean([np.mean(answers) for answers in each]))
        tied |= {place for place, answers in enumerate(each) if any(answers) and not all(answers)}
    assert measured.ties == pytest.approx(100 * len(tied) / len(galleries))


def test_a_metric_that_a_file_names_is_measured_or_the_notes_say_why() -> None:
    named = {b"twinset": json.dumps({"metrics": ["map", "semantic-map"]})}
    table = ranks([[1.0, 0.0], [0.0, 1.0]])
    notes = measure(table.replace_schema_metadata(named)).notes
    assert "map is not measured: table has no column above, level" in notes
    for name, column in {"above": [[0], [1]], "level": [[0], [0]], "tags": ["", ""]}.items():  # CIRCO's first release
        table = table.append_column(name, pa.array(column))
    assert measure(table.replace_schema_metadata(named)).all.figures["map@5"].value == 75


def diagonal(s00: Floats, s01: Floats, s10: Floats, s11: Floats) -> dict[str, Floats]:
    """Both matching scores together are above both others together; asked of two images."""
    return {"diagonal": np.where(np.isnan(s10), np.nan, s00 + s11 > s01 + s10)}


def failing(s00: Floats) -> dict[str, Floats]:
    """With a fault."""
    raise ZeroDivisionError("a fault")


def install(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    entries = {name: EntryPoint(name, f"{__name__}:{name}", "twinset.metrics")}
    monkeypatch.setattr(doors, "installed", lambda group: entries if group == "twinset.metrics" else {})


def scores(seed: int, rows: int = 200) -> pa.Table:
    numbers = np.random.default_rng(seed).random((rows, 4))
    table = {"key": [f"k{row}" for row in range(rows)], "group": [f"g{row // 3}" for row in range(rows)]}
    table |= {"side": ["left" if row % 2 else "right" for row in range(rows)]}
    return pa.table(table | dict(zip(SCORES, numbers.T, strict=True)))


def test_an_installed_metric_is_measured_and_compared_beside_the_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, "diagonal")
    measured = measure(scores(1), ["side"])
    right = diagonal(*(scores(1)[name].to_numpy() for name in SCORES))["diagonal"]
    figure = measured.all.figures["diagonal"]
    assert figure.value == pytest.approx(100 * right.mean()) and figure.low < figure.value < figure.high  # type: ignore[operator]
    assert measured.by["left"].figures["diagonal"].value == pytest.approx(100 * right[1::2].mean())
    lines = {line["figure"]: line for line in compare(scores(1), scores(2)).table.to_dicts()}
    assert [*lines] == ["text", "image", "group", "diagonal"]
    assert lines["diagonal"]["low"] < lines["diagonal"]["difference"] < lines["diagonal"]["high"]
    one_image = pa.table({"s00": [1.0, 2.0], "s01": [0.0, 3.0], "s10": [0.0, None], "s11": [1.0, None]})
    assert measure(one_image).all.figures["diagonal"].value == 100  # of the row that is asked


def test_a_metric_that_fails_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, "failing")
    with pytest.raises(WrongUse, match="metric failing: ZeroDivisionError: a fault"):
        measure(scores(1))
