"""Parts of a built dataset, and files for servers in the form of the released examples."""

import json
from pathlib import Path

import pytest

from tests.evaluation.benchmarks.made_layouts import LAYOUTS
from tests.evaluation.benchmarks.test_published_counts import at_hand
from tests.made_datasets import MadeDataset
from tests.tiny_encoders import open_clip_config
from twinset.cli.main import main
from twinset.contracts.errors import WrongUse
from twinset.evaluation.benchmarks import open_benchmark
from twinset.evaluation.submissions import write_submissions
from twinset.generators.annotation_files import read_json


def test_a_dataset_of_several_kinds_is_probed_in_the_parts_that_a_run_has(
    made_pairs: MadeDataset,
    made_text_pairs: MadeDataset,
    made_templates: MadeDataset,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert made_pairs.root == made_text_pairs.root == made_templates.root
    assert main(["eval", "blind", f"twinset={made_pairs.root}", "--out", str(tmp_path)]) == 0
    assert {path.name for path in (tmp_path / "probes").iterdir()} == {"twinset-pairs.json", "twinset-text-pairs.json"}
    assert "twinset-galleries: not probed, it has no pairs of captions" in capsys.readouterr().err


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
