"""Metrics of single benchmarks: against the released codes' own reading of the same answers, and by hand."""

import itertools
import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau, spearmanr
from sklearn.metrics import average_precision_score

from twinset.evaluation.examples import MATCHING_SCORES, QUERY_TARGETS
from twinset.evaluation.features.score_table import ranks
from twinset.evaluation.metrics.figures import Figure
from twinset.evaluation.metrics.measure import measure
from twinset_extras.benchmarks.metrics import correlations, sets


def table(rows: list[dict[str, Any]], schema: pa.Schema, **about: object) -> pa.Table:
    named = [{"key": str(n), "subset": "", "category": "", "group": str(n), **row} for n, row in enumerate(rows)]
    return pa.Table.from_pylist(named, schema.with_metadata({b"twinset": json.dumps(about).encode()}))


def of_galleries(scores: list[list[float]], targets: int, *metrics: str) -> dict[str, Figure]:
    """Figures of galleries whose first entries are the targets."""
    wanted = frozenset(range(targets))
    rows = [ranks(np.array(gallery, np.float32), wanted, frozenset()) for gallery in scores]
    return dict(measure(table(rows, QUERY_TARGETS, metrics=metrics), resamples=0).all.figures)


@pytest.mark.parametrize("scores", [[0.3, 0.1, 0.4, 0.2], [0.1, 0.2, 0.3, 0.4, 0.5], [0.9, 0.1]])
def test_average_precision_of_a_whole_gallery_is_scikit_learns(scores: list[float]) -> None:
    """As Cola's released evaluation has it, of scores that do not tie."""
    for targets in range(1, len(scores)):
        figure = of_galleries([scores], targets, "average-precision")["map"]
        expected = average_precision_score([place < targets for place in range(len(scores))], scores)
        assert figure.value == figure.expected == pytest.approx(100 * expected)


def test_both_captions_have_to_be_above_the_wrong_one_and_ties_are_halved() -> None:
    scores: list[list[float]] = [[3, 2, 1], [3, 1, 2], [2, 2, 2], [3, 2, 2]]
    figures = of_galleries(scores, 2, "all-targets")
    assert figures["all_targets"].value == 25 and figures["recall@1"].value == 75
    # All three tie: both targets come first in 2 of 6 orders; one ties: in half.
    assert figures["all_targets"].expected == pytest.approx(100 * (1 + 0 + 1 / 3 + 1 / 2) / 4)
    assert "all_targets" not in of_galleries(scores, 2), "a file names its metrics"


def naturalbench(rows: list[list[float]]) -> dict[str, float]:
    """Its released reading of answers: q0_i0, q0_i1, q1_i0, q1_i1, of which the first and the last should be yes; what
    is neither yes nor no, 0.5 here, is wrong.
    """
    scores = np.array(rows)
    right = np.where([True, False, False, True], scores > 0.5, scores < 0.5)
    return {
        "vqa_acc": 100 * right.mean(),
        "q_acc": 50 * (right[:, :2].all(1).mean() + right[:, 2:].all(1).mean()),
        "i_acc": 50 * (right[:, [0, 2]].all(1).mean() + right[:, [1, 3]].all(1).mean()),
        "g_acc": 100 * right.all(1).mean(),
    }


@settings(max_examples=30)
@given(st.lists(st.lists(st.sampled_from([0.0, 0.25, 0.5, 0.75]), min_size=4, max_size=4), min_size=1, max_size=9))
def test_answers_of_naturalbench_as_its_released_code_counts_them(answers: list[list[float]]) -> None:
    # s_ij is of image i and question j
    rows = [dict(zip(("s00", "s10", "s01", "s11"), row, strict=True)) for row in answers]
    free = table(rows, MATCHING_SCORES, metrics=["yes-no"])
    assert "g_acc" not in measure(free, resamples=0).all.figures, "yes and no need a threshold"
    figures = measure(free, threshold=0.5, resamples=0).all.figures
    for name, value in naturalbench(answers).items():
        assert figures[name].value == pytest.approx(value)


Values = st.integers(2, 12).flatmap(lambda n: st.tuples(*[st.lists(st.integers(0, 6), min_size=n, max_size=n)] * 2))


@given(Values)
def test_as_scipy(values: tuple[list[int], list[int]]) -> None:
    a, b = (np.array(column, np.float64) for column in values)
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
    assert overlap(order, order) == 1 and overlap(order[::-1], order) == 0
    assert overlap([0, 1, 2, 3, 4, 4, 6, 7, 8, 9], order) == 0.8  # two tie for the fifth place
    assert np.isnan(overlap(order, [0, 1, 2, 3, 4, 4, 4, 4, 4, 4]))  # people put four in order
    assert overlap(order, [0, 1, 2, 3, 4, 5, 5, 5, 5, 5]) == 1


SIDES = {"a": ("left", "right", "on", "under"), "b": ("left", "right", "front", "behind")}


def released(right: dict[tuple[str, str, str], bool], subset: str) -> tuple[float, float]:
    """Pair and set accuracy as the loop over dictionaries of right answers counts them."""
    objects = {group for named, group, _ in right if named == subset}
    opposites = SIDES[subset][:2], SIDES[subset][2:]
    pairs = sum(all(right[subset, item, side] for side in sides) for item in objects for sides in opposites)
    whole = sum(all(right[subset, item, side] for side in SIDES[subset]) for item in objects)
    return 100 * pairs / (2 * len(objects)), 100 * whole / len(objects)


def test_pairs_and_sets_are_counted_as_the_released_code_counts_them() -> None:
    drawn = np.random.default_rng(0)
    places = [(s, f"o{n}", side) for s, sides in SIDES.items() for n, side in itertools.product(range(30), sides)]
    places = [places[n] for n in drawn.permutation(len(places))]
    wrong = drawn.random(len(places)) < 0.3
    plain = {"tied": 0, "entries": 4, "targets": 1}
    rows = [
        {"key": f"{n}", "subset": subset, "group": group, "category": side, "higher": int(bad), **plain}
        for n, ((subset, group, side), bad) in enumerate(zip(places, wrong, strict=True))
    ]
    rows.append(rows[0] | {"key": "coco", "subset": "coco-two"})
    table = pa.Table.from_pylist(rows).replace_schema_metadata({"twinset": '{"metrics": ["sets"]}'})
    measured = measure(table, ["subset"], resamples=100)
    right = {place: not bad for place, bad in zip(places, wrong, strict=True)}
    for subset in SIDES:
        figures = measured.by[subset].figures
        pair, whole = released(right, subset)
        assert (figures["pair_accuracy"].value, figures["set_accuracy"].value) == pytest.approx((pair, whole))
        assert figures["set_accuracy"].expected == pytest.approx(whole) and figures["set_accuracy"].low < whole
    assert "pair_accuracy" not in measured.by["coco-two"].figures and "recall@1" in measured.by["coco-two"].figures


def test_ties_are_wrong_and_expected_is_the_chance_of_random_order() -> None:
    def of(count: int) -> list[list[float]]:
        tied = np.array([0, 3, 0, 0])
        counted = sets(["a"] * count, ["g"] * count, SIDES["a"][:count], 0 * tied[:count], tied[:count])
        return [column.tolist() for column in (*counted.strict.values(), *counted.expected.values())]

    pair_right, set_right, pair_chance, set_chance = of(4)
    assert pair_right == [0, 0, 1, 1] and set_right == [0] * 4
    assert pair_chance == [0.25, 0.25, 1, 1] and set_chance == [0.25] * 4
    assert all(np.isnan(column[2]) for column in of(3)), "of a pair that lacks an image nothing is known"
