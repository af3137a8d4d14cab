"""Metrics of single benchmarks: against the released codes' own reading of the same answers, and by hand."""

import itertools
import json
from itertools import permutations
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau, spearmanr

from tests.evaluation.benchmarks.test_published_counts import at_hand
from twinset.evaluation.examples import MATCHING_SCORES, QUERY_TARGETS
from twinset.evaluation.features.score_table import ranks
from twinset.evaluation.metrics.compare import compare
from twinset.evaluation.metrics.measure import measure
from twinset_extras.benchmarks.metrics import PLACES, correlations, precision, sets


def table(rows: list[dict[str, Any]], schema: pa.Schema, **about: object) -> pa.Table:
    named = [{"key": str(n), "subset": "", "category": "", "group": str(n), **row} for n, row in enumerate(rows)]
    return pa.Table.from_pylist(named, schema.with_metadata({b"twinset": json.dumps(about).encode()}))


def released_precision(order: list[bool], targets: int, k: int) -> float:
    """CIRCO's evaluation: precision at the places of targets, over min(targets, k)."""
    found = np.cumsum(order) * order / np.arange(1, len(order) + 1)
    return float(found[:k].sum()) / min(targets, k)


scores = st.lists(st.integers(0, 3), min_size=2, max_size=6)  # 720 orders


@given(scores, st.data())
def test_average_precision_is_that_of_the_released_code_in_the_worst_and_the_mean_order(
    drawn: list[int], data: st.DataObject
) -> None:
    targets = data.draw(st.integers(1, len(drawn) - 1))
    row = ranks(np.array(drawn, np.float32), frozenset(range(targets)), frozenset())
    above, level = (np.array(row[name], np.int64) for name in ("above", "level"))
    orders = {tuple(at < targets for at in order) for order in permutations(range(len(drawn))) if _falls(drawn, order)}
    worst = min(orders, key=lambda order: [place for place, right in enumerate(order) if right][::-1] and _worst(order))
    assert precision(above + level, 0 * level)[0] == pytest.approx(released_precision([*worst], targets, PLACES[0]))
    means = [released_precision([at < targets for at in order], targets, 5) for order in _falling(drawn)]
    assert precision(above, level)[0] == pytest.approx(mean(means))


@pytest.mark.slow
@given(scores, st.data())
def test_average_precision_of_a_whole_gallery_is_scikit_learns(drawn: list[int], data: st.DataObject) -> None:
    """As Cola's released evaluation has it, of scores that do not tie."""
    from sklearn.metrics import average_precision_score

    targets = data.draw(st.integers(1, len(drawn) - 1))
    order = np.argsort(np.argsort(np.array(drawn), kind="stable")).astype(np.float32)
    rows = [ranks(order, frozenset(range(targets)), frozenset())]
    found = measure(table(rows, QUERY_TARGETS, metrics=["average-precision"]), resamples=0).all.figures["map"]
    expected = average_precision_score([at < targets for at in range(len(drawn))], order)
    assert found.value == found.expected == pytest.approx(100 * expected)


def _falls(drawn: list[int], order: tuple[int, ...]) -> bool:
    values = [drawn[at] for at in order]
    return values == sorted(values, reverse=True)


def _falling(drawn: list[int]) -> list[tuple[int, ...]]:
    return [order for order in permutations(range(len(drawn))) if _falls(drawn, order)]


def _worst(order: tuple[bool, ...]) -> float:
    return sum(1 / (place + 1) for place, right in enumerate(order) if right)


def submission(name: str) -> dict[str, list[int]]:
    path = at_hand("benchmarks/circo") / "submission_examples" / name
    return json.loads(path.read_text())  # type: ignore[no-any-return]


def test_map_of_circos_submission_example() -> None:
    """mAP@5 0.49 and mAP@50 0.60, as its released script prints."""
    truth = json.loads((at_hand("benchmarks/circo") / "annotations" / "val.json").read_text())
    rows = []
    for one in truth:
        shown = submission("submission_val.json")[str(one["id"])]
        targets = [at for at, name in enumerate(shown) if name in one["gt_img_ids"]]
        absent = len(one["gt_img_ids"]) - len(targets)
        order = np.arange(len(shown) + 1000, 0, -1).astype(np.float32)  # the rest of COCO behind
        places = frozenset(targets) | frozenset(range(len(order) - absent, len(order)))
        rows.append(ranks(order, places, frozenset()))
    found = measure(table(rows, QUERY_TARGETS, metrics=["map"]), resamples=0).all.figures
    assert [round(found[f"map@{k}"].value, 2) for k in (5, 50)] == [0.49, 0.60]
    assert found["map@5"].expected == found["map@5"].value  # no ties


