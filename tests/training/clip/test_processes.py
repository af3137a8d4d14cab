"""Runs in processes that are killed, and in several that share a batch."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tests.training.clip.conftest import Settings
from twinset.training.clip.train import train_clip

CHECKOUT = Path(__file__).parents[3]


def run(*command: str) -> str:
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_runs_that_are_killed_at_ten_random_steps_end_with_the_same_bytes(settings: Settings, tmp_path: Path) -> None:
    given = settings(steps=40, regulariser="eqsim-released", checkpoint_every=4).model_dump(mode="json")
    (tmp_path / "settings.json").write_text(json.dumps(given))
    module = "tests.training.clip.kill_often"
    found = json.loads(run(sys.executable, "-m", module, str(tmp_path / "settings.json"), str(tmp_path), "10"))
    assert len(found) == 4 and len({sha256 for one in found.values() for sha256 in one}) == 1, found


@pytest.mark.slow
def test_two_processes_train_as_one_does(settings: Settings, tmp_path: Path) -> None:
    chosen = settings(objective="negative-pairs", accumulate=2, epochs=4)
    options = [f"--{name}={value}" for name, value in (
        ("model", chosen.model), ("weights", "random"), ("data", chosen.data[0]), ("validation", chosen.validation[0]),
        ("objective", chosen.objective), ("batch", 4), ("accumulate", 2), ("epochs", 4), ("lr", 1e-3), ("warmup", 2),
        ("threads", 1), ("out", tmp_path / "two"),
    )]  # fmt: skip
    torchrun = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    said = run(*torchrun, "-m", "twinset.cli.main", "train", "clip", *options)
    assert said.count("\nsteps: 8\n") == 1
    alone = train_clip(settings(objective="negative-pairs", epochs=4), tmp_path / "one", report=False)
    rows = [json.loads(line) for line in (tmp_path / "two" / "history.jsonl").read_text().splitlines()]
    for name in ("loss", "gradient_norm"):  # sums of other orders
        assert [row[name] for row in rows] == pytest.approx([row[name] for row in alone.history], rel=1e-3)
    mine, its = load_file(alone.last), load_file(tmp_path / "two" / "last.safetensors")
    for name, value in mine.items():
        # The bias of keys has no gradient but what rounding leaves, which AdamW divides by its own size.
        if not name.endswith("in_proj_bias"):
            torch.testing.assert_close(its[name], value, rtol=1e-3, atol=1e-4, msg=name)
    again = run(*torchrun, "-m", "twinset.cli.main", "train", "clip", *options)
    assert again.count("\nresumed_at: 8\n") == 1
