"""The real annotations, where they are at hand: what releases hold besides the counts of tests/guard; CIRCO."""

import json
from collections import Counter
from itertools import permutations
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.evaluation.benchmarks.made_layouts import circo, put, queries
from tests.guard.test_oracles import at_hand
from tests.tiny_encoders import open_clip_config
from twinset.evaluation.benchmarks import open_benchmark
from twinset.evaluation.examples import QUERY_TARGETS, Query
from twinset.evaluation.features.score_table import ranks
from twinset.evaluation.metrics.galleries import PLACES, precision
from twinset.evaluation.metrics.measure import measure
from twinset.evaluation.submissions import write_submissions
from twinset.generators.annotation_files import read_json


def asked(name: str, folder: Path) -> list[Query]:
    return queries(open_benchmark(name, folder, captions_only=True))


@pytest.mark.parametrize(
    ("name", "galleries", "targets", "groups"),
    [
        ("genecis", {15: 1960}, {1: 1959, 2: 1}, 218),  # one gallery repeats its target
        pytest.param("cirr", {2297: 4181, 6: 4181}, {1: 8362}, 503, marks=pytest.mark.slow),
    ],
)
def test_galleries(name: str, galleries: dict[int, int], targets: dict[int, int], groups: int) -> None:
    items = asked(name, at_hand(name))
    assert Counter(len(query.gallery) for query in items) == galleries
    assert Counter(len(query.targets) for query in items) == targets
    assert len({query.group for query in items}) == groups


def test_cirrs_test_split_without_targets(tmp_path: Path) -> None:
    folder = at_hand("cirr")
    put(tmp_path / "cap.rc2.test1.json", read_json(folder / "captions" / "cap.rc2.test1.json.gz"))
    split = "split.rc2.test1.json"
    put(tmp_path / split, read_json(folder / "image_splits" / split))
    items = asked("cirr-test", tmp_path)
    assert Counter(query.subset for query in items) == {"global": 4148, "subset": 4148}
    assert {len(query.gallery) for query in items} == {2315, 6}
    demo = read_json(folder / "demo_files" / "test1_pred_ranks_recall.json.gz")
    assert {query.key.partition("/")[2] for query in items} == {key for key in demo if key.isdigit()}


def table(rows: list[dict[str, Any]]) -> pa.Table:
    about = json.dumps({"metrics": ["map", "semantic-map"]}).encode()
    named = [{"key": str(n), "subset": "", "category": "", "group": str(n), **row} for n, row in enumerate(rows)]
    return pa.Table.from_pylist(named, QUERY_TARGETS.with_metadata({b"twinset": about}))


def released_precision(order: list[bool], targets: int, k: int) -> float:
    """CIRCO's evaluation: precision at the places of targets, over min(targets, k)."""
    precisions = np.cumsum(order) * order / np.arange(1, len(order) + 1)
    return float(precisions[:k].sum()) / min(targets, k)


@settings(max_examples=30)
@given(st.lists(st.integers(0, 3), min_size=2, max_size=6), st.data())
def test_average_precision_is_that_of_the_released_code_in_the_worst_and_the_mean_order(
    drawn: list[int], data: st.DataObject
) -> None:
    targets = data.draw(st.integers(1, len(drawn) - 1))
    row = ranks(np.array(drawn, np.float32), frozenset(range(targets)), frozenset())
    above, level = (np.array(row[name], np.int64) for name in ("above", "level"))
    falling = sorted(drawn, reverse=True)
    orders = [order for order in permutations(range(len(drawn))) if [drawn[at] for at in order] == falling]
    precisions = [released_precision([at < targets for at in order], targets, PLACES[0]) for order in orders]
    assert precision(above + level, 0 * level)[0] == pytest.approx(min(precisions))
    assert precision(above, level)[0] == pytest.approx(mean(precisions))


def test_map_of_circos_submission_example() -> None:
    """mAP@5 0.49 and mAP@50 0.60, as its released script prints; by aspect as its evaluation counts."""
    rows, released, folder = list[dict[str, Any]](), dict[str, list[float]](), at_hand("benchmarks/circo")
    given = read_json(folder / "submission_examples/submission_val.json")
    for query in read_json(folder / "annotations/val.json"):
        order, targets = [number in query["gt_img_ids"] for number in given[str(query["id"])]], len(query["gt_img_ids"])
        wrong = np.cumsum(~np.array(order))[np.array(order)]
        above = [*wrong.tolist(), *[1000] * (targets - len(wrong))]  # those that were not answered come last
        best = {"higher": above[0], "tied": 0, "entries": 2000, "targets": targets, "tied_targets": 1}
        tags = ";".join(query["semantic_aspects"])
        rows.append({**best, "above": above, "level": [0] * targets, "tags": tags})
        for aspect in query["semantic_aspects"]:
            released.setdefault(aspect, []).append(100 * released_precision(order, targets, 10))
    figures = measure(table(rows), resamples=0).all.figures
    assert [round(figures[f"map@{k}"].value, 2) for k in (5, 50)] == [0.49, 0.60]
    assert len(released) == 9
    for aspect, values in released.items():
        figure = figures[f"map@10 {aspect}"]
        assert (figure.value, figure.expected) == pytest.approx((mean(values), mean(values)), abs=1e-9)


def test_all_targets_of_the_release_and_its_test_without(tmp_path: Path) -> None:
    """COCO's list of unlabelled images is not at hand: one is made of those that the annotations name."""
    named = set[int]()
    for split in ("val", "test"):
        released = read_json(at_hand("benchmarks/circo") / f"annotations/{split}.json")
        put(tmp_path / f"annotations/{split}.json", released)
        named |= {number for query in released for number in (query["reference_img_id"], *query.get("gt_img_ids", []))}
    images = [{"file_name": f"{number:012d}.jpg"} for number in sorted(named)]
    put(tmp_path / "image_info_unlabeled2017.json", {"images": images})
    targets = [len(query.targets) for query in asked("circo", tmp_path)]
    assert (len(targets), sum(targets)) == (220, 916)
    assert [len(query.targets) for query in asked("circo-test", tmp_path)] == [0] * 800


def test_a_server_takes_the_numbers_of_images(tmp_path: Path) -> None:
    circo(tmp_path / "circo", split="test")
    model = f"image+text:random:{open_clip_config(tmp_path / 'model')}"
    opened = open_benchmark("circo-test", tmp_path / "circo")
    (path,) = write_submissions(opened, model, tmp_path / "out", tmp_path / "cache")
    ranked = json.loads(path.read_text())
    assert [*ranked] == ["0", "1", "2"] and all(sorted(names) == [0, 1, 2, 3, 4, 5] for names in ranked.values())
