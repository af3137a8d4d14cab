"""The loop that trains a dual encoder, and takes up a run that was stopped where its last checkpoint is.

All state of a run is its checkpoint: weights, buffers, the optimiser's moments and the number of steps. The order of
examples, their augmentation, the learning rate, dropout and sampled negatives are functions of the seed and the step.
So a run that was killed at any step ends with the same bytes of weights as one that was not, on one runtime class.
"""

from __future__ import annotations

import contextlib
import json
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from manifests.canonical import digest, sha256_of_file
from manifests.errors import BuildFailed, WrongUse
from shards.storage.whole_file import write_text
from training.clip.checkpoints import Checkpoints, write_tensors
from training.clip.data import RunData, open_data
from training.clip.history import History, Row
from training.clip.identity import claim, run_identity
from training.clip.models import Start, open_start, write_config
from training.clip.optimiser import moments, new_optimiser, restore_moments
from training.clip.processes import Process, joined
from training.clip.settings import ClipSettings
from training.clip.steps import Stepper
from training.clip.validation import Validation
from training.examples.batches import Batches
from training.examples.transforms import Transforms
from training.losses.names import ROLES
from training.losses.total import open_loss
from training.report.curves import Curves
from training.report.write import write_report

RESULT = "result.json"
BEST, LAST = "best.safetensors", "last.safetensors"
#: The name under which open_clip and `evaluation` look for the weights of a folder.
PUBLISHED = "open_clip_model.safetensors"
SECONDS = 300  # between checkpoints, where the settings name no steps
_LOG = logging.getLogger("twinset")
#: Called after each step with the number of steps taken, that of the whole run, and what was logged.
OnProgress = Callable[[int, int, Row], None]


@dataclass(frozen=True, slots=True)
class Trained:
    """A finished run.

    best, last: safetensors, of the best validation (without one, the last) and of the last step. history: a row a step.
    digest: sha256 of ``last``. best_step: steps after which the best were written. resumed_at: steps that earlier calls
    took; all of them where nothing was left to do.
    """

    best: Path
    last: Path
    history: list[Row]
    digest: str
    best_step: int
    resumed_at: int


def train_clip(
    settings: ClipSettings, out: Path, on_progress: OnProgress | None = None, report: bool = True
) -> Trained:
    """Train a model, or go on with a run that was stopped; a finished one is left as it is.

    Args:
        out: folder of the run; `docs/training.md` lists its files.
        report: whether TensorBoard's files and ``report.html`` are written, which takes a second or two.

    Raises:
        WrongUse: settings, model or data are wrong, or ``out`` holds another run.
        BuildFailed: the loss is not finite, too many examples are broken, or the data changed. Weights up to the last
            checkpoint are intact, and the same call resumes from it.
        OSError: there is no room for a checkpoint; the one before it is intact.
    """
    with contextlib.ExitStack() as stack:
        process = stack.enter_context(joined(settings))
        start, data = open_start(settings), open_data(settings)
        identity = run_identity(settings, start.identity(), data.digests())
        # Refuses what does not fit before anything is written.
        run = Run(settings, out, start, data, process, digest(identity))
        history = stack.enter_context(History(out, process.is_first))
        if process.is_first:
            claim(out, settings, identity, process.runtime)
        process.wait()
        if (done := finished(out, run.identity, history)) is not None:
            return done
        resumed_at = run.restore(history)
        if process.is_first:
            write_config(start, out)
        curves = Curves(out, resumed_at) if report and process.is_first else None
        with curves or contextlib.nullcontext():
            run.steps_from(resumed_at, history, curves, on_progress or _unheard)
        return run.finish(history, resumed_at, report)


