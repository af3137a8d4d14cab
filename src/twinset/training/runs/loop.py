"""What the runs of all models share: resuming, steps with validations and checkpoints between them, what is written."""

import contextlib
import json
import logging
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import torch

from twinset.contracts.canonical import sha256_of_file
from twinset.contracts.errors import WrongUse
from twinset.shards.storage.whole_file import write_text
from twinset.training.examples.contracts import Broken, Read
from twinset.training.report.write import About, Curves, write_report
from twinset.training.runs.checkpoints import Checkpoints, Files, best_is_sound, moments, restore_moments, write_tensors
from twinset.training.runs.identity import History, Row
from twinset.training.runs.idle import IdleParts
from twinset.training.runs.processes import Process
from twinset.training.runs.settings import RunSettings

RESULT = "result.json"
BEST, LAST = "best", "last"
SECONDS = 300  # between checkpoints, where the settings name no steps
_LOG = logging.getLogger("twinset")
#: Called after each step with the number of steps taken, that of the whole run, and what was logged.
OnProgress = Callable[[int, int, Row], None]


B = TypeVar("B", bound=Read)


@dataclass(frozen=True, slots=True)
class Trained:
    """A finished run.

    model: names the best weights for ``twinset eval run --model``.
    best, last: safetensors, of the best validation (without one, the last) and of the last step. history: a row a step.
    digest: sha256 of ``last``. best_step: steps after which the best were written; best_value: the figure they were
    chosen by. resumed_at: steps that earlier calls took; all of them where nothing was left to do. idle: parts of the
    loss that trained nothing, as `IdleParts.found`.
    """

    model: str
    best: Path
    last: Path
    history: list[Row]
    digest: str
    best_step: int
    best_value: float | None
    resumed_at: int
    idle: dict[str, int]


def trained(
    model: str, out: Path, result: Mapping[str, Any], history: History, resumed_at: int, suffix: str = ""
) -> Trained:
    """A run from its ``result.json``. suffix: of its files' names, where weights are more than one file."""
    best, last = (out / f"{which}{suffix}.safetensors" for which in (BEST, LAST))
    step, value = result["best"]["step"], result["best"]["value"]
    sha256, idle = result["sha256"][last.name], result.get("idle", {})
    return Trained(model, best, last, history.rows, sha256, step, value, resumed_at, idle)


