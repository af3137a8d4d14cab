"""Deployments of ``evaluate`` and ``train`` on a real server and a real worker, which is killed in the middle."""

import json
from pathlib import Path

import psutil
import pytest

from tests.end_to_end.server.conftest import Cluster, kill_below
from tests.evaluation.benchmarks.made_layouts import sugarcrepe, winoground
from tests.made_datasets import MadeDataset
from tests.tiny_encoders import open_clip_config
from tests.waiting import wait_until
from twinset.training.clip.settings import ClipSettings
from twinset.training.clip.train import ClipTask
from twinset.training.runs.settings import checked
from twinset.training.runs.trainer import train

NAMES = ["sugarcrepe", "winoground"]
STEPS = 150  # a second or two; the worker is stopped a few steps after the first checkpoint


@pytest.mark.slow
def test_a_killed_training_is_retried_to_the_same_bytes(
    cluster: Cluster, made_pairs: MadeDataset, tmp_path: Path
) -> None:
    out, data = tmp_path / "run", [f"{made_pairs.root}:eq-ag"]
    settings = {
        "model": str(open_clip_config(tmp_path / "model")), "weights": None, "batch": 4, "steps": STEPS, "lr": 1e-3,
        "threads": 1, "checkpoint_every": 5,
    }  # fmt: skip
    worker = cluster.start("cpu")
    run = cluster.api.start_run("train/cpu", data=data, out=str(out), settings=settings)
    wait_until((out / "history.jsonl").exists, pause=0.5)  # its imports take minutes on a busy machine
    wait_until((out / "checkpoint.safetensors").exists, pause=0.01)
    psutil.Process(worker.pid).suspend()  # it must not see its run die
    kill_below(worker)
    worker.kill()
    worker.wait()
    assert not (out / "result.json").exists(), "it ended before it was killed; raise STEPS"
    cluster.api.crash(run)  # as the shipped automation would later
    cluster.start("cpu")  # a new one: see test_retry
    cluster.retry(run, "cpu")
    straight = train(ClipTask, checked(ClipSettings, {"data": data, **settings}), tmp_path / "straight")
    assert json.loads((out / "result.json").read_bytes())["sha256"]["last.safetensors"] == straight["sha256"]
    artifacts = cluster.api.artifacts(run)
    assert (out / "report.html").as_uri() in artifacts["train-report"] and straight["sha256"] in artifacts["train"]


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
