"""``prefect deployment run evaluate/cpu`` on a real server and a real worker."""

import json
from pathlib import Path

import pytest

from tests.end_to_end.server.conftest import Cluster
from tests.evaluation.benchmarks.made_layouts import sugarcrepe, winoground
from tests.tiny_encoders import open_clip_config

NAMES = ["sugarcrepe", "winoground"]


@pytest.mark.slow
def test_models_are_scored_in_tasks_and_the_report_is_linked(cluster: Cluster, tmp_path: Path) -> None:
    sugarcrepe(tmp_path / "sugarcrepe")
    winoground(tmp_path / "winoground")
    model, out = f"random:{open_clip_config(tmp_path)}", tmp_path / "out"
    benchmarks = [f"{name}={tmp_path / name}" for name in NAMES]
    models = [model, f"image+text:{model}"]
    cluster.start("cpu")
    places = {"out": str(out), "cache": str(tmp_path / "cache")}
    result = cluster.run("evaluate/cpu", benchmarks=benchmarks, models=models, threads=1, **places)
    log = cluster.log("cpu")
    assert result.returncode == 0, result.stdout + log
    assert "image+text" in log and "left out" in log, "a rule for queries cannot answer which caption is right"
    results = json.loads((out / "results.json").read_text())["benchmarks"]
    assert {name: list(result["models"]) for name, result in results.items()} == {name: [model] for name in NAMES}
    assert (out / "report.html").stat().st_size > 10_000
    (run,) = cluster.api.runs_of("evaluate/cpu")
    states = cluster.api.tasks(run["id"])
    assert {states[f"{model} on {benchmark}"] for benchmark in benchmarks} == {"COMPLETED"}
    assert (out / "report.html").as_uri() in cluster.api.artifacts(run["id"])["evaluate-report"]
