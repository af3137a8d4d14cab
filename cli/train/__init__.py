"""``twinset train``: models on the twins; each command below it has its values and choices, and adds itself.

``clip``: a dual encoder of open_clip on twins, text pairs or captioned images. ``combiner``: GeneCIS's, of images and
conditions on triplets. ``fusion``: the matching head of a fusion encoder on mined negatives. ``detectors``: BiVLC's, of
natural and synthetic captions and images.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from twinset.cli.options import add_cache
from twinset.cli.parser import add_installed
from twinset.cli.train.run import add_training
from twinset.training.losses.names import FUSION_REGULARISERS, OBJECTIVES, REGULARISERS

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


CLIP_VALUES = (
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
CLIP_CHOICES = (
    ("objective", OBJECTIVES.kinds(), "what is compared (default: infonce)"),
    ("regulariser", REGULARISERS.kinds(), "added to the objective"),
    (
        "twins",
        ("both", "first"),
        "sides of a pair that are examples (default: both; with an objective of negatives first)",
    ),
    ("best-by", ("accuracy", "group"), "validation figure that chooses the best weights (default: accuracy)"),
)


def _add_clip(commands: Any) -> None:
    text = (
        "train a dual encoder of open_clip; the defaults are BiVLC's published recipe. The same command resumes a run "
        "that was stopped, to the same bytes; docs/training.md explains the settings"
    )
    training = add_training(commands, "clip", text, "train a dual encoder of open_clip")
    add_resumable_settings(
        training,
        "what twinset built, or an export for open_clip",
        "what the best weights are chosen by",
        CLIP_CHOICES,
        CLIP_VALUES,
        "0.9 0.98",
    )


COMBINER_VALUES = (
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
COMBINER_CHOICES = (
    ("conditions", ("matched", "shuffled"), "shuffled: train on conditions of other triplets, a control"),
)


def _add_combiner(commands: Any) -> None:
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
        COMBINER_CHOICES,
        COMBINER_VALUES,
        "0.9 0.999",
    )
    training.add_argument(
        "--frozen",
        action="store_true",
        default=argparse.SUPPRESS,
        help="keep the encoder as it is, and encode each image and condition once",
    )
    add_cache(training, "--frozen")


FUSION_VALUES = (
    ("model", "KIND:FOLDER", "blip-itm:, vilt: or flava: and its folder in the layout of transformers"),
    ("neighbours-by", "MODEL", "encoder by whose features images are similar (default: the model's own image tower)"),
    ("neighbours", "N", "of an image, whose texts are scored once (default: 128)"),
    ("negatives", "N", "of an example in each step (default: 15)"),
    ("hard", "N", "of these, the best neighbours; the others are random (default: 8)"),
    ("regulariser-weight", "X", "of the regulariser in the loss (default: 0.5)"),
    ("margin", "X", "of the regulariser (default: 0.1)"),
    ("batch", "N", "examples of an optimiser step (default: 1024, in parts of 8)"),
    ("epochs", "N", "passes over the data (default: 10)"),
    ("lr", "X", "peak learning rate; it falls linearly to 0 (default: 2e-5)"),
    ("lr-times", "X", "factor of the rate of heads and cross-modal layers (default: 5)"),
    ("eps", "X", "of AdamW (default: 1e-8)"),
    ("weight-decay", "X", "of AdamW; not on norms and biases (default: 0.01)"),
    ("warmup", "SHARE", "of the steps, in which the learning rate rises (default: 0.1)"),
    ("seed", "N", "of order, crops, dropout and sampled negatives (default: 0)"),
)
FUSION_CHOICES = (
    ("objective", ("match", "rank"), "each pair matches or not, or the own text among all (default: match)"),
    ("regulariser", FUSION_REGULARISERS, "EqSim, added to the objective"),
)


def _add_fusion(commands: Any) -> None:
    text = (
        "train the matching head of a fusion encoder on mined negatives, with EqSim if asked; the defaults are FIBER's "
        "and METER's. The same command resumes a run that was stopped, to the same bytes; see docs/training.md"
    )
    training = add_training(commands, "fusion", text, "train a fusion encoder: BLIP, ViLT, FLAVA")
    add_resumable_settings(
        training,
        "pairs that twinset built",
        "twins to choose the best weights by",
        FUSION_CHOICES,
        FUSION_VALUES,
        "0.9 0.98",
    )


DETECTORS_VALUES = (
    (
        "model",
        "KIND:NAME[:CHECKPOINT]",
        "a dual encoder, as `twinset eval run` names it (default: open_clip:ViT-B-32:openai)",
    ),
    (
        "held-out",
        "SHARE",
        "share of the groups that choose the epoch, and of those that test the detectors (default: 0.1 each)",
    ),
    ("rate", "X", "learning rate (default: 1e-3, as released; the paper has 1e-6)"),
    ("text-epochs", "N", "of the texts (default: 10)"),
    ("image-epochs", "N", "of the images (default: 1)"),
    ("seed", "N", "of groups, weights and order (default: 42)"),
    ("threads", "N", "threads of torch (default: one a core)"),
    ("encode-batch", "N", "images or texts in one pass (default: 32)"),
)
DETECTORS_CHOICES = (("device", ("cpu", "gpu"), "what runs --model (default: cpu)"),)


def _add_detectors(commands: Any) -> None:
    text = "train detectors of natural and synthetic captions and images on the features of a frozen model (BiVLC)"
    training = add_training(commands, "detectors", text)
    data = "what twinset built: pairs of which the second half is synthetic, or text pairs"
    add_settings(training, data, DETECTORS_CHOICES, DETECTORS_VALUES, "DIR[:SUBSET]")
    add_cache(training)


def add(commands: Any) -> None:
    """Add the command to the subparsers of ``twinset``."""
    text = "train models on what twinset built; the same command resumes a run that was stopped"
    training = commands.add_parser("train", help=text, description=text)
    trainings = training.add_subparsers(required=True, metavar="COMMAND")
    for add_below in (_add_clip, _add_combiner, _add_fusion, _add_detectors):
        add_below(trainings)
    add_installed("twinset.train_commands", trainings)
