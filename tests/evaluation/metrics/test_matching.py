"""Figures of matchings against what loops over every row say, and the values that are known beforehand."""

import json
from itertools import permutations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinset.evaluation.metrics.matching import FINER, RELEASED, SCORES
from twinset.evaluation.metrics.measure import measure

Row = tuple[float, float, float | None, float | None]
#: Few values, so that many tie.
FEW = st.sampled_from([-1.0, 0.0, 0.5, 2.0])
TWO = st.tuples(FEW, FEW, FEW, FEW)
ONE = st.tuples(FEW, FEW, st.none(), st.none())


def table(rows: list[Row], **columns: list[Any]) -> pa.Table:
    scores = dict(zip(SCORES, ([*column] for column in zip(*rows, strict=True)), strict=True))
    return pa.table({name: pa.array(column, pa.float32()) for name, column in scores.items()} | columns)


def answers(row: Row) -> dict[str, bool]:
    """Every figure of one row, as its definition says."""
    return comparisons(row) | ({} if row[2] is None else {"group_match": matched(row) == 1})


def comparisons(row: Any) -> dict[str, bool]:
    """All but the figure of sums."""
    s00, s01, s10, s11 = row
    if s10 is None or s11 is None:
        return {"accuracy": s00 > s01}
    found = dict(zip(FINER, (s00 > s01, s11 > s10, s00 > s10, s11 > s01), strict=True))
    text, image = found["ipos2t"] and found["ineg2t"], found["tpos2i"] and found["tneg2i"]
    return {"text": text, "image": image, "group": text and image, **found}


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
    found = {name: float(np.mean([one[name] for one in each])) for name in each[0]}
    return found if row[2] is None else found | {"group_match": matched(row)}


def is_tied(row: Row) -> bool:
    s00, s01, s10, s11 = row
    return s00 == s01 or (s10 is not None and (s00 == s10 or s11 in (s10, s01) or matched(row) == 0.5))


@given(st.lists(TWO | ONE, min_size=1, max_size=40))
def test_figures_equal_a_loop_over_rows(rows: list[Row]) -> None:
    found = measure(table(rows), resamples=0).all
    assert found.n == found.groups == len(rows)
    assert found.ties == pytest.approx(100 * np.mean([is_tied(row) for row in rows]))
    known = [answers(row) for row in rows]
    chances = [by_every_order(row) for row in rows]
    shares = {name: figure for name, figure in found.figures.items() if not name.startswith("mean_")}
    assert {*shares} == {name for row in known for name in row}
    for name, figure in shares.items():
        assert figure.value == pytest.approx(100 * np.mean([row[name] for row in known if name in row]))
        assert figure.expected == pytest.approx(100 * np.mean([row[name] for row in chances if name in row]))


def test_a_constant_is_wrong_everywhere_and_at_chance_when_ties_are_broken() -> None:
    """Group: of the 4! orders of four equal scores, 2! 2! have s00 and s11 before s01 and s10, which is 1 in 6.

    Four coins, one for each comparison, would say 1 in 16: but no order of the scores answers so.
    """
    found = measure(table([(0.3, 0.3, 0.3, 0.3)] * 7)).all
    assert found.ties == 100
    assert {name: (figure.value, figure.expected) for name, figure in found.figures.items()} == {
        "text": (0, 25),
        "image": (0, 25),
        "group": (0, pytest.approx(100 / 6)),
        **dict.fromkeys((*FINER, "group_match"), (0, 50)),
        "mean_equivariance_text": (0, None),
        "mean_equivariance_image": (0, None),
    }


@given(st.lists(st.tuples(st.sampled_from([0.2, 0.5, 0.9]), st.sampled_from([0.1, 0.5, 0.7])), min_size=1, max_size=30))
def test_valse(pairs: list[tuple[float, float]]) -> None:
    scores = pa.table({"s00": [pair[0] for pair in pairs], "s01": [pair[1] for pair in pairs]})
    found = measure(scores, threshold=0.5, resamples=100)
    p_c, p_f = 100 * np.mean([a > 0.5 for a, _ in pairs]), 100 * np.mean([b <= 0.5 for _, b in pairs])
    wanted = {"accuracy": 100 * np.mean([a > b for a, b in pairs]), "acc": (p_c + p_f) / 2, "p_c": p_c, "p_f": p_f}
    wanted["min"] = min(p_c, p_f)
    assert {name: figure.value for name, figure in found.all.figures.items()} == pytest.approx(wanted)


def test_a_row_without_an_answer_is_wrong_of_caption_and_foil() -> None:
    """Seven of ten are refused by a model that says yes to all; its file has the threshold for their scores."""
    about = json.dumps({"threshold": 0.3, "unanswered": {"refusal": 14}})
    given = table([(0.6, 0.6, None, None)] * 3 + [(0.3, 0.3, None, None)] * 7)
    found = measure(given.replace_schema_metadata({b"twinset": about})).all.figures
    assert [found[name].value for name in ("p_c", "acc", "p_f", "min")] == [30, 15, 0, 0]
    assert found["accuracy"].expected == 50


def test_float64_is_not_rounded() -> None:
    near = pa.table({"s00": [1.0 + 1e-12], "s01": [1.0]})
    assert measure(near).all.figures["accuracy"].value == 100
    sums = {"s00": [-1000.00001], "s01": [-1000.00002], "s10": [-1000.00002], "s11": [-1000.00001]}
    assert measure(pa.table(sums)).all.figures["group_match"].value == 100
    for score in (np.float16(0.3), np.float32(0.3), 0.3, "0.3"):  # is not above a threshold of 0.3
        figures = measure(pa.table({"s00": [score], "s01": [score]}), threshold=0.3).all.figures
        assert (figures["p_c"].value, figures["p_f"].value) == (0, 100)
    half = pa.table({"s00": pa.array(np.array([0.5], np.float16)), "s01": pa.array([1], pa.int8())})
    assert measure(half).all.figures["accuracy"].value == 0


@pytest.mark.parametrize("names", RELEASED)
def test_outcomes_as_bivlc_released_them(names: tuple[str, ...]) -> None:
    rows = [(True, True, True, True), (True, True, True, False), (True, False, True, True), (False, False, False, True)]
    columns = dict(zip(names, ([*column] for column in zip(*rows, strict=True)), strict=True))
    found = measure(pa.table(columns))
    wanted = {"text": 50, "image": 50, "group": 25, "ipos2t": 75, "ineg2t": 50, "tpos2i": 75, "tneg2i": 75}
    assert {name: figure.value for name, figure in found.all.figures.items()} == wanted and found.all.ties is None
    assert all(figure.expected is None for figure in found.all.figures.values())
