"""Kinds that need torch: folders of models, and one step of training on what lies on the disk."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

from tests.trials.mutated_data import Act, Kind, command
from twinset.cli.main import main

CONFIGS = ["model/**/*.json", "model/**/*.txt", "model/**/*.jinja", "model/**/*.safetensors", "model/**/*.bin"]
#: Names in `tests.models.model_kinds.KINDS`: each is saved by the tests, and opened as recipes and commands do.
OPENED = (
    *("filter of pairs, CLIP", "vera", "cola", "evaluation, open_clip", "evaluation, clip"),
    *("evaluation, siglip", "evaluation, blip-itm", "evaluation, vilt", "evaluation, flava", "evaluation, combiner"),
    *("questions, blip", "questions, vilt", "writer", "diffusion, unet"),
)


def save(name: str, folder: Path) -> None:
    from tests.models.model_kinds import KINDS

    KINDS[name].save(folder / "model")
    shutil.rmtree(folder / "made", ignore_errors=True)


def open_it(name: str, folder: Path) -> None:
    from tests.models.model_kinds import KINDS

    KINDS[name].open(folder / "model")


def trained(folder: Path) -> None:
    """Twins and their export, a configuration of a tiny model, and a run that stopped after two of its four steps."""
    from tests.made_datasets import _pairs
    from tests.tiny_encoders import open_clip_config
    from tests.trials.mutated_outs import made

    made(_pairs, folder)
    open_clip_config(Path("model"))
    assert main(("export", "out", "--format", "openclip", "--out", "export", "--only", "eq-ag")) == 0
    assert train("out:eq-ag", "run")(folder) == 0
    for path in (Path("run/result.json"), *Path("run").glob("*.safetensors")):
        path.unlink()


def train(data: str, out: str) -> Act:
    return command(
        *("train", "clip", "--data", data, "--out", out, "--model", "model/tiny.json", "--weights", "random"),
        *("--batch", "4", "--steps", "2", "--warmup", "1", "--threads", "1", "--checkpoint-every", "1"),
    )


TRAINING: dict[str, Act] = {
    "train": train("out:eq-ag", "new"),
    "train on an export": train("tars:export", "new"),
    "resume": train("out:eq-ag", "run"),
}
KINDS = (
    *(Kind(f"model: {name}", partial(save, name), {"open": partial(open_it, name)}, CONFIGS) for name in OPENED),
    Kind("training", trained, TRAINING, ["out/eq-ag/**/*", "export/*", "model/*.json", "run/**/*"], 4),
)
