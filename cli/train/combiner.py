"""``twinset train combiner``: GeneCIS's Combiner of images and conditions on triplets."""

import argparse
from typing import Any

from twinset.cli.options import add_cache
from twinset.cli.train.options import add_resumable_settings
from twinset.cli.train.run import add_training

#: Options that take one value: name, how it is shown, what it is.
VALUES = (
    ("model", "NAME|CONFIG.json|DIR", "the encoder: open_clip's name, its JSON, or a folder (default: RN50x4)"),
    ("weights", "TAG|FILE|random", "of the encoder (default: openai, or those of the folder that --model names)"),
    ("held-out", "SHARE", "of the groups, to validate on where there is no --validation (default: 0.05)"),
    ("projection", "N", "width of the Combiner's first layers (default: 2560)"),
    ("hidden", "N", "width of its other layers (default: 5120)"),
    ("dropout", "SHARE", "of the Combiner's activations (default: 0.5)"),
    ("temperature", "X", "of the loss (default: 0.01)"),
    ("batch", "N", "triplets of an optimiser step (default: 256)"),
    ("epochs", "N", "passes over the data (default: 6)"),
    ("lr", "X", "learning rate of the first epoch; it falls as a cosine to a thousandth (default: 1e-6)"),
    ("eps", "X", "of AdamW (default: 1e-8)"),
    ("weight-decay", "X", "of AdamW (default: 0)"),
    ("clip-norm", "X", "largest norm of the encoder's gradient, 0 for any (default: 1)"),
    ("seed", "N", "of the Combiner's first weights, order, augmentation, dropout and held-out groups (default: 0)"),
)
#: Options with a choice of values.
CHOICES = (("conditions", ("matched", "shuffled"), "shuffled: train on conditions of other triplets, a control"),)


def add(commands: Any) -> None:
    """Add the command to the subparsers of ``twinset train``."""
    text = (
        "train a Combiner of images and conditions on triplets, with its encoder or on a frozen one; the defaults are "
        "GeneCIS's. It trains in one process, not under torchrun. The same command resumes a run that was stopped, to "
        "the same bytes; see docs/training.md"
    )
    training = add_training(commands, "combiner", text, "train a Combiner of images and conditions")
    add_resumable_settings(
        training,
        "triplets that twinset built",
        "triplets to choose the best weights by, or cirr=DIR",
        CHOICES,
        VALUES,
        "0.9 0.999",
    )
    training.add_argument(
        "--frozen",
        action="store_true",
        default=argparse.SUPPRESS,
        help="keep the encoder as it is, and encode each image and condition once",
    )
    add_cache(training, "--frozen")
