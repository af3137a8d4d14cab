"""``prefect deployment run evaluate/cpu`` on a real server and a real worker."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.server.conftest import parameters
from tests.evaluation.benchmarks.made_layouts import sugarcrepe, winoground
from tests.tiny_encoders import open_clip_config


@pytest.mark.slow
def test_models_are_scored_in_tasks_and_the_report_is_linked(
    prefect: Any, start_worker: Any, api: Any, tmp_path: Path
) -> None:
    sugarcrepe(tmp_path / "sugarcrepe")
    winoground(tmp_path / "winoground")
    model, out = f"random:{open_clip_config(tmp_path)}", tmp_path / "out"
    start_worker("cpu")
    given = parameters(
        benchmarks=[f"{name}={tmp_path / name}" for name in ("sugarcrepe", "winoground")],
        models=[model, f"image+text:{model}"],
        out=str(out),
        cache=str(tmp_path / "cache"),
        threads=1,
    )
    result = prefect("deployment", "run", "evaluate/cpu", "--watch", *given)
    log = (tmp_path / "cpu.log").read_text()
    assert result.returncode == 0, result.stdout + log
    assert "image+text" in log and "left out" in log, "a rule for queries cannot answer which caption is right"
    benchmarks = json.loads((out / "results.json").read_text())["benchmarks"]
    assert {name: list(found["models"]) for name, found in benchmarks.items()} == {
        "sugarcrepe": [model], "winoground": [model]
    }  # fmt: skip
    assert (out / "report.html").stat().st_size > 10_000
    (run,) = api.runs_of("evaluate/cpu")
    states = api.tasks(run["id"])
    assert {states[f"{model} on {name}={tmp_path / name}"] for name in ("sugarcrepe", "winoground")} == {"COMPLETED"}
    artifacts = {found["key"]: found["data"] for found in api.ask("/artifacts/latest/filter", {"limit": 200})}
    assert (out / "report.html").as_uri() in artifacts["evaluate-report"]

    # Its images are gone: what was scored stays, and the run says what failed.
    for image in (tmp_path / "winoground" / "images").iterdir():
        image.unlink()
    result = prefect("deployment", "run", "evaluate/cpu", "--watch", *given)
    assert result.returncode != 0
    assert "winoground" in (tmp_path / "cpu.log").read_text()
    assert list(json.loads((out / "results.json").read_text())["benchmarks"]) == ["sugarcrepe", "winoground"]
