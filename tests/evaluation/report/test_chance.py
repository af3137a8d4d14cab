"""What answers at random get, counted out."""

from itertools import combinations, permutations
from pathlib import Path
from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evaluation.report.made_scores import SCHEMAS, matchings, ranks, save
from twinset.evaluation.report.results import TWO_IMAGES, chance, recall


def test_of_two_images_it_is_the_share_of_all_orders_of_four_scores() -> None:
    orders = [dict(zip(("s00", "s01", "s10", "s11"), order, strict=True)) for order in permutations((1, 2, 4, 8))]
    right = {
        "ipos2t": [one["s00"] > one["s01"] for one in orders],
        "ineg2t": [one["s11"] > one["s10"] for one in orders],
        "tpos2i": [one["s00"] > one["s10"] for one in orders],
        "tneg2i": [one["s11"] > one["s01"] for one in orders],
        "group_match": [one["s00"] + one["s11"] > one["s01"] + one["s10"] for one in orders],
    }
    right["text"] = [a and b for a, b in zip(right["ipos2t"], right["ineg2t"], strict=True)]
    right["image"] = [a and b for a, b in zip(right["tpos2i"], right["tneg2i"], strict=True)]
    right["group"] = [a and b for a, b in zip(right["text"], right["image"], strict=True)]
    assert pytest.approx({name: 100 * mean(values) for name, values in right.items()}) == TWO_IMAGES


@given(st.integers(1, 7).flatmap(lambda n: st.tuples(st.just(n), st.integers(1, n), st.integers(1, 8))))
def test_recall_is_the_share_of_all_first_entries_with_a_target(sizes: tuple[int, int, int]) -> None:
    entries, targets, k = sizes
    firsts = list(combinations(range(entries), min(k, entries)))
    hit = mean(any(entry < targets for entry in first) for first in firsts)
    assert recall(k, entries, targets) == pytest.approx(100 * hit)


def test_it_is_counted_for_the_galleries_that_there_are(tmp_path: Path) -> None:
    rows = [*ranks(9, 15), *({**row, "key": f"b{row['key']}", "subset": "third"} for row in ranks(3, 10))]
    path = save(tmp_path, "galleries", "m", rows, SCHEMAS["query"])
    found = chance(path, "query", ["recall@1", "recall@3"])
    assert found["third"] == pytest.approx({"recall@1": 10, "recall@3": 30})
    assert found["first"] == pytest.approx({"recall@1": 100 / 15, "recall@3": 20})
    assert found[""]["recall@1"] == pytest.approx((9 * 100 / 15 + 3 * 10) / 12)


def test_no_more_than_is_known_is_said(tmp_path: Path) -> None:
    path = save(tmp_path, "pairs", "m", matchings(4, 0, 0.0), SCHEMAS["matching"])
    assert chance(path, "matching", ["p_c", "mean_equivariance_text"]) == {}
    assert chance(path, "matching", ["accuracy"]) == {name: {"accuracy": 50.0} for name in ("", "first", "second")}
    assert chance(path, "grounding", ["grounding@0.1"]) == {}
