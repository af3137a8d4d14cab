"""What the commands of ``twinset train`` share: options that are settings, and a progress bar."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

RANDOM = "random"  # instead of weights
#: Options that take one value: name, how it is shown, what it is.
Values = Sequence[tuple[str, str, str]]
#: Options with a choice of values: name, values, what it is.
Choices = Sequence[tuple[str, Sequence[str], str]]
#: Options that are not settings.
NO_SETTINGS = frozenset({"run", "out", "json", "verbose", "cache"})


def add_settings(
    training: argparse.ArgumentParser, data: str, validation: str, choices: Choices, values: Values, betas: str
) -> None:
    """Add the options of a resumable run; one that is not given is absent from what was parsed.

    Args:
        data, validation: what these two options name.
        betas: default of AdamW's.
    """
    repeated: dict[str, Any] = {"action": "append", "default": argparse.SUPPRESS, "metavar": "DIR[:SUBSET][*N]"}
    training.add_argument("--data", **repeated, required=True, help=f"{data}; may be repeated")
    training.add_argument("--validation", **repeated, help=f"{validation}; may be repeated")
    training.add_argument("--out", required=True, type=Path, metavar="OUT", help="folder of the run")
    for name, names, said in choices:
        training.add_argument(f"--{name}", choices=names, default=argparse.SUPPRESS, help=said)
    for name, shown, said in values:
        training.add_argument(f"--{name}", metavar=shown, default=argparse.SUPPRESS, help=said)
    training.add_argument(
        "--betas", nargs=2, metavar="X", default=argparse.SUPPRESS, help=f"of AdamW (default: {betas})"
    )
    training.add_argument(
        "--allow-mixed-runtimes",
        action="store_true",
        default=argparse.SUPPRESS,
        help="resume on another type of machine, or with other --threads: the last bits of the weights then differ",
    )
    training.add_argument("--json", action="store_true", help="print one JSON object on stdout")


def given_settings(asked: argparse.Namespace) -> dict[str, Any]:
    """The settings that were given, by name."""
    given = {name: value for name, value in vars(asked).items() if name not in NO_SETTINGS}
    return given | {"weights": None} if given.get("weights") == RANDOM else given


@contextlib.contextmanager
def progress() -> Iterator[Callable[[int, int, dict[str, Any]], None]]:
    """A bar with the loss, where stderr is a terminal."""
    if not sys.stderr.isatty() or int(os.environ.get("RANK", "0")):
        yield lambda step, steps, row: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TimeRemainingColumn

    columns = ("{task.completed:,} of {task.total:,} steps", BarColumn(), "{task.description}", TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as shown:
        task = shown.add_task("", total=1)

        def on_progress(step: int, steps: int, row: dict[str, Any]) -> None:
            shown.update(task, completed=step, total=steps, description=f"loss {row['loss']:.3f}")

        yield on_progress
