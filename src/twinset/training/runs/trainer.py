"""The one trainer. A task is data, loss, validation and schedule.

All state of a run is its checkpoint, and everything random in a step is a function of the seed and the step. So a run
that was killed at any step ends with the same bytes of weights as one that was not, on one runtime class.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import torch
from torch import Tensor

from twinset.contracts.canonical import digest
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.shards.storage.whole_file import write_text
from twinset.training.examples.contracts import Read
from twinset.training.examples.workers import named_workers
from twinset.training.report.write import write_report
from twinset.training.runs.checkpoint import FILE, Tensors, restore, write_checkpoint, write_tensors
from twinset.training.runs.folder import RESULT, History, Row, claimed, run_identity
from twinset.training.runs.processes import Process, gathered, joined
from twinset.training.runs.settings import OnProgress, RunSettings
from twinset.training.runs.steps import stream_seed

BEST, LAST = "best", "last"
SHOWN = 5  # keys in a message
SECONDS = 300  # between checkpoints, where the settings name no steps
SHARES = re.compile(r"accuracy$|^chance$|^active_")  # names of what losses log as a share
B = TypeVar("B", bound=Read)


class Task(ABC, Generic[B]):
    """What is trained. It is opened before the folder is claimed: it refuses what does not fit, and writes nothing.

    Attributes:
        start: the model before the first step, with ``digests()`` and ``write_config(out)``.
        data: with ``digests()`` and ``facts()``.
        network: whose weights and buffers are trained, on the device of the process and in training mode.
        optimiser: over its parameters; a group's ``times`` multiplies the rate.
        batches: ``stream(first, last)`` gives what these steps read, ``steps_per_epoch`` of them an epoch; ``broken``
            are examples that could not be read so far.
        steps: of the whole run.
        best_by: the figure of a validation by which the best weights are chosen, the higher the better.
        best_file: of the best weights; a library may look for it.
        figures, recipe, command: for the card: what figures are, whose settings the defaults are, and the command of
            ``twinset eval`` that opens the best weights.
    """

    settings: RunSettings
    start: Any
    data: Any
    network: torch.nn.Module
    optimiser: torch.optim.Optimizer
    batches: Any
    steps: int
    best_by: str
    best_file: ClassVar[str] = "best.safetensors"
    figures: ClassVar[str] = "Percent, except for the loss."
    recipe: ClassVar[str] = ""
    command: ClassVar[str] = "run"

    def what(self) -> str:
        """What is trained, for the card: a sentence without its full stop."""
        return self.settings.model

    @abstractmethod
    def model(self, out: Path) -> str:
        """How ``--model`` names the best weights of a folder."""

    @abstractmethod
    def rate(self, step: int) -> float:
        """The learning rate of step 0, 1, …"""

    @abstractmethod
    def backward(self, batch: B) -> tuple[Tensor, dict[str, float]]:
        """Add the gradient of a batch's loss to the parameters; returns the loss and what is logged beside it."""

    @abstractmethod
    def measure(self) -> dict[str, float] | None:
        """Validate the network, in inference mode, in percent but for the loss; None without validation data."""

    def about(self) -> dict[str, Any]:
        """Words about the run for its card; OUT is its folder."""
        words = {name: getattr(self, name) for name in ("best_by", "figures", "recipe", "command")}
        return {**words, "what": self.what(), "model": self.model(Path("OUT")), "published": self.settings.defaults()}

    def digests(self) -> dict[str, Any]:
        """What decides the weights besides the settings, by name."""
        return {**self.start.digests(), **self.data.digests()}

    def prepare(self, out: Path) -> None:
        """Compute what is computed once, in the folder of the run, before the first step; may set batches and steps."""

    def update(self) -> dict[str, float]:
        """Take the optimiser's step; returns what is logged after it."""
        self.optimiser.step()
        return {}

    def files(self, which: str, weights: Tensors) -> dict[str, Tensors]:
        """Weights of the network by the file that they go to, the model's own first. which: `BEST` or `LAST`."""
        return {self.best_file if which == BEST else "last.safetensors": weights}

    def write_config(self, out: Path) -> None:
        """Write what opens the weights beside them."""
        self.start.write_config(out)


def train(
    open_task: Callable[[Any, Path, Process], Task[Any]],
    settings: RunSettings,
    out: Path,
    on_progress: OnProgress | None = None,
) -> dict[str, Any]:
    """Train, or resume a run that was stopped; a finished one is left as it is. Returns and raises as `twinset.train`.

    Args:
        open_task: the class of the task, called with settings, folder and process.
        out: folder of the run; `docs/training.md` lists its files.

    Raises:
        OSError: there is no room for a checkpoint; the one before it is intact.
    """
    with joined(settings) as process:
        task = open_task(settings, out, process)
        identity = run_identity(settings, task.digests())
        claim = claimed(out, settings, identity, process.runtime) if process.rank == 0 else contextlib.nullcontext()
        with claim as history:
            process.wait()
            run = None
            if not (out / RESULT).exists():
                task.prepare(out)
                run = _Run(task, out, process, digest(identity), history)
                run.train(on_progress)
            result = json.loads((out / RESULT).read_bytes())
            (out / FILE).unlink(missing_ok=True)  # here, since a run may be killed after it wrote its result
    return {
        "model": task.model(out),
        **{which: str(out / next(iter(task.files(which, {})))) for which in (BEST, LAST)},
        "sha256": result["sha256"][next(iter(task.files(LAST, {})))],
        "best_step": result["best"]["step"],
        "steps": result["steps"],
        "resumed_at": run.first if run else result["steps"],
        **{name: result[name] for name in ("loss", "validation")},
        "report": str(out / "report.html"),
    }


