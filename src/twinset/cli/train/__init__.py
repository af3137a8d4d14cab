"""``twinset train``: models on the twins; each command below it has its values and choices, and adds itself.

``clip``: a dual encoder of open_clip on twins, text pairs or captioned images. ``combiner``: GeneCIS's, of images and
conditions on triplets. ``fusion``: the matching head of a fusion encoder on mined negatives. ``detectors``: BiVLC's, of
natural and synthetic captions and images. ``options.toml`` has their words and their settings. ``grid``: all arms of a
paper's table.
"""

import argparse
import tomllib
from functools import partial
from pathlib import Path
from typing import Any, get_args

from twinset.cli.options import add_cache, add_command
from twinset.cli.parser import add_installed
from twinset.cli.train.grid import add_grid
from twinset.cli.train.run import run
from twinset.training.losses.names import OBJECTIVES, REGULARISERS, fusion_regularisers
from twinset.training.tasks import Task

OPTIONS = Path(__file__).with_name("options.toml")
PLACE = "DIR[:SUBSET][*N]"  # of examples


def add(commands: Any) -> None:
    """Add the command to the subparsers of ``twinset``."""
    text = "train models on what twinset built; the same command resumes a run that was stopped"
    training = commands.add_parser("train", help=text, description=text)
    trainings = training.add_subparsers(required=True, metavar="COMMAND")
    said = tomllib.loads(OPTIONS.read_text("utf-8"))
    said["clip"]["choices"]["objective"][0] = OBJECTIVES.kinds()
    said["clip"]["choices"]["regulariser"][0] = REGULARISERS.kinds()
    said["fusion"]["choices"]["regulariser"][0] = fusion_regularisers()
    for task in get_args(Task):
        about = said[task]
        added = add_command(trainings, task, partial(run, task), about["text"], about.get("summary", ""))
        if "validation" in about:
            _add_resumable(added, about, said["resumable"])
        else:
            _add_settings(added, about["data"], "DIR[:SUBSET]", about["choices"], about["values"])
        if task == "combiner":
            add_cache(added, "--frozen both")
        elif task == "detectors":
            add_cache(added)
    add_grid(trainings)
    add_installed("twinset.train_commands", trainings)


def _add_resumable(training: argparse.ArgumentParser, about: dict[str, Any], shared: dict[str, Any]) -> None:
    """Add the settings of a resumable run: its own, and those that all have."""
    choices, values = shared["choices"] | about["choices"], shared["values"] | about["values"]
    _add_settings(training, about["data"], PLACE, choices, values)
    _add_places(training, "validation", about["validation"], PLACE)
    betas = f"of AdamW (default: {about['betas']})"
    training.add_argument("--betas", nargs=2, metavar="X", default=argparse.SUPPRESS, help=betas)
    words = "resume on another type of machine, or with other --threads: the last bits of the weights then differ"
    _add_flag(training, "--allow-mixed-runtimes", words)


def _add_settings(
    training: argparse.ArgumentParser, data: str, place: str, choices: dict[str, Any], values: dict[str, Any]
) -> None:
    """Add ``--data``, ``--out`` and settings; one that is not given is absent from what was parsed.

    Args:
        data: what ``--data`` names. place: how it is written.
        choices, values: of the settings, as in ``options.toml``.
    """
    _add_places(training, "data", data, place, required=True)
    training.add_argument("-o", "--out", required=True, type=Path, metavar="RUN", help="folder of the run")
    for name, (names, said) in choices.items():
        training.add_argument(f"--{name}", choices=names, default=argparse.SUPPRESS, help=said)
    for name, (shown, said) in values.items():
        training.add_argument(f"--{name}", metavar=shown, default=argparse.SUPPRESS, help=said)


def _add_places(training: argparse.ArgumentParser, name: str, what: str, place: str, required: bool = False) -> None:
    given: dict[str, Any] = {"action": "append", "default": argparse.SUPPRESS, "required": required}
    training.add_argument(f"--{name}", **given, metavar=place, help=f"{what}; may be repeated")


def _add_flag(training: argparse.ArgumentParser, option: str, said: str) -> None:
    training.add_argument(option, action="store_true", default=argparse.SUPPRESS, help=said)
