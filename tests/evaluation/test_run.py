from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from cli.eval_run import named
from evaluation.run import run, scores_path
from evaluation.scorers.contract import NotApplicable, Running
from manifests.errors import WrongUse
from tests.evaluation.features.small_benchmark import Shelf, SmallBenchmark, matchings
from tests.evaluation.features.test_score_table import queries
from tests.evaluation.scorers.tiny_models import open_clip_config

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
    found = run(benchmarks(), models, tmp_path / "out", tmp_path / "cache", FAST, lambda *said: done.append(said))
    assert [(one.benchmark, one.model, one.rows, one.computed) for one in found] == [
        ("matching", model, 20, 12),  # 6 pictures and 6 captions
        ("composed", models[1], 5, 7),  # of 12 pictures 6 are known; 1 text
        ("composed", models[2], 5, 0),
    ]
    assert ("composed", models[2], 5) in done
    assert f"composed: {model}: does not say what an image together with a text asks for" in caplog.text
    told = json.loads(pq.read_schema(found[1].path).metadata[b"twinset"])
    assert {"benchmark", "title", "model", "model_digest", "data_digest", "left_out", "seconds", "device"} == set(told)
    assert told["model"] == models[1] and told["device"] == "cpu"
    before = [one.path.read_bytes() for one in found]
    again = run(benchmarks(), models, tmp_path / "out", tmp_path / "cache", FAST)
    assert [one.path.read_bytes() for one in again] == before and {one.computed for one in again} == {0}


def test_a_run_in_which_no_model_can_answer_says_why(tmp_path: Path, model: str) -> None:
    with pytest.raises(NotApplicable, match=r"--model image\+text:"):
        run(benchmarks()[1:], [model], tmp_path / "out", tmp_path / "cache", FAST)


def test_names_that_would_share_a_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="--model m: is named twice"):
        run(benchmarks(), ["m", "m"], tmp_path)
    with pytest.raises(WrongUse, match="--benchmark matching: is named twice"):
        run(benchmarks()[:1] * 2, ["m"], tmp_path)
    with pytest.raises(WrongUse, match="--model: name at least one"):
        run(benchmarks(), [], tmp_path)


def test_files_of_scores_are_named_by_their_models() -> None:
    out = Path("out")
    assert (
        scores_path(out, "bivlc", "open_clip:ViT-B-32:openai") == out / "scores/bivlc/open_clip-ViT-B-32-openai.parquet"
    )
    assert scores_path(out, "b", "clip:../my models/x").name == "clip-..-my-models-x.parquet"
    long = [scores_path(out, "b", f"clip:{'x' * 300}{n}").name for n in range(2)]
    assert len(long[0]) < 150 and long[0] != long[1]


def test_folders_belong_to_benchmarks_by_place_or_by_name() -> None:
    assert named(["a", "b=/x=y", "c"], ["/1", "/2"]) == [("a", "/1"), ("b", "/x=y"), ("c", "/2")]
    for names, folders in ((["a"], []), (["a=/x"], ["/1"]), (["a", "b"], ["/1"])):
        with pytest.raises(WrongUse, match="--data"):
            named(names, folders)