class _Run:
    """A run in one process, restored from its checkpoint.

    first: steps that earlier calls took. history: None in all processes but the first, which validates and writes.
    """

    def __init__(self, task: Task[Any], out: Path, process: Process, identity: str, history: History | None) -> None:
        self._task, self._out, self._process, self._history = task, out, process, history
        self._state, self._best = restore(out, identity, task.network, task.optimiser)
        self.first = self._state.step
        if len({*gathered(self.first)}) > 1:
            raise WrongUse(f"{out}: processes find different checkpoints there; name an --out that all machines share")
        task.batches.broken.update({number: (where, why) for number, where, why in self._state.broken})
        if history is not None:
            history.resume(self._state.history)

    def train(self, on_progress: OnProgress | None) -> None:
        """Take the steps that are left, and write weights, result and reports."""
        if self._history is not None:
            self._task.write_config(self._out)
        self._take_steps(on_progress)
        if self._history is not None:
            self._write_result(self._history.rows)
        self._process.wait()

    def _take_steps(self, on_progress: OnProgress | None) -> None:
        task, written = self._task, time.monotonic()
        validate_every = task.settings.validate_every or task.batches.steps_per_epoch
        checkpoint_every = task.settings.checkpoint_every
        with named_workers(), contextlib.closing(task.batches.stream(self.first, task.steps)) as batches:
            for batch in batches:
                step = batch.step + 1
                row: Row = {"step": step, "epoch": batch.epoch + 1, **take_step(task, self._process, batch)}
                if self._history is None:
                    continue
                if batch.left_out:
                    row["left_out"] = [list(example) for example in batch.left_out]
                if step % validate_every == 0 or step == task.steps:
                    self._validate(row)
                self._history.add(row)
                if on_progress is not None:
                    on_progress(step, task.steps, row)
                due = time.monotonic() - written >= SECONDS
                if step < task.steps and (step % checkpoint_every == 0 if checkpoint_every else due):
                    self._checkpoint(step, self._history.sync())
                    written = time.monotonic()

    def _validate(self, row: Row) -> None:
        self._task.network.eval()
        with torch.no_grad():
            figures = self._task.measure()
        self._task.network.train()
        if figures is None:
            return
        row["validation"], value = figures, figures[self._task.best_by]
        if self._state.best_value is None or value > self._state.best_value:
            self._state.best_step, self._state.best_value = row["step"], value
            weights = self._task.network.state_dict()
            self._best = {name: tensor.detach().cpu().clone() for name, tensor in weights.items()}

    def _checkpoint(self, step: int, history: int) -> None:
        broken = [(number, *problem) for number, problem in sorted(self._task.batches.broken.items())]
        self._state = self._state.model_copy(update={"step": step, "history": history, "broken": broken})
        write_checkpoint(self._out, self._state, self._task.network, self._task.optimiser, self._best)

    def _write_result(self, rows: Sequence[Row]) -> None:
        """Write the weights, the reports, and last the result of the run."""
        task, out, last = self._task, self._out, self._task.network.state_dict()
        files = {**task.files(LAST, last), **task.files(BEST, self._best or last)}
        result = {
            "identity": self._state.identity,
            "runtime": self._process.runtime,
            "steps": task.steps,
            "best": {"step": self._state.best_step or task.steps, "value": self._state.best_value},
            "sha256": {name: write_tensors(out / name, tensors) for name, tensors in files.items()},
            "loss": rows[-1]["loss"],
            "validation": rows[-1].get("validation", {}),
        }
        write_report(out, task.settings, task.data.facts(), result, rows, task.about())
        write_text(out / RESULT, json.dumps(result, indent=1, sort_keys=True) + "\n")


def take_step(task: Task[B], process: Process, batch: B) -> dict[str, float]:
    """Train on a batch; returns what is logged. Raises `BuildFailed`: loss or gradient is not finite; weights stay as
    they were.
    """
    rate = task.rate(batch.step)
    for group in task.optimiser.param_groups:
        group["lr"] = rate * group.get("times", 1.0)
    task.optimiser.zero_grad(set_to_none=True)
    torch.manual_seed(stream_seed(task.settings.seed, "dropout", batch.step, process.rank))
    loss, logged = task.backward(batch)
    gradients = [value.grad for value in task.network.parameters() if value.grad is not None]
    process.average(gradients)
    value, norm = float(loss), float(torch.nn.utils.get_total_norm(gradients))
    if not math.isfinite(value) or not math.isfinite(norm):
        raise BuildFailed(
            f"step {batch.step + 1}: the loss is {value} and the norm of its gradient {norm}; its first examples are "
            f"{', '.join(batch.keys[:SHOWN])}. Train again into a new --out with a lower --lr or a longer --warmup"
        )
    return {"loss": value, "lr": rate, "gradient_norm": norm, **task.update(), **in_percent(logged)}


def in_percent(logged: Mapping[str, float]) -> dict[str, float]:
    """What losses log, with accuracies, chance and active fractions in percent, as validations have them."""
    return {name: 100 * value if SHARES.search(name) else value for name, value in logged.items()}
