"""``twinset eval demo`` and ``twinset train demo``: both read a built demo, and build it first where it is absent."""

import argparse
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from twinset.cli.options import add_cache, add_command, answer


def add_eval(commands: Any) -> None:
    """Add the command to the subparsers of ``twinset eval``."""
    text = "score the demo with the small CLIP that ships and with random weights, and write a report; no download"
    command = add_command(commands, "demo", eval_demo, text)
    _add_folders(command, "out/eval-demo")
    add_cache(command)


def add_train(commands: Any) -> None:
    """Add the command to the subparsers of ``twinset train``."""
    text = "train a small dual encoder on the demo's hard negatives; no download"
    _add_folders(add_command(commands, "demo", train_demo, text), "out/train-demo")


def eval_demo(asked: argparse.Namespace) -> None:
    """``twinset eval demo``."""
    from twinset.cli.eval_run import progress
    from twinset_demo.scoring import score_demo

    _ensure_built(asked.data)
    with progress() as on_progress:
        scored, page = score_demo(asked.data, asked.out, asked.cache, on_progress)
    lines = [f"{score.benchmark}, {score.model}: {score.rows:,} scored" for score in scored]
    document = {"scores": [asdict(score) for score in scored], "report": page}
    answer(asked, document, lambda: print(*lines, page, sep="\n"))


def train_demo(asked: argparse.Namespace) -> None:
    """``twinset train demo``: random weights, on captions with their hard negatives, too few to learn much."""
    import twinset
    from twinset.cli.train.run import progress, tell

    _ensure_built(asked.data)
    data = f"{asked.data}:trohn-text"
    settings: dict[str, Any] = {
        "split": "train",
        "validation": (data,),
        "validation_split": "test",
        "model": "small-clip",
        "weights": None,
        "objective": "negative-texts",
        "batch": 16,
        "steps": 40,
        "lr": 5e-4,
        "warmup": 4,
        "transform": "evaluation",
        "validate_every": 10,
        "threads": 1,
        "workers": 1,
    }
    with progress() as on_progress:
        result = twinset.train((data,), asked.out, on_progress=on_progress, **settings)
    answer(asked, result, lambda: tell(result))


def _add_folders(command: argparse.ArgumentParser, out: str) -> None:
    built = "folder of the demo, built first where it is absent"
    for options, default, meaning in ((["--data"], "out/demo", built), (["-o", "--out"], out, "folder of the run")):
        text = f"{meaning} (default: {default})"
        command.add_argument(*options, type=Path, default=Path(default), metavar="DIR", help=text)


def _ensure_built(data: Path) -> None:
    import twinset

    if not any(data.glob("*/_meta/stage.json")):
        print(f"{data}: no dataset there; building the demo, which takes a minute", file=sys.stderr)
        twinset.build("demo", str(data))
