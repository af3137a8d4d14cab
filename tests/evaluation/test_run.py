import json
import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.evaluation.benchmarks.made_layouts import winoground
from tests.evaluation.features.small_benchmark import Shelf, SmallBenchmark, matchings
from tests.evaluation.features.test_ranks_and_grounding import queries
from tests.made_datasets import MadeDataset
from tests.tiny_encoders import open_clip_config
from twinset.cli.main import main
from twinset.contracts.errors import WrongUse
from twinset.evaluation.benchmarks.built_dataset import open_benchmarks
from twinset.evaluation.from_python import evaluate
from twinset.evaluation.report.model_answers import scores_path
from twinset.evaluation.run import run
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
    found = run(benchmarks(), models, tmp_path / "out", tmp_path / "cache", FAST, lambda *said: done.append(said))
    assert [(one.benchmark, one.model, one.rows, one.computed) for one in found] == [
        ("matching", model, 20, 12),  # 6 pictures and 6 captions
        ("composed", models[1], 5, 7),  # of 12 pictures 6 are known; 1 text
        ("composed", models[2], 5, 0),
    ]
    assert ("composed", models[2], 5) in done
    assert f"composed: {model}: does not say what an image together with a text asks for" in caplog.text
    told = json.loads(pq.read_schema(found[1].path).metadata[b"twinset"])
    names = {"benchmark", "title", "note", "model", "model_digest", "data_digest", "left_out", "seconds", "device"}
    assert names | {"images", "texts"} == set(told) and (told["images"], told["texts"]) == (12, 1)
    assert told["model"] == models[1] and told["device"] == "cpu"
    before = [one.path.read_bytes() for one in found]
    again = run(benchmarks(), models, tmp_path / "out", tmp_path / "cache", FAST)
    assert [one.path.read_bytes() for one in again] == before and {one.computed for one in again} == {0}


@pytest.mark.usefixtures("made_text_pairs", "made_templates")
def test_a_built_dataset_of_several_kinds_has_a_table_for_each(
    tmp_path: Path, model: str, made_pairs: MadeDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("twinset.evaluation.report.page.write_report", lambda *_, **__: [tmp_path])  # tested elsewhere
    places, models = [("twinset", Path(made_pairs.root))], [model, f"text-only:{model}"]
    found = evaluate(places, models, tmp_path / "out", cache=tmp_path / "cache", batch=4, threads=1)
    asked = {(one["benchmark"], one["model"] == model): one["figures"].keys() for one in found["scores"]}
    assert "group" in asked["twinset-pairs", True] and "accuracy" in asked["twinset-text-pairs", True]
    assert "recall@1" in asked["twinset-galleries", False]
    (alone,) = open_benchmarks("twinset", made_pairs.root, ["text"])
    assert alone.name == "twinset"


def test_models_whose_files_would_be_called_alike_are_refused(tmp_path: Path, model: str) -> None:
    out, alike = tmp_path / "out", model.replace("random:", "random:/")
    matching = benchmarks()[:1]
    for asked, models, held in (
        (matching, ["m", "m"], "m"),
        (matching * 2, ["m"], "m"),
        (matching, ["clip:a/b", "clip:a-b"], "clip:a/b"),
    ):
        with pytest.raises(WrongUse, match=f"its scores on matching and those of {held} would be one file, .*parquet"):
            run(asked, models, out)
    (written,) = run(matching, [model], out, tmp_path / "cache", FAST)
    before = written.path.read_bytes()
    with pytest.raises(WrongUse, match=f"--model {re.escape(alike)}: its scores .* those of {re.escape(model)}"):
        run(matching, [alike], out, tmp_path / "cache", FAST)
    assert written.path.read_bytes() == before
    written.path.write_bytes(before[:100])  # broken: written again
    run(matching, [model], out, tmp_path / "cache", FAST)
    assert written.path.read_bytes() == before


def test_the_command_scores_a_released_benchmark_and_ends_with_its_report(
    tmp_path: Path, model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    winoground(tmp_path / "data")
    out = tmp_path / "out"
    options = ["--out", str(out), "--cache", str(tmp_path / "cache"), "--batch", "4", "--threads", "1"]
    command = ["eval", "run", "--benchmark", f"winoground={tmp_path / 'data'}", "--model", model, *options]
    for computed in (6 + 2, 0):  # 6 pictures, 2 captions; then from the cache
        assert main([*command, "--json"]) == 0
        answer = json.loads(capsys.readouterr().out)
        (scored,) = answer["scores"]
        assert (scored["computed"], scored["path"]) == (computed, str(scores_path(out, "winoground", model)))
    results = json.loads((out / "results.json").read_text())
    assert answer["report"] == str(out / "report.html")
    mistakes = results["benchmarks"]["winoground"]["models"][model]["mistakes"]
    assert (out / "report.html").read_text().count("data:image/jpeg") == 2 * len(mistakes) > 0
    assert main(command) == 0
    assert re.search(r"  \w+ +\d+\.\d\d  \d+\.\d\d to \d+\.\d\d", capsys.readouterr().out)
