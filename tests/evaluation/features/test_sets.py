"""What'sUp's pair and set accuracy: by hand, as its released code counts, and with ties."""

import itertools
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from twinset.evaluation.features.sets import add_sets, columns_of
from twinset.evaluation.metrics.measure import measure

SIDES = {"a": ("left", "right", "on", "under"), "b": ("left", "right", "front", "behind")}


def released(right: dict[tuple[str, str, str], bool], subset: str) -> tuple[float, float]:
    """Pair and set accuracy as the loop over dictionaries of right answers counts them."""
    objects = {group for one, group, _ in right if one == subset}
    left, other = SIDES[subset][:2], SIDES[subset][2:]
    pairs = sum(all(right[subset, one, name] for name in two) for one in objects for two in (left, other))
    sets = sum(all(right[subset, one, name] for name in SIDES[subset]) for one in objects)
    return 100 * pairs / (2 * len(objects)), 100 * sets / len(objects)


def test_pairs_and_sets_are_counted_as_the_released_code_counts_them(tmp_path: Path) -> None:
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
    pq.write_table(table, tmp_path / "s.parquet")
    add_sets(tmp_path / "s.parquet")
    found = measure(tmp_path / "s.parquet", ["subset"])
    right = {place: not bad for place, bad in zip(places, wrong, strict=True)}
    for subset in SIDES:
        figures = found.by[subset].figures
        pair, whole = released(right, subset)
        assert (figures["pair_accuracy"].value, figures["set_accuracy"].value) == pytest.approx((pair, whole))
        assert figures["set_accuracy"].expected == pytest.approx(whole) and figures["set_accuracy"].low < whole
    assert "pair_accuracy" not in found.by["coco-two"].figures and "recall@1" in found.by["coco-two"].figures


def test_ties_are_wrong_and_expected_is_the_chance_of_random_order() -> None:
    rows = [
        {"subset": "a", "group": "g", "category": side, "higher": 0, "tied": tied}
        for side, tied in zip(SIDES["a"], (0, 3, 0, 0), strict=True)
    ]
    found = columns_of(rows)
    assert [one["pair_right"] for one in found] == [0, 0, 1, 1] and found[0]["pair_chance"] == 0.25
    assert found[3]["set_right"] == 0 and found[3]["set_chance"] == 0.25
    assert columns_of(rows[:3])[2] == {}, "of a pair that lacks an image nothing is known"
