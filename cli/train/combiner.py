"""``twinset train combiner``: GeneCIS's Combiner of images and conditions on triplets."""

import argparse
import contextlib
import json
import sys
from typing import Any

from twinset.cli.options import add_cache, add_command
from twinset.cli.train.options import add_resumable_settings, given_settings, progress

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
    training = add_command(commands, "combiner", run, text, "train a Combiner of images and conditions")
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


def run(asked: argparse.Namespace) -> None:
    """``twinset train combiner``."""
    from twinset.training.clip.settings import checked
    from twinset.training.combiner.settings import CombinerSettings
    from twinset.training.combiner.train import train_combiner

    settings = checked(CombinerSettings, given_settings(asked))
    with progress() as on_progress, contextlib.redirect_stdout(sys.stderr):
        trained = train_combiner(settings, asked.out, on_progress, cache=asked.cache)
    steps, last = len(trained.history), next(row for row in reversed(trained.history) if "validation" in row)
    if asked.json:
        found = {
            "model": trained.model, "steps": steps, "resumed_at": trained.resumed_at, "best_step": trained.best_step,
            "recall@1": trained.best_value, "validation": last["validation"], "sha256": trained.digest,
        }  # fmt: skip
        print(json.dumps(found))
        return
    resumed = f", resumed after {trained.resumed_at:,}" if 0 < trained.resumed_at < steps else ""
    print(f"{steps:,} steps{resumed}; loss {trained.history[-1]['loss']:.4f}")
    print(f"best: step {trained.best_step:,}, validation recall@1 {trained.best_value:.2f} %")
    print(asked.out / "report.html")
    print(trained.model)
