"""``twinset train``: models on the twins; a module for each command below it."""

from typing import Any

from twinset.cli.train.clip import add as add_clip
from twinset.cli.train.combiner import add as add_combiner
from twinset.cli.train.detectors import add as add_detectors
from twinset.cli.train.fusion import add as add_fusion
from twinset.manifests.doors import installed

#: Each adds its command below `twinset train`.
TRAININGS = (add_clip, add_combiner, add_fusion, add_detectors)


def add(commands: Any) -> None:
    """Add the command to the subparsers of ``twinset``."""
    text = "train models on what twinset built; the same command resumes a run that was stopped"
    training = commands.add_parser("train", help=text, description=text)
    trainings = training.add_subparsers(required=True, metavar="COMMAND")
    for add_training in TRAININGS:
        add_training(trainings)
    for brought in installed("twinset.train_commands").values():
        brought.load()(trainings)
