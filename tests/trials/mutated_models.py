"""Kinds that need torch: folders of models, and one step of training on what lies on the disk."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from typing import Any

from tests.trials.mutated_data import Act, command
from twinset.cli.main import main

CONFIGS = ["model/**/*.json", "model/**/*.txt", "model/**/*.jinja", "model/**/*.safetensors", "model/**/*.bin"]

#: Names in `tests.models.model_kinds.KINDS`: each is saved by the tests, and opened as recipes and commands do.
OPENED = (
    *("filter of pairs, CLIP", "vera", "cola", "evaluation, open_clip", "evaluation, clip"),
    *("evaluation, siglip", "evaluation, blip-itm", "evaluation, vilt", "evaluation, flava", "evaluation, combiner"),
    *("questions, blip", "questions, vilt", "writer", "diffusion, unet"),
)


def _policy(name: str) -> Any:
    from tests.models.model_kinds import KINDS

    return KINDS[name]


def save(name: str, folder: Path) -> None:
    """Save a tiny model."""
    _policy(name).save(folder / "model")
    shutil.rmtree(folder / "made", ignore_errors=True)


def open_it(name: str, folder: Path) -> None:
    """Open it as its users do."""
    _policy(name).open(folder / "model")


def trained(folder: Path) -> None:
    """Twins and their export, a configuration of a tiny model, and a run that stopped after two of its four steps."""
    from tests.made_datasets import MadeDataset, _pairs
    from tests.tiny_encoders import open_clip_config
    from twinset.shards.storage.store import Store

    of = MadeDataset(Store(str(folder / "out")), folder / "out")
    _pairs(of)
    of.describe()
    open_clip_config(Path("model"))
    assert main(("export", "out", "--format", "openclip", "--out", "export", "--only", "eq-ag")) == 0
    assert train("out:eq-ag", "run")(folder) == 0
    Path("run/result.json").unlink()
    for one in Path("run").glob("*.safetensors"):
        one.unlink()


def train(data: str, out: str) -> Act:
    """Train a tiny model for two steps, or resume that."""
    return command(
        *("train", "clip", "--data", data, "--out", out, "--model", "model/tiny.json", "--weights", "random"),
        *("--batch", "4", "--steps", "2", "--warmup", "1", "--threads", "1", "--checkpoint-every", "1"),
    )


TRAINING = ["out/eq-ag/**/*", "export/*", "model/*.json", "run/**/*"]


KINDS: tuple[tuple[Any, ...], ...] = (
    *((f"model: {name}", partial(save, name), {"open": partial(open_it, name)}, CONFIGS, 2) for name in OPENED),
    (
        "training",
        trained,
        {
            "train": train("out:eq-ag", "new"),
            "train on an export": train("tars:export", "new"),
            "resume": train("out:eq-ag", "run"),
        },
        TRAINING,
        4,
    ),
)
