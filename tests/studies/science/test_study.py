"""A tiny study from the command line, killed in the middle."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from studies.science.design import DESIGN, read_design
from studies.science.runs import Run, Study

ARMS = ("none", "ft", "weight-0", "negative-images", "image+text", "combiner", "combiner-shuffled")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import twinset

    folder, design = tmp_path_factory.mktemp("world"), read_design()
    counts = [f"subsets.{one}.count={40 if one in ('test', 'calibration') else 24}" for one in design.subsets]
    twinset.build("science", str(folder), design.subsets, counts)
    return folder


@pytest.fixture(scope="module")
def design(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Few arms, few steps, any gate."""
    found: dict[str, Any] = yaml.safe_load(DESIGN.read_text("utf-8"))
    arms = {name: found["arms"][name] for name in ARMS}
    arms["negative-images"]["settings"]["batch"] = 8
    claims = {name: one for name, one in found["claims"].items() if {*one["better"], *one["than"]} <= {*ARMS}}
    path = tmp_path_factory.mktemp("design") / "design.yaml"
    changes: dict[str, Any] = {
        "seeds": [1, 2], "resamples": 100, "arms": arms, "claims": claims, "full": {},
        "gate": {**found["gate"], "low": 0, "high": 100}, "base": {**found["base"], "steps": 2, "batch": 16},
        "training": {**found["training"], "steps": 3, "batch": 16},
        "detectors": {**found["detectors"], "text_epochs": 2, "image_epochs": 2},
        "combiner": {**found["combiner"], "epochs": 2, "batch": 8, "projection": 8, "hidden": 8},
    }  # fmt: skip
    path.write_text(yaml.safe_dump({**found, **changes}), "utf-8")
    return path


def command(world: Path, design: Path, out: Path) -> list[str]:
    options = ["--data", str(world), "--design", str(design), "--out", str(out), "--workers", "2"]
    return [sys.executable, "-m", "studies.science", *options]


@pytest.mark.slow
def test_a_study_that_is_killed_ends_as_one_that_is_not(world: Path, design: Path, tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    subprocess.run(command(world, design, whole), check=True)
    running = subprocess.Popen(command(world, design, killed), start_new_session=True)
    while len([*killed.glob("runs/*/*/done.json")]) < 5:
        assert running.poll() is None, "it ended by itself"
        time.sleep(0.1)
    os.kill(running.pid, signal.SIGKILL)  # the parent alone: its processes end by themselves
    running.wait()
    with pytest.raises(ProcessLookupError):  # once the last of its group is gone
        while True:
            os.killpg(running.pid, 0)
            time.sleep(0.01)
    # A run is recorded when it is trained, and again when it is scored: only then it is not touched any more.
    started = Study(read_design(path=design), killed, world)
    finished = [run for run in started.runs() if started.done(run) is not None]
    before = {path: path.stat().st_mtime_ns for run in finished for path in [started.folder(run) / "done.json"]}
    assert before
    subprocess.run(command(world, design, killed), check=True)
    assert before.items() <= {path: path.stat().st_mtime_ns for path in killed.glob("runs/*/*/done.json")}.items()
    results = [json.loads((out / "results.json").read_text()) for out in (whole, killed)]
    assert results[0] == results[1]
    studies = [Study(read_design(path=design), out, world) for out in (whole, killed)]
    for run in studies[0].runs():
        done = [study.done(run) for study in studies]
        assert done[0] is not None and done[1] is not None and done[0].weights == done[1].weights, run.name
    assert results[0]["detectors"].keys() == {"calibration", "in-world", "held-out"}
    powers = [json.loads((out / "power.json").read_text()) for out in (whole, killed)]
    assert powers[0] == powers[1] == results[0]["power"]
    # Nothing in a study names the place where it lies.
    moved = killed.rename(tmp_path / "moved")
    (moved / "results.json").unlink()
    subprocess.run([*command(world, design, moved), "--report-only"], check=True)
    assert json.loads((moved / "results.json").read_text()) == results[0]
    ft, zero = (studies[0].done(Run(arm, 0)) for arm in ("ft", "weight-0"))
    assert ft is not None and zero is not None and ft.weights == zero.weights
