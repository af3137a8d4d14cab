"""Files for servers in the form of the released examples."""

import json
from pathlib import Path

import pytest

from tests.evaluation.benchmarks.made_layouts import LAYOUTS
from tests.evaluation.benchmarks.test_published_counts import at_hand
from tests.tiny_encoders import open_clip_config
from twinset.contracts.errors import WrongUse
from twinset.evaluation.benchmarks import open_benchmark
from twinset.evaluation.submissions import write_submissions
from twinset.generators.annotation_files import read_json


@pytest.fixture
def model(tmp_path: Path) -> str:
    """A composition of a small model's features."""
    return f"image+text:random:{open_clip_config(tmp_path / 'model')}"


def written(tmp_path: Path, name: str, model: str) -> dict[str, dict[str, list[object]]]:
    LAYOUTS[name](tmp_path / name)
    benchmark = open_benchmark(name, tmp_path / name)
    paths = write_submissions(benchmark, model, tmp_path / "out", tmp_path / "cache")
    return {path.name: json.loads(path.read_text()) for path in paths}


def test_cirr_ranks_all_images_and_the_members_of_a_set_without_the_reference(tmp_path: Path, model: str) -> None:
    found = written(tmp_path, "cirr-test", model)
    released = read_json(at_hand("cirr") / "demo_files" / "test1_pred_ranks_recall_subset.json")
    assert [*found] == ["recall.json", "recall_subset.json"]
    assert [*found["recall_subset.json"]][:2] == [*released][:2] == ["version", "metric"]
    for file, metric, places in (("recall.json", "recall", 7), ("recall_subset.json", "recall_subset", 3)):
        header, answers = [*found[file].items()][:2], dict([*found[file].items()][2:])
        assert header == [("version", "rc2"), ("metric", metric)] and [*answers] == ["12060", "12061", "12062"]
        for number, (_, names) in enumerate(answers.items()):
            assert len({*names}) == len(names) == places and f"test1-{number}-0-img0" not in names


def test_a_query_that_cannot_be_asked_ends_it_and_nothing_is_written(tmp_path: Path, model: str) -> None:
    LAYOUTS["cirr-test"](tmp_path)
    (tmp_path / "img_raw" / "test1" / "test1-1-0-img0.png").unlink()
    with pytest.raises(WrongUse, match="4 missing image, 1 missing gallery image; a server takes all queries or none"):
        write_submissions(open_benchmark("cirr-test", tmp_path), model, tmp_path / "out", tmp_path / "cache")
    assert not (tmp_path / "out").exists()
