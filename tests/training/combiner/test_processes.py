"""Processes that torchrun starts share the batches of a Combiner's training."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from tests.made_datasets import MadeDataset
from tests.training.combiner.conftest import Settings
from twinset.training.combiner.train import train_combiner

CHECKOUT = Path(__file__).parents[3]


@pytest.mark.slow
@pytest.mark.parametrize("changes", [{"frozen": "both"}, {"frozen": "image", "accumulate": 2}, {"frozen": "none"}])
def test_two_processes_train_as_one_does(
    made_recoloured: MadeDataset, settings: Settings, tmp_path: Path, changes: dict[str, Any]
) -> None:
    # Each process drops activations of its own: with dropout they are alike in distribution alone.
    given = {"batch": 40, "held_out": 0.2, "dropout": 0, "temperature": 0.1, "steps": 8, "seed": 1, **changes}
    chosen = settings(f"{made_recoloured.root}:recoloured", **given)
    names = ("model", "data", "projection", "hidden", "lr", "threads", *given)
    options = [f"--{name.replace('_', '-')}={getattr(chosen, name)}" for name in names if name != "data"]
    options += ["--weights=random", f"--data={chosen.data[0]}", f"--cache={tmp_path / 'cache'}"]
    torchrun = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    command = (*torchrun, "-m", "twinset.cli.main", "train", "combiner", *options, f"--out={tmp_path / 'two'}")
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\nsteps: 8\n") == 1
    alone = train_combiner(
        chosen.model_copy(update={"accumulate": 1}), tmp_path / "one", report=False, cache=tmp_path / "other"
    )
    rows = [json.loads(line) for line in (tmp_path / "two/history.jsonl").read_text().splitlines()]
    for name in ("loss", "gradient_norm", "accuracy"):  # sums of other orders
        assert [row[name] for row in rows] == pytest.approx([row[name] for row in alone.history], rel=1e-3)
    assert rows[-1]["validation"] == pytest.approx(alone.history[-1]["validation"], abs=5)
    for part in ("combiner",) if changes["frozen"] == "both" else ("combiner", "clip"):
        mine, its = (load_file(tmp_path / run / f"last_{part}.safetensors") for run in ("one", "two"))
        for name, value in mine.items():
            # The bias of keys has no gradient but what rounding leaves, which AdamW divides by its own size.
            if not name.endswith("in_proj_bias"):
                torch.testing.assert_close(its[name], value, rtol=1e-3, atol=1e-3, msg=f"{part} {name}")
    if changes["frozen"] == "both":
        again = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True)
        assert again.stdout.count("\nresumed_at: 8\n") == 1, again.stderr