class Run:
    """A run in one process: its network, optimiser, batches, and what is best so far.

    identity: digest of what decides its weights.
    """

    def __init__(
        self, settings: ClipSettings, out: Path, start: Start, data: RunData, process: Process, identity: str
    ) -> None:
        self.settings, self.out, self.data, self.process, self.identity = settings, out, data, process, identity
        self.best: dict[str, Any] | None = None
        image = start.network.visual.preprocess_cfg
        self.batches = Batches(
            data.training, Transforms(image, settings.transform), start.tokenize, settings.batch, settings.seed,
            ROLES[settings.objective], settings.workers, process.rank, process.world,
        )  # fmt: skip
        self.steps = settings.steps or settings.epochs * self.batches.steps_per_epoch
        self.validation = None
        if data.validation is not None:
            self.validation = Validation(data.validation, Transforms(image, "evaluation"), start.tokenize, settings)
        self.network = start.network.to(process.device).train()
        self.optimiser = new_optimiser(self.network, settings)
        loss = open_loss(settings.objective, settings.regulariser, settings.regulariser_weight)
        self.stepper = Stepper(self.network, self.optimiser, loss, settings, process)
        self.checkpoints = Checkpoints(out)

    def restore(self, history: History) -> int:
        """Take up the last checkpoint; returns its number of steps, 0 where there is none."""
        found = self.checkpoints.last()
        step = 0
        if found is not None:
            receipt, tensors = found
            if receipt.identity != self.identity:
                raise WrongUse(f"{self.checkpoints.folder}: of another run; remove this folder, or name another --out")
            step, self.best = receipt.step, receipt.best
            weights = {name: tensors[f"model.{name}"] for name in self.network.state_dict()}
            self.network.load_state_dict(weights)
            restore_moments(self.network, self.optimiser, tensors, step)
        history.cut(step)
        return step

    def steps_from(self, first: int, history: History, curves: Curves | None, on_progress: OnProgress) -> None:
        """Take the steps that are left, with validations and checkpoints among them."""
        every = self.settings.validate_every or self.batches.steps_per_epoch
        written = time.monotonic()
        for batch in self.batches.stream(first, self.steps):
            row: Row = {"step": batch.step + 1, "epoch": batch.epoch + 1, **self.stepper.take(batch, self.steps)}
            if batch.left_out:
                row["left_out"] = [list(one) for one in batch.left_out]
            if self.process.is_first:
                if row["step"] % every == 0 or row["step"] == self.steps:
                    self._validate(row)
                history.add(row)
                if curves is not None:
                    curves.add(row)
                on_progress(row["step"], self.steps, row)
                if self._is_due(row["step"], written):
                    self._checkpoint(row["step"], history)
                    written = time.monotonic()

    def finish(self, history: History, resumed_at: int, report: bool) -> Trained:
        """Write the weights, the receipt of the run and its reports, and remove the checkpoints."""
        weights = self.network.state_dict()
        best = self.best or {"step": self.steps, "value": None}
        result: dict[str, Any] = {}
        if self.process.is_first:
            last = write_tensors(self.out / LAST, weights)
            if self.validation is None:
                best |= {"sha256": write_tensors(self.out / BEST, weights)}
            elif sha256_of_file(self.out / BEST)[0] != best["sha256"]:
                raise BuildFailed(f"{self.out / BEST}: not what step {best['step']} wrote; train into a new --out")
            _link(self.out / PUBLISHED, BEST)
            result = {
                "identity": self.identity, "runtime": self.process.runtime, "steps": self.steps, "best": best,
                "sha256": {BEST: best["sha256"], LAST: last},
            }  # fmt: skip
            write_report(self.out, self.settings, self.data.facts(), result, history.rows, pictures=report)
            write_text(self.out / RESULT, json.dumps(result, indent=1, sort_keys=True) + "\n")
            self.checkpoints.clear()
        self.process.wait()
        last = result["sha256"][LAST] if result else sha256_of_file(self.out / LAST)[0]
        return Trained(self.out / BEST, self.out / LAST, history.rows, last, best["step"], resumed_at)

    def _validate(self, row: Row) -> None:
        if self.validation is None:
            return
        row["validation"] = self.validation.measure(self.stepper)
        value = row["validation"][self.settings.best_by]
        if self.best is None or value > self.best["value"]:
            sha256 = write_tensors(self.out / BEST, self.network.state_dict())
            self.best = {"step": row["step"], "value": value, "sha256": sha256}

    def _is_due(self, step: int, written: float) -> bool:
        if step == self.steps:
            return False
        every = self.settings.checkpoint_every
        return step % every == 0 if every else time.monotonic() - written >= SECONDS

    def _checkpoint(self, step: int, history: History) -> None:
        history.keep()
        weights = {f"model.{name}": value for name, value in self.network.state_dict().items()}
        state = weights | moments(self.network, self.optimiser)
        self.checkpoints.write(step, state, self.identity, self.process.runtime, self.best)


def finished(out: Path, identity: str, history: History) -> Trained | None:
    """The result of a run that was finished before; None where steps are left, or its weights are damaged."""
    try:
        result = json.loads((out / RESULT).read_bytes())
        names, steps, best = result["sha256"], result["steps"], result["best"]
        damaged = [name for name, sha256 in names.items() if sha256_of_file(out / name)[0] != sha256]
        if result["identity"] != identity or damaged:
            raise ValueError(f"{', '.join(damaged)} changed since")
    except FileNotFoundError:
        return None
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        _LOG.warning("%s: %s; the run is repeated", out / RESULT, error)
        return None
    history.cut(steps)
    return Trained(out / BEST, out / LAST, history.rows, names[LAST], best["step"], steps)


def _link(path: Path, name: str) -> None:
    """Make a file known under a second name, without a second copy of it."""
    if not path.is_symlink():
        path.symlink_to(name)


def _unheard(step: int, steps: int, row: Row) -> None:
    """Progress that nobody asked for."""
