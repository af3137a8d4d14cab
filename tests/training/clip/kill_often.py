"""Trains in child processes that are killed at random steps, and prints the sha256 that each run ends with, as JSON.

    python tests/training/clip/kill_often.py SETTINGS.json OUT KILLS

A process of its own: a child that is forked from one which has computed gradients cannot compute its own.
"""

import json
import multiprocessing
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

from twinset.training.clip.data import open_start
from twinset.training.clip.settings import ClipSettings
from twinset.training.clip.train import train_clip
from twinset.training.examples.transforms import Transforms
from twinset.training.runs.settings import checked


def train(given: dict[str, Any], out: str) -> None:
    train_clip(checked(ClipSettings, given), Path(out), report=False)


def killed_at(step: int, given: dict[str, Any], out: Path) -> None:
    """Begin or resume a run, and kill it as soon as it has logged a step."""
    child = multiprocessing.get_context("fork").Process(target=train, args=(given, str(out)))
    child.start()
    assert child.pid is not None
    while child.is_alive():
        history = out / "history.jsonl"
        if history.exists() and history.read_bytes().count(b"\n") >= step:
            os.kill(child.pid, signal.SIGKILL)
            break
        time.sleep(0.001)
    child.join()


def finished(given: dict[str, Any], out: Path) -> str:
    child = multiprocessing.get_context("fork").Process(target=train, args=(given, str(out)))
    child.start()
    child.join()
    assert child.exitcode == 0
    found: str = json.loads((out / "result.json").read_bytes())["sha256"]["last.safetensors"]
    return found


def main() -> None:
    given, out, kills = json.loads(Path(sys.argv[1]).read_bytes()), Path(sys.argv[2]), int(sys.argv[3])
    # Libraries are imported here, once; without a gradient, which a forked child could not follow.
    Transforms(open_start(checked(ClipSettings, given)).network.visual.preprocess_cfg)
    found = {"uninterrupted": [finished(given, out / "straight")]}
    for workers in (0, 1, 2):
        place = out / f"killed-{workers}"
        steps = sorted(random.Random(workers).choices(range(1, given["steps"] - 8), k=kills))
        for step in steps:
            killed_at(step, {**given, "workers": workers}, place)
        assert not (place / "result.json").exists()
        found[f"{workers} workers, killed at {steps}"] = [finished({**given, "workers": workers}, place)]
    print(json.dumps(found))


if __name__ == "__main__":
    main()
