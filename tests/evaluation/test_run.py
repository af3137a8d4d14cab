"""Runs of models on benchmarks, and files for servers in the form of the released examples."""

import json
import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.evaluation.benchmarks.made_layouts import LAYOUTS, winoground
from tests.evaluation.features.small_benchmark import Shelf, SmallBenchmark, matchings
from tests.evaluation.features.test_ranks_and_grounding import queries
from tests.tiny_encoders import open_clip_config
from twinset.cli.main import main
from twinset.contracts.errors import WrongUse
from twinset.evaluation.benchmarks import open_benchmark
from twinset.evaluation.report.model_answers import scores_path
from twinset.evaluation.run import run
from twinset.evaluation.submissions import write_submissions
from twinset.models.encoders.contract import Running

FAST = Running(batch=4, threads=1)


@pytest.fixture
def model(tmp_path: Path) -> str:
    return f"random:{open_clip_config(tmp_path)}"


def benchmarks() -> list[Any]:
    shelf = Shelf()
    return [
        SmallBenchmark(lambda: matchings(shelf, 20), "matching"),
        SmallBenchmark(lambda: queries(shelf, image=shelf.picture(1)), "composed"),
    ]


def test_models_and_benchmarks_of_one_run_share_what_is_encoded(
    tmp_path: Path, model: str, caplog: pytest.LogCaptureFixture
) -> None:
    done: list[tuple[str, str, int]] = []
    models = [model, f"image+text:{model}", f"image-only:{model}"]
    scored = run(benchmarks(), models, tmp_path / "out", tmp_path / "cache", FAST, lambda *step: done.append(step))
    assert [(scores.benchmark, scores.model, scores.rows, scores.computed) for scores in scored] == [
        ("matching", model, 20, 12),  # 6 pictures and 6 captions
        ("composed", models[1], 5, 7),  # of 12 pictures 6 are known; 1 text
        ("composed", models[2], 5, 0),
    ]
    assert ("composed", models[2], 5) in done
    assert f"composed: {model}: does not say what an image together with a text asks for" in caplog.text
    about = json.loads(pq.read_schema(scored[1].path).metadata[b"twinset"])
    assert (about["model"], about["device"], about["images"], about["texts"]) == (models[1], "cpu", 12, 1)
    before = [scores.path.read_bytes() for scores in scored]
    again = run(benchmarks(), models, tmp_path / "out", tmp_path / "cache", FAST)
    assert [scores.path.read_bytes() for scores in again] == before and {scores.computed for scores in again} == {0}


def test_models_whose_files_would_be_called_alike_are_refused(tmp_path: Path, model: str) -> None:
    out, alike = tmp_path / "out", model.replace("random:", "random:/")
    matching = benchmarks()[:1]
    for asked, models, held in ((matching * 2, ["m"], "m"), (matching, ["clip:a/b", "clip:a-b"], "clip:a/b")):
        with pytest.raises(WrongUse, match=f"its scores on matching and those of {held} would be one file"):
            run(asked, models, out)
    (written,) = run(matching, [model], out, tmp_path / "cache", FAST)
    before = written.path.read_bytes()
    with pytest.raises(WrongUse, match=f"--model {re.escape(alike)}: its scores .* those of {re.escape(model)}"):
        run(matching, [alike], out, tmp_path / "cache", FAST)
    written.path.write_bytes(before[:100])  # broken: written again
    run(matching, [model], out, tmp_path / "cache", FAST)
    assert written.path.read_bytes() == before


def test_the_command_scores_a_released_benchmark_and_ends_with_its_report(
    tmp_path: Path, model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    winoground(tmp_path / "data")
    out = tmp_path / "out"
    options = ["--out", str(out), "--cache", str(tmp_path / "cache"), "--batch", "4", "--threads", "1", "--json"]
    command = ["eval", "run", "--benchmark", f"winoground={tmp_path / 'data'}", "--model", model, *options]
    for computed in (6 + 2, 0):  # 6 pictures, 2 captions; then from the cache
        assert main(command) == 0
        answer = json.loads(capsys.readouterr().out)
        (scored,) = answer["scores"]
        assert (scored["computed"], scored["path"]) == (computed, str(scores_path(out, "winoground", model)))
    results = json.loads((out / "results.json").read_text())
    assert answer["report"] == str(out / "report.html")
    mistakes = results["benchmarks"]["winoground"]["models"][model]["mistakes"]
    assert (out / "report.html").read_text().count("data:image/jpeg") == 2 * len(mistakes) > 0


def test_cirr_ranks_all_images_and_the_members_of_a_set_without_the_reference(tmp_path: Path, model: str) -> None:
    LAYOUTS["cirr-test"](tmp_path)

    def submit() -> list[Path]:
        opened = open_benchmark("cirr-test", tmp_path)
        return list(write_submissions(opened, f"image+text:{model}", tmp_path / "out", tmp_path / "cache"))

    paths = submit()
    assert [path.name for path in paths] == ["recall.json", "recall_subset.json"]
    for path, metric, places in zip(paths, ("recall", "recall_subset"), (7, 3), strict=True):
        answers = json.loads(path.read_text())
        assert (answers.pop("version"), answers.pop("metric")) == ("rc2", metric)  # as in the released examples
        assert [*answers] == ["12060", "12061", "12062"]
        for number, (_, names) in enumerate(answers.items()):
            assert len({*names}) == len(names) == places and f"test1-{number}-0-img0" not in names
    (tmp_path / "img_raw" / "test1" / "test1-1-0-img0.png").unlink()
    with pytest.raises(WrongUse, match="4 missing image, 1 missing gallery image; a server takes all queries or none"):
        submit()
