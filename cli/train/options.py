"""What the commands of ``twinset train`` share: options that are settings, and a progress bar."""

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

PLACE = "DIR[:SUBSET][*N]"  # of examples
RANDOM = "random"  # instead of weights
#: Options that take one value: name, how it is shown, what it is.
Values = Sequence[tuple[str, str, str]]
#: Options with a choice of values: name, values, what it is.
Choices = Sequence[tuple[str, Sequence[str], str]]
#: Those that every resumable run has.
SHARED_VALUES: Values = (
    ("split", "NAME", "train on this split only"),
    ("validation-split", "NAME", "validate on this split only"),
    ("accumulate", "N", "split a batch into N parts to save memory"),
    ("validate-every", "N", "steps between validations (default: an epoch)"),
    ("workers", "N", "processes that read images; they change no byte (default: 0, the training process alone)"),
    ("threads", "N", "threads of torch (default: one a core)"),
    ("checkpoint-every", "N", "steps between checkpoints (default: five minutes)"),
)
SHARED_CHOICES: Choices = (
    ("precision", ("float32", "bfloat16"), "of the forward pass (default: float32)"),
    ("transform", ("training", "evaluation"), "of images: random crops, or as in evaluation (default: training)"),
    ("device", ("cpu", "gpu"), "where it trains (default: cpu)"),
)
#: Options that are not settings.
NO_SETTINGS = frozenset({"run", "out", "json", "verbose", "cache"})


def add_settings(
    training: argparse.ArgumentParser, data: str, choices: Choices, values: Values, place: str = PLACE
) -> None:
    """Add ``--data``, ``--out``, ``--json`` and settings; one that is not given is absent from what was parsed.

    Args:
        data: what ``--data`` names. place: how it is written.
    """
    _add_places(training, "data", data, place, required=True)
    training.add_argument("--out", required=True, type=Path, metavar="OUT", help="folder of the run")
    for name, names, said in choices:
        training.add_argument(f"--{name}", choices=names, default=argparse.SUPPRESS, help=said)
    for name, shown, said in values:
        training.add_argument(f"--{name}", metavar=shown, default=argparse.SUPPRESS, help=said)
    training.add_argument("--json", action="store_true", help="print one JSON object on stdout")


def add_resumable_settings(
    training: argparse.ArgumentParser, data: str, validation: str, choices: Choices, values: Values, betas: str
) -> None:
    """Add those of a resumable run, besides its own choices and values.

    Args:
        data, validation: what these two options name.
        betas: default of AdamW's.
    """
    add_settings(training, data, (*choices, *SHARED_CHOICES), (*values, *SHARED_VALUES))
    _add_places(training, "validation", validation, PLACE)
    training.add_argument(
        "--betas", nargs=2, metavar="X", default=argparse.SUPPRESS, help=f"of AdamW (default: {betas})"
    )
    training.add_argument(
        "--allow-mixed-runtimes",
        action="store_true",
        default=argparse.SUPPRESS,
        help="resume on another type of machine, or with other --threads: the last bits of the weights then differ",
    )


def _add_places(training: argparse.ArgumentParser, name: str, what: str, place: str, required: bool = False) -> None:
    training.add_argument(
        f"--{name}",
        action="append",
        required=required,
        default=argparse.SUPPRESS,
        metavar=place,
        help=f"{what}; may be repeated",
    )


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
