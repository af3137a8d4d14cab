"""What a run remembers over a kill besides its weights: the best of its validations, and what could not be read."""

import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.made_datasets import MadeDataset
from tests.training.clip.conftest import Settings
from tests.training.clip.killed_runs import Killed, killed_after
from twinset.contracts.errors import BuildFailed
from twinset.shards.storage import layout
from twinset.training.clip import train
from twinset.training.clip.train import train_clip
from twinset.training.clip.validation import Validation
from twinset.training.runs.checkpoints import Checkpoints, Receipt


def last_receipt(out: Path) -> Receipt:
    found = Checkpoints(out).last()
    assert found is not None
    return found[0]


@pytest.mark.slow
def test_a_best_that_no_checkpoint_names_yet_costs_none_that_one_names(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another machine rounds differently: after the kill step 4 is not the best any more."""
    accuracies: Iterator[float]
    monkeypatch.setattr(Validation, "measure", lambda *_: {"loss": 1.0, "accuracy": next(accuracies)})
    chosen, out = settings(validate_every=2), tmp_path / "run"
    accuracies = iter([50, 60])
    with pytest.raises(Killed):
        train_clip(chosen, out, killed_after(5), report=False)
    best, shown = last_receipt(out).best, (out / "best.safetensors").read_bytes()
    assert best is not None and best["step"] == 2
    accuracies = iter([40, 40, 40])
    resumed = train_clip(settings(validate_every=2, threads=2, allow_mixed_runtimes=True), out, report=False)
    assert (resumed.resumed_at, resumed.best_step) == (3, 2) and resumed.best.read_bytes() != shown
    result = json.loads((out / "result.json").read_bytes())
    assert result["sha256"]["best.safetensors"] == best["sha256"]["best.safetensors"]
    assert not (out / "checkpoints").exists()


def test_of_best_weights_those_that_a_checkpoint_names_are_kept(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path)

    def kept() -> list[int]:
        return sorted(int(path.name[:8]) for path in checkpoints.folder.glob("*-best.safetensors"))

    def best_of(step: int) -> dict[str, Any]:
        files = {"best.safetensors": {"a": torch.tensor(step)}}
        return {"step": step, "value": step, "sha256": checkpoints.write_best(step, files)}

    first = best_of(2)
    checkpoints.write(3, {"a": torch.zeros(1)}, "identity", "runtime", first)
    best_of(4)
    best_of(5)
    assert kept() == [2, 5]
    shown = tmp_path / "best.safetensors"
    shown.unlink()
    checkpoints.show_best(first)
    assert shown.read_bytes() == (checkpoints.folder / "00000002-best.safetensors").read_bytes()
    last = best_of(6)
    for step in (6, 7):
        checkpoints.write(step, {"a": torch.zeros(1)}, "identity", "runtime", last)
    assert kept() == [6]
    with pytest.raises(BuildFailed, match=r"best\.safetensors: not what step 2 wrote; train into a new --out"):
        checkpoints.show_best(first)


def test_what_could_not_be_read_is_remembered(
    settings: Settings, made_pairs: MadeDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(train, "Batches", functools.partial(train.Batches, max_broken=0.5))
    tar, out = made_pairs.root / layout.tar("eq-ag", "test", 0), tmp_path / "run"
    whole = tar.read_bytes()
    tar.write_bytes(whole.replace(b"\xff\xd8\xff", b"\0\0\0", 2))
    with pytest.raises(Killed):
        train_clip(settings(validation=()), out, killed_after(4), report=False)
    tar.write_bytes(whole)
    rows = [json.loads(line) for line in (out / "history.jsonl").read_text().splitlines()]
    broken = last_receipt(out).broken
    assert broken and {tuple(said) for row in rows[:3] for said in row.get("left_out", [])} == {
        (where, why) for _, where, why in broken
    }
    with pytest.raises(Killed):
        train_clip(settings(validation=()), out, killed_after(7), report=False)
    assert last_receipt(out).step == 6 and last_receipt(out).broken == broken
    monkeypatch.setattr(train, "Batches", functools.partial(train.Batches, max_broken=0.05))
    with pytest.raises(BuildFailed, match=f"^{len(broken)} of 16 examples cannot be read"):
        train_clip(settings(validation=()), out, report=False)
