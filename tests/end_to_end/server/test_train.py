"""The deployments of ``train`` on a real server and real workers, one of which is killed in the middle."""

import json
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.end_to_end.server.conftest import kill_below
from tests.made_datasets import MadeDataset
from tests.tiny_encoders import open_clip_config
from twinset.training.clip.settings import ClipSettings
from twinset.training.clip.train import ClipTask
from twinset.training.runs.settings import checked
from twinset.training.runs.trainer import train

STEPS = 150  # a second or two; the worker is stopped a few steps after the first checkpoint
ENDED = ("COMPLETED", "FAILED", "CRASHED", "CANCELLED")


def shown(api: Any, run: str) -> dict[str, str]:
    """The artifacts of a flow run, by key."""
    asked = {"artifacts": {"flow_run_id": {"any_": [run]}}, "limit": 200}
    return {found["key"]: found["data"] for found in api.ask("/artifacts/filter", asked)}


@pytest.mark.slow
def test_a_killed_training_is_retried_to_the_same_bytes(
    prefect: Any, start_worker: Any, api: Any, made_pairs: MadeDataset, until: Any, tmp_path: Path
) -> None:
    out, data = tmp_path / "run", [f"{made_pairs.root}:eq-ag"]
    settings = {
        "model": str(open_clip_config(tmp_path / "model")), "weights": None, "batch": 4, "steps": STEPS, "lr": 1e-3,
        "threads": 1, "checkpoint_every": 5,
    }  # fmt: skip
    worker = start_worker("cpu")
    run = api.start_run("train/cpu", data=data, out=str(out), settings=settings)
    until(lambda: api.state(run) == "RUNNING", pause=0.5)
    until((out / "history.jsonl").exists)  # its imports take minutes on a busy machine
    until((out / "checkpoint.safetensors").exists, pause=0.01)
    psutil.Process(worker.pid).suspend()  # it must not see its run die
    kill_below(worker)
    worker.kill()
    worker.wait()
    assert not (out / "result.json").exists(), "it ended before it was killed; raise STEPS"
    api.crash(run)  # as the shipped automation would later
    start_worker("cpu")  # a new one: see test_retry
    retried = prefect("flow-run", "retry", run)
    assert retried.returncode == 0, retried.stdout + retried.stderr
    until(lambda: api.state(run) in ("RUNNING", *ENDED), pause=0.5)
    until(lambda: api.state(run) in ENDED, pause=1)
    log = (tmp_path / "cpu.log").read_text()
    assert api.state(run) == "COMPLETED", log[-3000:]
    straight = train(ClipTask, checked(ClipSettings, {"data": data, **settings}), tmp_path / "straight")
    assert json.loads((out / "result.json").read_bytes())["sha256"]["last.safetensors"] == straight["sha256"]
    artifacts = shown(api, run)
    assert (out / "report.html").as_uri() in artifacts["train-report"] and straight["sha256"] in artifacts["train"]


@pytest.mark.slow
def test_the_deployments_of_the_other_tasks_train(
    start_worker: Any,
    api: Any,
    made_pairs: MadeDataset,
    made_triplets: MadeDataset,
    until: Any,
    tmp_path: Path,
) -> None:
    """Each names its task; data, folder and settings are given, as for a small model on another machine."""
    config, cache = str(open_clip_config(tmp_path / "model")), str(tmp_path / "cache")
    small = {"model": config, "weights": None, "threads": 1, "batch": 2, "epochs": 1, "frozen": "both"}
    given = {
        "combiner": ("gpu", f"{made_triplets.root}:triplets", {**small, "projection": 12, "hidden": 20}),
        "detectors": ("cpu", f"{made_pairs.root}:eq-ag", {"model": f"random:{config}", "threads": 1, "batch": 4}),
    }
    runs = {}
    for task, (pool, data, settings) in given.items():
        start_worker(pool, TWINSET_CACHE=cache)
        runs[task] = api.start_run(f"train/{task}", data=[data], out=str(tmp_path / task), settings=settings)
    for wanted in (("RUNNING", *ENDED), ENDED):
        until(lambda wanted=wanted: all(api.state(run) in wanted for run in runs.values()), pause=0.5)
    for task, run in runs.items():
        log = (tmp_path / f"{given[task][0]}.log").read_text()
        assert api.state(run) == "COMPLETED", f"{task}: {log[-3000:]}"
        assert (tmp_path / task / "report.html").as_uri() in shown(api, run)["train-report"]
    for task, weights in (("combiner", "best_combiner.safetensors"), ("detectors", "best.safetensors")):
        assert weights in shown(api, runs[task])["train"]
