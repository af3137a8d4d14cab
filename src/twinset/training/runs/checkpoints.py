"""Checkpoints: all state of a run after a number of steps, written whole or not at all.

``checkpoints/STEP.safetensors`` holds weights, buffers and moments; ``STEP.json``, written after it, is its receipt. A
checkpoint without a receipt, or with other bytes than its receipt names, is skipped and the one before it is used.
``STEP-NAME`` are the weights of the best validations that checkpoints name. A later best does not replace them: a run
that resumes on another type of machine may not find that best again.
"""

import contextlib
import json
import logging
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from twinset.contracts.canonical import sha256_of_file
from twinset.contracts.errors import BuildFailed
from twinset.models.loading import loading, saving
from twinset.shards.storage.spool import HIDDEN, refuse_link
from twinset.shards.storage.whole_file import whole_file, write_text

KEPT = 2  # checkpoints: where the last is damaged, the one before it is used
_LOG = logging.getLogger("twinset")
_STEP = re.compile(r"(\d{8,})\.json")
_BEST = re.compile(r"(\d{8,})-.+")
_NAME = re.compile(r"[a-z][a-z0-9_-]*\.safetensors")  # of a file of weights
#: Tensors by the name of the file that they go to.
Files = Mapping[str, Mapping[str, "torch.Tensor"]]


@dataclass(frozen=True, slots=True)
class Receipt:
    """What ``STEP.json`` records of a checkpoint.

    step: number of steps that were taken. sha256: of the tensors. identity: digest of the run
    (`training.runs.identity`). runtime: its runtime class. best: ``{"step", "value", "sha256"}`` of the best validation
    so far, ``sha256`` by file. broken: number, place and reason of each example that could not be read so far.
    """

    step: int
    sha256: str
    identity: str
    runtime: str
    best: dict[str, Any] | None
    broken: Sequence[tuple[int, str, str]]


