"""What the commands of ``twinset train`` do: from options to settings, a progress bar, and words for what was found."""

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

from twinset.cli.options import answer
from twinset.cli.terminal import say
from twinset.training.runs.idle import PATIENCE, said_of
from twinset.training.tasks import Task

RANDOM = "random"  # instead of weights
#: What was parsed besides settings.
NO_SETTINGS = frozenset({"run", "out", "json", "verbose", "stdout"})


def run(task: Task, asked: argparse.Namespace) -> None:
    """``twinset train TASK``."""
    import twinset

    given = given_settings(asked)
    with progress() as on_progress:
        found = twinset.train(given.pop("data"), asked.out, task=task, on_progress=on_progress, **given)
    if not int(os.environ.get("RANK", "0")):  # of torchrun's processes the first
        answer(asked, found, lambda: tell(found))


def tell(found: dict[str, Any]) -> None:
    """Print what `twinset.train` returned."""
    for half, facts in found.get("halves", {}).items():  # of detectors
        pairs = ", ".join(f"{facts[f'{part}_pairs']:,} {part}" for part in ("train", "validation", "test"))
        correct = f"{100 * facts['test_accuracy']:.2f} % of held-out halves are classified correctly"
        say(f"{half}: {correct} (pairs: {pairs})")
    if "halves" in found:
        say(found["report"], found["out"], sep="\n")
        return
    if found["resumed_at"] == found["steps"]:
        say(f"finished before, after {found['steps']:,} steps: nothing was left to do")
    else:
        resumed = f", resumed after {found['resumed_at']:,}" if found["resumed_at"] else ""
        say(f"{found['steps']:,} steps{resumed}; loss {found['loss']:.4f}")
    if idle := said_of(found["idle"], min(PATIENCE, found["steps"])):
        say(f"part of the loss trained nothing: {idle}")
    chance = found["validation"].get("chance")
    for name, value in found["validation"].items():
        if name != "chance":
            beside = f" (chance {chance:.2f} %)" if name == "accuracy" and chance is not None else ""
            say(f"  validation {name:10} " + (f"{value:.4f}" if name == "loss" else f"{value:.2f} %{beside}"))
    say(f"best weights: {found['best']} (step {found['best_step']:,})")
    say(found["report"], found["model"], sep="\n")


def given_settings(asked: argparse.Namespace) -> dict[str, Any]:
    """The settings that were given, by name."""
    given = {name: value for name, value in vars(asked).items() if name not in NO_SETTINGS}
    return given | {"weights": None} if given.get("weights") == RANDOM else given


def _line(step: int, steps: int, row: dict[str, Any]) -> None:
    if step == 1 or step % max(1, min(100, steps // 20)) == 0:
        print(f"{step:,} of {steps:,} steps, loss {row['loss']:.3f}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def progress() -> Iterator[Callable[[int, int, dict[str, Any]], None]]:
    """A bar with the loss, where stderr is a terminal; else a line now and then."""
    is_first = not int(os.environ.get("RANK", "0"))
    if not sys.stderr.isatty() or not is_first:
        yield _line if is_first else lambda step, steps, row: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TimeRemainingColumn

    columns = ("{task.completed:,} of {task.total:,} steps", BarColumn(), "{task.description}", TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as shown:

        def on_progress(step: int, steps: int, row: dict[str, Any]) -> None:
            task = shown.task_ids[0] if shown.task_ids else shown.add_task("")
            shown.update(task, completed=step, total=steps, description=f"loss {row['loss']:.3f}")

        yield on_progress
