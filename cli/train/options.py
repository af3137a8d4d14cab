"""The options that the commands of ``twinset train`` share."""

import argparse
from collections.abc import Sequence
from pathlib import Path

PLACE = "DIR[:SUBSET][*N]"  # of examples
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


def add_settings(
    training: argparse.ArgumentParser, data: str, choices: Choices, values: Values, place: str = PLACE
) -> None:
    """Add ``--data``, ``--out`` and settings; one that is not given is absent from what was parsed.

    Args:
        data: what ``--data`` names. place: how it is written.
    """
    _add_places(training, "data", data, place, required=True)
    training.add_argument("-o", "--out", required=True, type=Path, metavar="RUN", help="folder of the run")
    for name, names, said in choices:
        training.add_argument(f"--{name}", choices=names, default=argparse.SUPPRESS, help=said)
    for name, shown, said in values:
        training.add_argument(f"--{name}", metavar=shown, default=argparse.SUPPRESS, help=said)


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