class Checkpoints:
    """The checkpoints of one run, below ``OUT/checkpoints``."""

    def __init__(self, out: Path) -> None:
        """Raises `WrongUse` where the folder is a link."""
        self.folder = out / "checkpoints"
        refuse_link(self.folder)  # what is old is removed from it

    def write(
        self,
        step: int,
        tensors: Mapping[str, torch.Tensor],
        identity: str,
        runtime: str,
        best: dict[str, Any] | None,
        broken: Sequence[tuple[int, str, str]] = (),
    ) -> None:
        """Write a checkpoint, then remove all but the last two.

        Args:
            tensors: weights, buffers and moments. The others are as in `Receipt`.

        Raises:
            OSError: the disk is full; earlier checkpoints stay as they are.
        """
        path = self._tensors(step)
        sha256 = write_tensors(path, tensors)
        receipt = Receipt(step, sha256, identity, runtime, best, broken)
        write_text(self._receipt(step), json.dumps(asdict(receipt), indent=1, sort_keys=True) + "\n")
        self._remove(self.steps()[:-KEPT])
        self._remove_bests({best["step"]} if best else set())

    def write_best(self, step: int, files: Files) -> dict[str, str]:
        """Keep weights of a validation, and show them beside the checkpoints' folder; returns the sha256 of each file.
        Raises `OSError`: the disk is full; what earlier checkpoints name stays as it is.
        """
        self._remove_bests({step})
        found = {name: write_tensors(self._best(step, name), tensors) for name, tensors in files.items()}
        self.show_best({"step": step, "sha256": found})
        return found

    def show_best(self, best: Mapping[str, Any]) -> None:
        """Have the best weights that a receipt names under their own names in the folder of the run. Raises
        `BuildFailed`: they are not there, or have other bytes.
        """
        for name, sha256 in best["sha256"].items():
            kept, shown = self._best(best["step"], name), self.folder.parent / name
            if kept.is_file():
                with whole_file(shown) as beside:
                    try:
                        os.link(kept, beside)
                    except OSError:  # a file system without links
                        shutil.copyfile(kept, beside)
            if not shown.is_file() or sha256_of_file(shown)[0] != sha256:
                raise BuildFailed(f"{shown}: not what step {best['step']} wrote; train into a new --out")

    def last(self) -> tuple[Receipt, dict[str, torch.Tensor]] | None:
        """The latest whole checkpoint; None where there is none."""
        from safetensors.torch import load_file

        for step in reversed(self.steps()):
            path = self._tensors(step)
            try:
                receipt = self._read(step)
                whole = receipt.step == step and sha256_of_file(path)[0] == receipt.sha256
            except (ValueError, TypeError, FileNotFoundError, IsADirectoryError, RecursionError):
                whole = False
            if whole:
                with loading(path):
                    return receipt, load_file(path)
            _LOG.warning("%s: damaged, or not what its receipt names; the checkpoint before it is used", path)
        return None

    def steps(self) -> list[int]:
        """Steps of the checkpoints that have a receipt, in order."""
        if not self.folder.is_dir():
            return []
        names = (_STEP.fullmatch(entry.name) for entry in self.folder.iterdir())
        return sorted(int(name[1]) for name in names if name)

    def clear(self) -> None:
        """Remove all checkpoints, since the run is finished."""
        self._remove(self.steps())
        with contextlib.suppress(OSError):
            for left in self.folder.glob("*.safetensors"):  # what killed runs left too
                left.unlink()
            for unfinished in self.folder.glob(f"{HIDDEN}*"):
                shutil.rmtree(unfinished)
            self.folder.rmdir()

    def _remove(self, steps: list[int]) -> None:
        for step in steps:  # the receipt first: tensors without one are skipped
            self._receipt(step).unlink(missing_ok=True)
            self._tensors(step).unlink(missing_ok=True)

    def _remove_bests(self, needed: set[int]) -> None:
        """Remove the weights of all validations but those of some steps, and those that a receipt names."""
        needed = set(needed)
        for step in self.steps():
            with contextlib.suppress(ValueError, TypeError, LookupError, FileNotFoundError, RecursionError):
                needed.add((self._read(step).best or {})["step"])
        for entry in self.folder.iterdir() if self.folder.is_dir() else ():
            if (found := _BEST.fullmatch(entry.name)) and int(found[1]) not in needed:
                entry.unlink(missing_ok=True)

    def _read(self, step: int) -> Receipt:
        found = Receipt(**json.loads(self._receipt(step).read_bytes()))
        named = found.best["sha256"] if found.best and best_is_sound(found.best) else {}
        # A name with folders would put the file of a run from elsewhere in any place of this machine.
        plain = isinstance(named, dict) and all(_NAME.fullmatch(name) for name in named)
        if not plain or not best_is_sound(found.best):
            raise ValueError("its best is not what a run writes")
        return found

    def _best(self, step: int, name: str) -> Path:
        return self.folder / f"{step:08}-{name}"

    def _tensors(self, step: int) -> Path:
        return self.folder / f"{step:08}.safetensors"

    def _receipt(self, step: int) -> Path:
        return self.folder / f"{step:08}.json"


def best_is_sound(best: Any) -> bool:
    """Whether a receipt says of the best validation what a run writes there, and nobody edited it."""
    if best is None:
        return True
    number = isinstance(best, dict) and isinstance(best.get("step"), int)
    return number and isinstance(best.get("sha256"), str | dict) and isinstance(best.get("value"), float | int | None)


def write_tensors(path: Path, tensors: Mapping[str, torch.Tensor]) -> str:
    """Write tensors as safetensors, whole or not at all; returns the sha256, the same for the same tensors."""
    from safetensors.torch import save_file

    # Shared storage is refused by safetensors; a copy on the CPU is contiguous and its own.
    held = {name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()}
    with whole_file(path) as beside:
        with saving(path, "the checkpoint before it is intact"):
            save_file(held, beside, metadata={"format": "pt"})
        sha256, _ = sha256_of_file(beside)
    return sha256


def moments(network: torch.nn.Module, optimiser: torch.optim.AdamW) -> dict[str, torch.Tensor]:
    """The optimiser's two moments of each parameter by name; empty before the first step."""
    state = optimiser.state
    return {
        f"{moment}.{name}": state[value][moment]
        for name, value in network.named_parameters()
        for moment in ("exp_avg", "exp_avg_sq")
        if value in state
    }


def restore_moments(
    network: torch.nn.Module, optimiser: torch.optim.AdamW, held: dict[str, torch.Tensor], step: int
) -> None:
    """Give an optimiser the moments that `moments` read after a number of steps; other parameters had no gradient."""
    for name, value in network.named_parameters():
        if f"exp_avg.{name}" in held:
            state: dict[str, Any] = {"step": torch.tensor(float(step))}
            for moment in ("exp_avg", "exp_avg_sq"):
                state[moment] = held[f"{moment}.{name}"].to(value.device).clone()
            optimiser.state[value] = state
