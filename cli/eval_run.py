"""``twinset eval run``: models on benchmarks."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from manifests.errors import WrongUse

MOST_BATCH = 65_536  # inputs of a pass, all of which are held; a short pass is filled up
MOST_THREADS = 4096


def add(commands: Any) -> None:
    """Add the command to the subparsers of ``twinset eval``."""
    text = "score benchmarks with models; what was encoded is kept, and the same command resumes"
    running = commands.add_parser("run", help=text, description=text)
    running.set_defaults(run=run)
    repeated = {"action": "append", "default": []}
    running.add_argument(
        "--benchmark",
        **repeated,
        required=True,
        metavar="NAME[=DIR]",
        help="a benchmark and its folder; may be repeated; docs/evaluation.md lists them",
    )
    running.add_argument(
        "--data", **repeated, metavar="DIR", help="folder of the benchmark in the same place, where it names none"
    )
    running.add_argument("--subset", **repeated, metavar="SUBSET", help="read only this subset; may be repeated")
    running.add_argument(
        "--model",
        **repeated,
        required=True,
        metavar="KIND:NAME[:CHECKPOINT]",
        help="such as open_clip:ViT-B-32:openai, clip:FOLDER, image+text:open_clip:RN50x4:openai; may be repeated",
    )
    running.add_argument("--out", required=True, type=Path, metavar="OUT", help="folder of the scores")
    running.add_argument(
        "--cache", type=Path, metavar="DIR", help="folder of what was encoded (default: ~/.cache/twinset/features)"
    )
    running.add_argument("--device", choices=("cpu", "gpu"), default="cpu", help="what runs the models (default: cpu)")
    running.add_argument(
        "--batch", type=_positive, default=32, metavar="N", help="images, texts or pairs a pass (default: 32)"
    )
    running.add_argument("--threads", type=_count, default=0, metavar="N", help="of torch (default: 0, one a core)")
    running.add_argument("--json", action="store_true", help="print one JSON object on stdout")


def run(asked: argparse.Namespace) -> None:
    """``twinset eval run``."""
    import twinset

    benchmarks = named(asked.benchmark, asked.data)
    with progress() as on_progress, contextlib.redirect_stdout(sys.stderr):
        found = twinset.evaluate(
            benchmarks,
            asked.model,
            asked.out,
            subsets=asked.subset,
            cache=asked.cache,
            device=asked.device,
            batch=asked.batch,
            threads=asked.threads,
            on_progress=on_progress,
        )
    if asked.json:
        print(json.dumps(found))
    else:
        _print(found["scores"])
        print(found["report"])


def named(benchmarks: Sequence[str], folders: Sequence[str]) -> list[tuple[str, str]]:
    """Names and folders of benchmarks: ``NAME=DIR``, or the next of ``--data``.

    Raises:
        WrongUse: there are more or fewer folders than benchmarks without one.
    """
    waiting = [name for name in benchmarks if "=" not in name]
    if len(waiting) != len(folders):
        raise WrongUse(
            f"--data: {len(folders)} folders for {len(waiting)} benchmarks without one "
            f"({', '.join(waiting) or 'none'}); "
            "write --benchmark NAME --data DIR for each, or --benchmark NAME=DIR"
        )
    left = iter(folders)
    pairs = [tuple(one.split("=", 1)) if "=" in one else (one, next(left)) for one in benchmarks]
    return [(name, folder) for name, folder in pairs]


@contextlib.contextmanager
def progress() -> Iterator[Callable[[str, str, int], None]]:
    """A line a model and benchmark with the number of examples done, where stderr is a terminal."""
    if not sys.stderr.isatty():
        yield lambda benchmark, model, done: None
        return
    from rich.console import Console
    from rich.progress import Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), TextColumn("{task.completed:,} examples"), TimeElapsedColumn())
    tasks: dict[str, Any] = {}
    with Progress(*columns, console=Console(stderr=True)) as shown:

        def tell(benchmark: str, model: str, done: int) -> None:
            name = f"{model} on {benchmark}"
            if name not in tasks:
                tasks[name] = shown.add_task(name, total=None)
            shown.update(tasks[name], completed=done)

        yield tell


def _print(scores: Sequence[dict[str, Any]]) -> None:
    for one in scores:
        left_out = "".join(f", {count:,} left out: {reason}" for reason, count in one["left_out"].items())
        print(f"{one['benchmark']}, {one['model']}: {one['rows']:,} scored{left_out}")
        found = one["figures"]
        expected, interval = found["expected"], found["interval"]
        for name in [name for name in found if name not in ("n", "groups", "ties", "expected", "interval")]:
            line = f"  {name:16} {found[name]:8.2f}"
            line += f"  {interval[name][0]:.2f} to {interval[name][1]:.2f}" if name in interval else ""
            print(line + (f", {expected[name]:.2f} with ties broken at random" if name in expected else ""))
        print(f"  {one['path']}")


def _positive(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text) <= MOST_BATCH:
        raise argparse.ArgumentTypeError(f"{text!r}: write a number from 1 to {MOST_BATCH:,}")
    return int(text)


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > MOST_THREADS:
        raise argparse.ArgumentTypeError(f"{text!r}: write a number from 0 to {MOST_THREADS:,}")
    return int(text)
