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


def trained(given: dict[str, Any], out: Path, kill_at: int = 0) -> int | None:
    """Begin or resume a run, and kill it as soon as it has logged a step; returns the exit code."""
    child = multiprocessing.get_context("fork").Process(
        target=train_clip, args=(checked(ClipSettings, given), out, None, False)
    )
    child.start()
    assert child.pid is not None
    history = out / "history.jsonl"
    while kill_at and child.is_alive():
        if history.exists() and history.read_bytes().count(b"\n") >= kill_at:
            os.kill(child.pid, signal.SIGKILL)
            break
        time.sleep(0.001)
    child.join()
    return child.exitcode


def main() -> None:
    given, out, kills = json.loads(Path(sys.argv[1]).read_bytes()), Path(sys.argv[2]), int(sys.argv[3])
    # Libraries are imported here, once; without a gradient, which a forked child could not follow.
    Transforms(open_start(checked(ClipSettings, given)).network.visual.preprocess_cfg)
    found = {}
    for workers in (None, 0, 1, 2):
        place, chosen = out / f"killed-{workers}", {**given, "workers": workers or 0}
        steps = sorted(random.Random(workers).choices(range(1, given["steps"] - 8), k=kills))
        for step in steps if workers is not None else ():
            trained(chosen, place, step)
            assert not (place / "result.json").exists()
        assert trained(chosen, place) == 0
        found[f"{workers} workers"] = json.loads((place / "result.json").read_bytes())["sha256"]["last.safetensors"]
    print(json.dumps(found))


if __name__ == "__main__":
    main()
