"""``prefect deployment run train/cpu`` on a real server and a real worker, which is killed in the middle."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.evaluation.scorers.tiny_models import open_clip_config
from tests.made_datasets import MadeDataset
from training.clip.settings import settings_from
from training.clip.train import train_clip

STEPS = 400


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_killed_training_is_retried_to_the_same_bytes(
    prefect: Any, start_worker: Any, api: Any, made_pairs: MadeDataset, until: Any, tmp_path: Path
) -> None:
    out, data = tmp_path / "run", [f"{made_pairs.root}:eq-ag"]
    settings = {
        "model": str(open_clip_config(tmp_path / "model")), "weights": None, "batch": 4, "steps": STEPS, "lr": 1e-3,
        "threads": 1, "checkpoint_every": 20,
    }  # fmt: skip
    straight = train_clip(settings_from({"data": data, **settings}), tmp_path / "straight", report=False)
    worker = start_worker("cpu")
    given = [f"--param={name}={json.dumps(value)}" for name, value in (
        ("data", data), ("out", str(out)), ("settings", settings)
    )]  # fmt: skip
    asked = prefect("deployment", "run", "train/cpu", *given)
    assert asked.returncode == 0, asked.stdout + asked.stderr
    run = next(word for word in asked.stdout.split() if word.count("-") == 4)
    until(lambda: any((out / "checkpoints").glob("*.json")))
    flows = psutil.Process(worker.pid).children(recursive=True)
    worker.kill()
    worker.wait()
    for process in flows:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    assert not (out / "result.json").exists(), "it ended before it was killed; raise STEPS"
    api.crash(run)  # as the shipped automation would later
    start_worker("cpu")
    retried = prefect("flow-run", "retry", run)
    assert retried.returncode == 0, retried.stdout + retried.stderr
    until(lambda: api.state(run) in ("COMPLETED", "FAILED", "CRASHED"))
    log = (tmp_path / "cpu.log").read_text()
    assert api.state(run) == "COMPLETED", log[-3000:]
    assert json.loads((out / "result.json").read_bytes())["sha256"]["last.safetensors"] == straight.digest
    artifacts = {found["key"]: found["data"] for found in api.ask("/artifacts/latest/filter", {"limit": 200})}
    assert (out / "report.html").as_uri() in artifacts["train-report"] and straight.digest in artifacts["train"]
