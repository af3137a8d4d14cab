"""What every task of the trainer passes: killed at some steps it ends with the same bytes; two processes are as one."""

import hashlib
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from twinset.training.runs import checkpoint
from twinset.training.runs.trainer import train
from twinset.training.tasks import OnProgress

CHECKOUT = Path(__file__).parents[3]


class Killed(Exception):
    """Instead of SIGKILL: nothing of the run catches it."""


def killed_after(step: int) -> OnProgress:
    def stop(done: int, steps: int, row: dict[str, Any]) -> None:
        if done == step:
            raise Killed

    return stop


def rows_of(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "history.jsonl").read_text().splitlines()]


def sha256(path: Path | str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def resumes_exactly(task: Callable[..., Any], settings: Any, out: Path, kills: Sequence[int]) -> list[dict[str, Any]]:
    """Kill a run after some steps and let it end in ``out/killed``; returns the rows of its history."""
    straight = train(task, settings, out / "straight")
    for step in kills:
        with pytest.raises(Killed):
            train(task, settings, out / "killed", killed_after(step))
    assert (out / "killed" / checkpoint.FILE).is_file()
    resumed = train(task, settings, out / "killed")
    assert 0 < resumed["resumed_at"] <= kills[-1] and resumed["sha256"] == straight["sha256"]
    assert sha256(resumed["best"]) == sha256(straight["best"])
    rows = rows_of(out / "killed")
    assert rows == rows_of(out / "straight")  # logged values too, to the last bit
    assert all(0 <= row[name] <= 100 for row in rows for name in row if name.endswith("accuracy"))
    before = {path: path.read_bytes() for path in (out / "killed").iterdir() if path.is_file()}
    assert (out / "killed" / checkpoint.FILE) not in before
    again = train(task, settings, out / "killed", lambda *_: pytest.fail("a step was taken"))
    assert again == {**resumed, "resumed_at": again["steps"]}
    assert {path: path.read_bytes() for path in before} == before
    return rows


def trains_alike_in_two_processes(
    task: Callable[..., Any], name: str, settings: Any, options: Sequence[str], out: Path
) -> None:
    """The command of a task in two processes ends with the weights and figures of one, but for rounding."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command += ["-m", "twinset.cli.main", "train", name, "--weights=random"]
    command += ["--data", settings.data[0], "--validation", settings.validation[0]]
    command += [f"--{option}={getattr(settings, option)}" for option in options]
    for printed in ("steps: 8", "resumed_at: 8"):
        done = subprocess.run([*command, "--out", out / "two"], cwd=CHECKOUT, capture_output=True, text=True)
        assert done.returncode == 0 and done.stdout.count(f"\n{printed}\n") == 1, done.stderr
    alone = train(task, settings.model_copy(update={"accumulate": 1}), out / "one")
    for figure in ("loss", "gradient_norm"):  # sums of other orders
        single, double = ([row[figure] for row in rows_of(out / run)] for run in ("one", "two"))
        assert double == pytest.approx(single, rel=1e-3)
    last, weights = Path(alone["last"]), load_file(alone["last"])
    for tensor, value in load_file(out / "two" / last.name).items():
        # The bias of keys has no gradient but what rounding leaves, which AdamW divides by its own size.
        if not tensor.endswith("in_proj_bias"):
            torch.testing.assert_close(value, weights[tensor], rtol=1e-3, atol=1e-3, msg=tensor)