def test_both_captions_have_to_be_above_the_wrong_one_and_ties_are_halved() -> None:
    drawn = [[3, 2, 1], [3, 1, 2], [2, 2, 2], [3, 2, 2]]
    rows = [ranks(np.array(one, np.float32), frozenset({0, 1}), frozenset()) for one in drawn]
    found = measure(table(rows, QUERY_TARGETS, metrics=["all-targets"]), resamples=0).all
    assert found.figures["all_targets"].value == 25
    # All three tie: both targets come first in 2 of 6 orders; one ties: in half.
    assert found.figures["all_targets"].expected == pytest.approx(100 * (1 + 0 + 1 / 3 + 1 / 2) / 4)
    assert found.figures["recall@1"].value == 75


def naturalbench(rows: list[list[float]]) -> dict[str, float]:
    """Its released reading of answers: q0_i0, q0_i1, q1_i0, q1_i1, of which the first and the last should be yes; what
    is neither yes nor no, 0.5 here, is wrong.
    """
    right = np.array([[one[0] > 0.5, one[1] < 0.5, one[2] < 0.5, one[3] > 0.5] for one in rows])
    return {
        "vqa_acc": 100 * right.mean(),
        "q_acc": 50 * (right[:, :2].all(1).mean() + right[:, 2:].all(1).mean()),
        "i_acc": 50 * (right[:, [0, 2]].all(1).mean() + right[:, [1, 3]].all(1).mean()),
        "g_acc": 100 * right.all(1).mean(),
    }


@given(st.lists(st.lists(st.floats(0, 1, width=32), min_size=4, max_size=4), min_size=1, max_size=9))
def test_answers_of_naturalbench_as_its_released_code_counts_them(answers: list[list[float]]) -> None:
    # s_ij is of image i and question j
    rows = [dict(zip(("s00", "s10", "s01", "s11"), one, strict=True)) for one in answers]
    found = measure(table(rows, MATCHING_SCORES, metrics=["yes-no"], threshold=0.5), resamples=0).all.figures
    for name, value in naturalbench(answers).items():
        assert found[name].value == pytest.approx(value)


def test_a_model_that_answers_nothing_gets_nothing() -> None:
    silent = table(
        [dict.fromkeys(("s00", "s01", "s10", "s11"), 0.5)] * 3, MATCHING_SCORES, metrics=["yes-no"], threshold=0.5
    )
    figures = measure(silent, resamples=0).all.figures
    assert {figures[name].value for name in ("vqa_acc", "q_acc", "i_acc", "g_acc")} == {0}


def test_yes_and_no_need_a_threshold_and_groups_are_compared() -> None:
    rows = [{"s00": 0.9, "s01": 0.1, "s10": 0.2, "s11": n / 8} for n in range(8)]
    free = table(rows, MATCHING_SCORES, metrics=["yes-no"])
    assert "g_acc" not in measure(free, resamples=0).all.figures
    asked = measure(free, threshold=0.5, resamples=100).all.figures
    assert asked["g_acc"].value == 37.5 and asked["g_acc"].low is not None
    better = [{**row, "s11": 1.0} for row in rows]
    both = [table(one, MATCHING_SCORES, metrics=["yes-no"], threshold=0.5) for one in (better, rows)]
    lines = {line["figure"]: line for line in compare(*both, resamples=100).table.to_dicts()}
    assert lines["g_acc"]["difference"] == 62.5 and lines["g_acc"]["only_a"] == 5


def test_average_precision_by_aspect_is_that_of_circos_released_evaluation() -> None:
    asked = json.loads((at_hand("benchmarks/circo") / "annotations/val.json").read_bytes())
    answers = submission("submission_val.json")
    rows, released = list[dict[str, Any]](), dict[str, list[float]]()
    for one in asked:
        order = [number in one["gt_img_ids"] for number in answers[str(one["id"])]]
        targets = len(one["gt_img_ids"])
        wrong = np.cumsum(~np.array(order))[np.array(order)]
        above = [*wrong.tolist(), *[1000] * (targets - len(wrong))]  # those that were not answered come last
        best = {"higher": above[0], "tied": 0, "entries": 2000, "targets": targets, "tied_targets": 1}
        tags = ";".join(one["semantic_aspects"])
        rows.append({**best, "above": above, "level": [0] * targets, "tags": tags})
        for aspect in one["semantic_aspects"]:
            released.setdefault(aspect, []).append(100 * released_precision(order, targets, 10))
    found = measure(table(rows, QUERY_TARGETS, metrics=["map", "semantic-map"]), resamples=0).all.figures
    assert len(released) == 9
    for aspect, values in released.items():
        figure = found[f"map@10 {aspect}"]
        assert (figure.value, figure.expected) == pytest.approx((mean(values), mean(values)), abs=1e-9)


def test_aspects_are_means_over_their_queries_alone() -> None:
    made = [({0}, "addition;negation"), ({1}, "negation"), ({1}, "")]
    rows = [ranks(np.array([2, 1], np.float32), frozenset(one), frozenset()) | {"tags": tags} for one, tags in made]
    found = measure(table(rows, QUERY_TARGETS, metrics=["semantic-map"]), resamples=0).all.figures
    named = {name: figure.value for name, figure in found.items() if name.startswith("map@10")}
    assert named == {"map@10 addition": 100, "map@10 negation": 75}


