"""``twinset train clip``: a dual encoder of open_clip on twins, text pairs or captioned images."""

from typing import Any

from twinset.cli.train.options import add_resumable_settings
from twinset.cli.train.run import add_training
from twinset.training.losses.names import OBJECTIVES, REGULARISERS

#: Options that take one value: name, how it is shown, what it is.
VALUES = (
    (
        "model",
        "NAME|CONFIG.json|DIR",
        "open_clip's name of an architecture, its JSON, or a folder (default: ViT-B-32)",
    ),
    ("weights", "TAG|FILE|random", "where it begins (default: openai, or those of the folder that --model names)"),
    ("regulariser-weight", "X", "of the regulariser in the loss (default: as published)"),
    ("batch", "N", "examples of an optimiser step, over all processes (default: 400, with hard negatives 200)"),
    ("epochs", "N", "passes over the data (default: 10)"),
    ("steps", "N", "optimiser steps, instead of --epochs"),
    ("lr", "X", "peak learning rate (default: 1e-6)"),
    ("eps", "X", "of AdamW (default: 1e-6)"),
    ("weight-decay", "X", "of AdamW; not on norms, biases and the logit scale (default: 0.1)"),
    ("warmup", "N", "steps in which the learning rate rises; then it falls as a cosine to 0 (default: 50)"),
    ("seed", "N", "of order, augmentation, dropout, sampled negatives and random weights (default: 42)"),
)
#: Options with a choice of values.
CHOICES = (
    ("objective", OBJECTIVES.kinds(), "what is compared (default: infonce)"),
    ("regulariser", REGULARISERS.kinds(), "added to the objective"),
    (
        "twins",
        ("both", "first"),
        "sides of a pair that are examples (default: both; with an objective of negatives first)",
    ),
    ("best-by", ("accuracy", "group"), "validation figure that chooses the best weights (default: accuracy)"),
)


def add(commands: Any) -> None:
    """Add the command to the subparsers of ``twinset train``."""
    text = (
        "train a dual encoder of open_clip; the defaults are BiVLC's published recipe. The same command resumes a run "
        "that was stopped, to the same bytes; docs/training.md explains the settings"
    )
    training = add_training(commands, "clip", text, "train a dual encoder of open_clip")
    add_resumable_settings(
        training,
        "what twinset built, or an export for open_clip",
        "what the best weights are chosen by",
        CHOICES,
        VALUES,
        "0.9 0.98",
    )
