"""The real annotations, where they are at hand: the published counts, and what else the release holds."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from twinset.evaluation.benchmarks import open_benchmark
from twinset.evaluation.examples import Query
from twinset.generators.annotation_files import read_json

SHARED = Path(__file__).parents[3] / "../shared/data"


def at_hand(name: str) -> Path:
    if not (SHARED / name).is_dir():
        pytest.skip(f"the annotations of ../shared/data/{name} are not on this machine")
    return SHARED / name


def linked(annotations: Path, to: Path) -> Any:
    """The annotation file in a folder of its own; returns what it holds."""
    (to / annotations.name).symlink_to(annotations.resolve())
    return json.loads(annotations.read_bytes())


def touch(folder: Path, names: set[str]) -> None:
    """Files for images, of which nothing is read but that they are there."""
    folder.mkdir()
    for name in names:
        (folder / name).touch()


def test_genecis(tmp_path: Path) -> None:
    templates = linked(at_hand("genecis") / "change_object.json", tmp_path)
    named = {one["val_image_id"] for each in templates for one in [each["reference"], each["target"], *each["gallery"]]}
    touch(tmp_path / "val2017", {f"{number:012d}.jpg" for number in named})
    found = [item for item in open_benchmark("genecis", tmp_path).examples() if isinstance(item, Query)]
    assert Counter(len(query.gallery) for query in found) == {15: 1960}
    assert Counter(len(query.targets) for query in found) == {1: 1959, 2: 1}  # one gallery repeats its target
    assert len({query.group for query in found}) == 218


@pytest.mark.slow
def test_cirr(tmp_path: Path) -> None:
    records = linked(at_hand("cirr") / "cap.rc2.val.json", tmp_path)
    linked(at_hand("cirr") / "image_splits" / "split.rc2.val.json", tmp_path)
    touch(tmp_path / "dev", {f"{name}.png" for record in records for name in record["img_set"]["members"]})
    found = [item for item in open_benchmark("cirr", tmp_path).examples() if isinstance(item, Query)]
    assert Counter((query.subset, len(query.gallery)) for query in found) == {
        ("global", 2297): 4181,
        ("subset", 6): 4181,
    }
    assert all(len(query.targets) == len(query.excluded) == 1 for query in found)
    assert len({query.group for query in found}) == 503


def test_cirrs_test_split_without_targets(tmp_path: Path) -> None:
    folder = at_hand("cirr")
    records = read_json(folder / "captions" / "cap.rc2.test1.json.gz")
    (tmp_path / "cap.rc2.test1.json").write_text(json.dumps(records))
    split = folder / "image_splits" / "split.rc2.test1.json"
    (tmp_path / split.name).symlink_to(split.resolve())
    opened = open_benchmark("cirr-test", tmp_path, captions_only=True)
    found = [item for item in opened.examples() if isinstance(item, Query)]
    assert Counter(query.subset for query in found) == {"global": 4148, "subset": 4148}
    assert {len(one.gallery) for one in found} == {2315, 6}
    demo = read_json(folder / "demo_files" / "test1_pred_ranks_recall.json.gz")
    assert {one.key.partition("/")[2] for one in found} == {key for key in demo if key.isdigit()}