def test_a_metric_that_a_file_does_not_name_is_not_measured(tmp_path: Path) -> None:
    rows = [ranks(np.array([2, 1], np.float32), frozenset({0}), frozenset())]
    assert not {"map@5", "all_targets"} & {*measure(table(rows, QUERY_TARGETS), resamples=0).all.figures}


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
    assert overlap(order, order) == 1 and overlap(order[::-1], order) == 0
    assert overlap([0, 1, 2, 3, 4, 4, 6, 7, 8, 9], order) == 0.8  # two tie for the fifth place
    assert np.isnan(overlap(order, [0, 1, 2, 3, 4, 4, 4, 4, 4, 4]))  # people put four in order
    assert overlap(order, [0, 1, 2, 3, 4, 5, 5, 5, 5, 5]) == 1


def galleries(places: list[list[int]], people: list[list[int]]) -> pa.Table:
    ranks = {"higher": 0, "tied": 0, "entries": 6, "targets": 1, "tied_targets": 1}
    rows = [
        {"key": f"k{n}", "subset": "s", "category": "", "group": f"g{n}", **ranks, "places": a, "people": b}
        for n, (a, b) in enumerate(zip(places, people, strict=True))
    ]
    return pa.Table.from_pylist(rows).replace_schema_metadata({"twinset": '{"metrics": ["ranking"]}'})


def test_figures_are_means_over_the_queries_that_have_one() -> None:
    up, down, tied = [0, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0], [0, 1, 1, 1, 1, 1]
    found = measure(galleries([up, up, up], [up, down, tied]), resamples=0).all.figures
    taus = [1, -1, correlations(np.array(up, float), np.array(tied, float))[0]]
    assert found["mean_kendall"].value == pytest.approx(np.mean(taus))
    assert found["overlap@5"].value == pytest.approx(np.mean([100, 80]))
    assert found["recall@1"].value == 100


SIDES = {"a": ("left", "right", "on", "under"), "b": ("left", "right", "front", "behind")}


def released(right: dict[tuple[str, str, str], bool], subset: str) -> tuple[float, float]:
    """Pair and set accuracy as the loop over dictionaries of right answers counts them."""
    objects = {group for one, group, _ in right if one == subset}
    left, other = SIDES[subset][:2], SIDES[subset][2:]
    pairs = sum(all(right[subset, one, name] for name in two) for one in objects for two in (left, other))
    sets = sum(all(right[subset, one, name] for name in SIDES[subset]) for one in objects)
    return 100 * pairs / (2 * len(objects)), 100 * sets / len(objects)


def test_pairs_and_sets_are_counted_as_the_released_code_counts_them() -> None:
    drawn = np.random.default_rng(0)
    places = [(s, f"o{n}", side) for s, sides in SIDES.items() for n, side in itertools.product(range(30), sides)]
    places = [places[n] for n in drawn.permutation(len(places))]
    wrong = drawn.random(len(places)) < 0.3
    rows = [
        {
            "key": f"{n}",
            "subset": s,
            "group": g,
            "category": c,
            "higher": int(bad),
            "tied": 0,
            "entries": 4,
            "targets": 1,
        }
        for n, ((s, g, c), bad) in enumerate(zip(places, wrong, strict=True))
    ]
    rows.append(rows[0] | {"key": "coco", "subset": "coco-two"})
    table = pa.Table.from_pylist(rows).replace_schema_metadata({"twinset": '{"metrics": ["sets"]}'})
    found = measure(table, ["subset"])
    right = {place: not bad for place, bad in zip(places, wrong, strict=True)}
    for subset in SIDES:
        figures = found.by[subset].figures
        pair, whole = released(right, subset)
        assert (figures["pair_accuracy"].value, figures["set_accuracy"].value) == pytest.approx((pair, whole))
        assert figures["set_accuracy"].expected == pytest.approx(whole) and figures["set_accuracy"].low < whole
    assert "pair_accuracy" not in found.by["coco-two"].figures and "recall@1" in found.by["coco-two"].figures


def test_ties_are_wrong_and_expected_is_the_chance_of_random_order() -> None:
    def of(count: int) -> list[list[float]]:
        tied = np.array([0, 3, 0, 0])
        found = sets(["a"] * count, ["g"] * count, SIDES["a"][:count], 0 * tied[:count], tied[:count])
        return [column.tolist() for column in (*found.strict.values(), *found.expected.values())]

    pair_right, set_right, pair_chance, set_chance = of(4)
    assert pair_right == [0, 0, 1, 1] and set_right == [0] * 4
    assert pair_chance == [0.25, 0.25, 1, 1] and set_chance == [0.25] * 4
    assert all(np.isnan(column[2]) for column in of(3)), "of a pair that lacks an image nothing is known"
