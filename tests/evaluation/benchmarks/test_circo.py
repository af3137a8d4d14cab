"""CIRCO: its counts, its released evaluation's figures of the same answers, and what its server takes."""

import json
from itertools import permutations
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evaluation.benchmarks.made_layouts import circo
from tests.evaluation.benchmarks.test_published_counts import at_hand
from tests.tiny_encoders import open_clip_config
from twinset.contracts.errors import WrongUse
from twinset.evaluation.benchmarks import open_benchmark
from twinset.evaluation.examples import QUERY_TARGETS, Query
from twinset.evaluation.features.score_table import ranks
from twinset.evaluation.metrics.galleries import PLACES, precision
from twinset.evaluation.metrics.measure import measure
from twinset.evaluation.submissions import write_submissions
from twinset.generators.annotation_files import read_json


def table(rows: list[dict[str, Any]]) -> pa.Table:
    about = json.dumps({"metrics": ["map", "semantic-map"]}).encode()
    named = [{"key": str(n), "subset": "", "category": "", "group": str(n), **row} for n, row in enumerate(rows)]
    return pa.Table.from_pylist(named, QUERY_TARGETS.with_metadata({b"twinset": about}))


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


def _falls(drawn: list[int], order: tuple[int, ...]) -> bool:
    values = [drawn[at] for at in order]
    return values == sorted(values, reverse=True)


def _falling(drawn: list[int]) -> list[tuple[int, ...]]:
    return [order for order in permutations(range(len(drawn))) if _falls(drawn, order)]


def _worst(order: tuple[bool, ...]) -> float:
    return sum(1 / (place + 1) for place, right in enumerate(order) if right)


def answers() -> dict[str, list[int]]:
    return json.loads((at_hand("benchmarks/circo") / "submission_examples/submission_val.json").read_text())  # type: ignore[no-any-return]


def test_map_of_circos_submission_example() -> None:
    """mAP@5 0.49 and mAP@50 0.60, as its released script prints; by aspect as its evaluation counts."""
    rows, released, given = list[dict[str, Any]](), dict[str, list[float]](), answers()
    for query in json.loads((at_hand("benchmarks/circo") / "annotations/val.json").read_bytes()):
        order, targets = [number in query["gt_img_ids"] for number in given[str(query["id"])]], len(query["gt_img_ids"])
        wrong = np.cumsum(~np.array(order))[np.array(order)]
        above = [*wrong.tolist(), *[1000] * (targets - len(wrong))]  # those that were not answered come last
        best = {"higher": above[0], "tied": 0, "entries": 2000, "targets": targets, "tied_targets": 1}
        tags = ";".join(query["semantic_aspects"])
        rows.append({**best, "above": above, "level": [0] * targets, "tags": tags})
        for aspect in query["semantic_aspects"]:
            released.setdefault(aspect, []).append(100 * released_precision(order, targets, 10))
    found = measure(table(rows), resamples=0).all.figures
    assert [round(found[f"map@{k}"].value, 2) for k in (5, 50)] == [0.49, 0.60]
    assert len(released) == 9
    for aspect, values in released.items():
        figure = found[f"map@10 {aspect}"]
        assert (figure.value, figure.expected) == pytest.approx((mean(values), mean(values)), abs=1e-9)


def test_all_targets_of_the_release_and_its_test_without(tmp_path: Path) -> None:
    """COCO's list of unlabelled images is not at hand: one is made of those that the annotations name."""
    folder = at_hand("benchmarks/circo") / "annotations"
    named = set[int]()
    for split in ("val", "test"):
        (tmp_path / "annotations").mkdir(exist_ok=True)
        (tmp_path / "annotations" / f"{split}.json").symlink_to((folder / f"{split}.json").resolve())
        for query in read_json(folder / f"{split}.json"):
            named |= {query["reference_img_id"], *query.get("gt_img_ids", [])}
    images = [{"file_name": f"{number:012d}.jpg"} for number in sorted(named)]
    (tmp_path / "image_info_unlabeled2017.json").write_text(json.dumps({"images": images}))
    (tmp_path / "unlabeled2017").mkdir()
    for image in images:
        (tmp_path / "unlabeled2017" / image["file_name"]).touch()
    found = [one for one in open_benchmark("circo", tmp_path).examples() if isinstance(one, Query)]
    assert len(found) == 220 and sum(len(query.targets) for query in found) == 916
    test = [one for one in open_benchmark("circo-test", tmp_path).examples() if isinstance(one, Query)]
    assert len(test) == 800 and not any(query.targets for query in test)


def test_a_server_takes_the_numbers_of_images(tmp_path: Path) -> None:
    circo(tmp_path / "circo", split="test")
    model = f"image+text:random:{open_clip_config(tmp_path / 'model')}"
    opened = open_benchmark("circo-test", tmp_path / "circo")
    (path,) = write_submissions(opened, model, tmp_path / "out", tmp_path / "cache")
    found = json.loads(path.read_text())
    assert [*found] == ["0", "1", "2"] and all(sorted(names) == [0, 1, 2, 3, 4, 5] for names in found.values())


def test_a_listed_image_that_is_no_object_is_named(tmp_path: Path) -> None:
    circo(tmp_path)
    listing = tmp_path / "annotations/image_info_unlabeled2017.json"
    listing.write_text(json.dumps({"images": [7]}))
    with pytest.raises(WrongUse, match=r"image_info_unlabeled2017\.json record 0: .* not 7"):
        list(open_benchmark("circo", tmp_path).examples())