class Loop(ABC, Generic[B]):
    """A run in one process. All of its state is in its checkpoints.

    Unless a run says otherwise it trains a network and writes all of it; a library finds the best weights of its folder
    under the name ``published``.

    Args:
        out: folder of the run.
        identity: digest of what decides its weights.
        network: whose weights, buffers and moments are the state.
        steps: of the whole run.
        steps_per_epoch: between validations, where the settings name no other number.
        best_by: the figure of a validation by which the best weights are chosen, the higher the better.
    """

    settings: RunSettings
    batches: Any  # its ``stream`` gives what the steps from one to another read
    published = ""

    def __init__(
        self,
        settings: RunSettings,
        out: Path,
        process: Process,
        identity: str,
        network: torch.nn.Module,
        optimiser: torch.optim.AdamW,
        steps: int,
        steps_per_epoch: int,
        best_by: str,
    ) -> None:
        self.out, self.process, self.identity = out, process, identity
        self.network, self.optimiser, self.steps = network, optimiser, steps
        self.checkpoints = Checkpoints(out)
        self.best: dict[str, Any] | None = None
        self._every, self._best_by = settings.validate_every or steps_per_epoch, best_by
        self._checkpoint_every = settings.checkpoint_every
        self._idle = IdleParts(steps)

    @abstractmethod
    def take(self, batch: B) -> dict[str, float]:
        """Take a step; returns what is logged."""

    @abstractmethod
    def measure(self) -> dict[str, float] | None:
        """Validate the weights as they are; None without validation data."""

    def weights(self, which: str) -> Files:
        """The weights as they are, by the file that they go to as the ``best`` or the ``last``."""
        return {f"{which}.safetensors": self.network.state_dict()}

    def write_config(self) -> None:
        """Write what opens the weights beside them."""

    def broken(self) -> Broken:
        """Examples that could not be read so far; what a checkpoint remembers of them is added to it."""
        return {}

    def restore(self, history: History) -> int:
        """Restore the last checkpoint; returns its number of steps, 0 where there is none."""
        found = self.checkpoints.last()
        step = 0
        if found is not None:
            receipt, tensors = found
            if receipt.identity != self.identity:
                raise WrongUse(f"{self.checkpoints.folder}: of another run; remove this folder, or name another --out")
            step, self.best = receipt.step, receipt.best
            self.broken().update({number: (where, why) for number, where, why in receipt.broken})
            try:
                weights = {name: tensors[f"model.{name}"] for name in self.network.state_dict()}
                self.network.load_state_dict(weights)
                restore_moments(self.network, self.optimiser, tensors, step)
            except (KeyError, RuntimeError) as error:
                said = str(error).splitlines()[0]
                raise WrongUse(
                    f"{self.checkpoints.folder}: step {step} is not of this network ({said}); remove this folder, "
                    "which begins the run again, or name another --out"
                ) from error
        history.cut(step)
        for row in history.rows:
            self._idle.add(row)  # said by an earlier call
        return step

    def run(
        self, history: History, facts: Mapping[str, Any], about: About, on_progress: OnProgress | None, report: bool
    ) -> tuple[dict[str, Any], int]:
        """Restore the last checkpoint, take the steps that are left, and write weights, result and reports.

        Ctrl-C gets a note with the step from which the same call goes on.

        Args:
            facts: every dataset and shard.
            report: whether TensorBoard's files and the page are written.

        Returns:
            What ``result.json`` holds, and the number of steps that earlier calls took.
        """
        resumed_at = self.restore(history)
        if self.process.is_first:
            self.write_config()
        curves = Curves(self.out, resumed_at) if report and self.process.is_first else None
        try:
            with curves or contextlib.nullcontext():
                self._take_steps(resumed_at, history, curves, on_progress)
        except KeyboardInterrupt as error:
            held = self.checkpoints.steps()
            then = f"goes on after step {held[-1]:,}" if held else "begins again: no checkpoint was written yet"
            error.add_note(f"run the same command again: it {then}")
            raise
        if self.process.is_first:
            self._write_result(history, facts, about, report)
        self.process.wait()
        return json.loads((self.out / RESULT).read_bytes()), resumed_at

    def _take_steps(self, first: int, history: History, curves: Curves | None, on_progress: OnProgress | None) -> None:
        written = time.monotonic()
        batches: Generator[B, None, None] = self.batches.stream(first, self.steps)
        with contextlib.closing(batches):
            for batch in batches:
                step = batch.step + 1
                row: Row = {"step": step, "epoch": batch.epoch + 1, **self.take(batch)}
                if batch.left_out:
                    row["left_out"] = [list(one) for one in batch.left_out]
                if self.process.is_first and (step % self._every == 0 or step == self.steps):
                    self._validate(row)
                history.add(row)
                if (idle := self._idle.add(row)) and self.process.is_first:
                    _LOG.warning("%s", idle)
                if curves is not None:
                    curves.add(row)
                if on_progress is not None:
                    on_progress(step, self.steps, row)
                if self.process.is_first and self._is_due(step, written):
                    self._checkpoint(step, history)
                    written = time.monotonic()

    def _validate(self, row: Row) -> None:
        found = self.measure()
        if found is None:
            return
        row["validation"], value = found, found[self._best_by]
        if self.best is None or value > self.best["value"]:
            sha256 = self.checkpoints.write_best(row["step"], self.weights(BEST))
            self.best = {"step": row["step"], "value": value, "sha256": sha256}

    def _is_due(self, step: int, written: float) -> bool:
        if step == self.steps:
            return False
        every = self._checkpoint_every
        return step % every == 0 if every else time.monotonic() - written >= SECONDS

    def _checkpoint(self, step: int, history: History) -> None:
        history.sync()
        weights = {f"model.{name}": value for name, value in self.network.state_dict().items()}
        state = weights | moments(self.network, self.optimiser)
        broken = [(number, *said) for number, said in sorted(self.broken().items())]
        self.checkpoints.write(step, state, self.identity, self.process.runtime, self.best, broken)

    def _write_result(self, history: History, facts: Mapping[str, Any], about: About, report: bool) -> None:
        """Write the weights, the receipt of the run and its reports, and remove the checkpoints."""
        written = {**self.weights(LAST), **(self.weights(BEST) if self.best is None else {})}
        files = {name: write_tensors(self.out / name, tensors) for name, tensors in written.items()}
        if self.best is not None:
            self.checkpoints.show_best(self.best)
            files |= self.best["sha256"]
        if self.published:
            _link(self.out / self.published, f"{BEST}.safetensors")
        best = self.best or {"step": self.steps, "value": None}
        result = {
            "identity": self.identity, "runtime": self.process.runtime, "steps": self.steps,
            "best": {name: best[name] for name in ("step", "value")}, "sha256": files, "idle": self._idle.found,
        }  # fmt: skip
        write_report(self.out, self.settings, facts, result, history.rows, about, pictures=report)
        write_text(self.out / RESULT, json.dumps(result, indent=1, sort_keys=True) + "\n")
        self.checkpoints.clear()


def _link(path: Path, name: str) -> None:
    """Link to a file by a second name, without a second copy of it; replaces what a copied folder has there."""
    if not path.is_symlink() or os.readlink(path) != name:
        path.unlink(missing_ok=True)
        path.symlink_to(name)


def finished(out: Path, identity: str, history: History) -> dict[str, Any] | None:
    """The result of a run that was finished before; None where steps are left, or its weights are damaged."""
    try:
        result: dict[str, Any] = json.loads((out / RESULT).read_bytes())
        names, steps = result["sha256"], result["steps"]
        if not isinstance(steps, int) or not best_is_sound({"sha256": "", **result["best"]}):
            raise ValueError("not what a run writes")
        damaged = [name for name, sha256 in names.items() if sha256_of_file(out / name)[0] != sha256]
        if result["identity"] != identity or damaged:
            raise ValueError(f"{', '.join(damaged)} changed since")
    except FileNotFoundError:
        return None
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        _LOG.warning("%s: %s; the run is repeated", out / RESULT, error)
        return None
    history.cut(steps)
    Checkpoints(out).clear()  # of a run that was killed while it removed them
    return result
