"""What each command does, in terms of `twinset`'s functions and words for people; one that fails returns 1."""

import argparse
import contextlib
import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import psutil

import twinset
from twinset.cli.bars import bars
from twinset.cli.tables import print_counts, print_problems
from twinset.manifests.errors import WrongUse
from twinset.manifests.recipe import Recipe, parse_recipe
from twinset.shards.storage.store import Store
from twinset.stages.overview import published


def plan(asked: argparse.Namespace) -> None:
    """``twinset plan``."""
    with contextlib.redirect_stdout(sys.stderr):  # what a source prints is none of the counts
        counts = twinset.plan(asked.recipe, asked.out, asked.only, asked.set)
    _show(asked, counts, planning=True)


def build(asked: argparse.Namespace) -> None:
    """``twinset build``: here, or in Prefect where ``PREFECT_API_URL`` is set."""
    recipe = twinset.load_recipe(asked.recipe, asked.set).only(asked.only)
    _show(asked, _built(recipe, asked.out, asked.workers, asked.runner))


def parse(asked: argparse.Namespace) -> None:
    """``twinset parse``: a build of one stage, the scene graphs of captions."""
    source: dict[str, Any] = {"kind": "scene-graphs", "captions": [os.path.abspath(path) for path in asked.captions]}
    for name in ("pipeline", "confirm"):
        if (value := getattr(asked, name)) is not None:
            source[name] = os.path.abspath(value) if Path(value).is_dir() else value
    for path in source["captions"]:
        if not os.path.exists(path):  # the source's own message names a setting, and this command has no --set
            raise WrongUse(f"{path}: there is no such file or folder; name captions that exist")
    raw = {"name": "parse", "subsets": {GRAPHS: {"source": source, "shard_size": 2048}}}
    counts = _built(parse_recipe(raw), asked.to, asked.workers, "threads")
    left_out = twinset.status(asked.to)["subsets"][GRAPHS]["examples"]
    for reason, place in left_out:
        print(f"{place}: left out, {reason}", file=sys.stderr)
    _show(asked, counts)


GRAPHS = "scene-graphs"


def status(asked: argparse.Namespace) -> None:
    """``twinset status``."""
    _show(asked, twinset.status(asked.out))


def verify(asked: argparse.Namespace) -> int:
    """``twinset verify``; exit code 1 when there is a problem."""
    found = twinset.verify(asked.out, asked.only, asked.media)
    if asked.json:
        print(json.dumps(found))
    return 1 if print_problems(found, counted=not asked.json) else 0


def look(asked: argparse.Namespace) -> None:
    """``twinset look``."""
    from twinset.cards.page import write_look  # it draws

    if asked.count < 1:
        raise WrongUse("--count: at least 1 sample a subset")
    store = Store(asked.out)
    with store.tidied():
        written = write_look(store, published(store, asked.only, stages=True), asked.count)
    for path in written:
        print(f"{store.root}/{path}")


def export(asked: argparse.Namespace) -> None:
    """``twinset export``."""
    count = twinset.export(asked.out, asked.format, asked.to, asked.only)
    print(f"{count:,} samples in {asked.to}")


@contextlib.contextmanager
def ending_at_once() -> Iterator[None]:
    """Within it, Ctrl-C and SIGTERM kill this process's children and end it with exit code 1.

    Whatever is half-done has no receipt.
    """
    before = {number: signal.signal(number, _stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _stop(_number: int, _frame: FrameType | None) -> None:
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            child.kill()
    # The children's temporary files are removed by none of them now. Not imported here: an import may be interrupted.
    if (module := sys.modules.get("twinset.stages.child_processes")) is not None and hasattr(module, "remove_scratch"):
        module.remove_scratch()
    os.write(2, b"\ntwinset: interrupted; the same command resumes\n")
    os._exit(1)


def _built(recipe: Recipe, out: str, workers: int, runner: str) -> dict[str, Any]:
    if os.environ.get("PREFECT_API_URL"):
        from twinset.flows.from_here import build_in_prefect

        with ending_at_once():
            return build_in_prefect(recipe, out, workers, runner)  # type: ignore[arg-type]
    if runner not in ("threads", "processes"):
        raise WrongUse(f"--runner {runner}: runs in Prefect; set PREFECT_API_URL to a server's, or leave it out")
    with contextlib.redirect_stdout(sys.stderr), ending_at_once(), bars() as progress:
        return twinset.build(recipe, out, workers=workers, runner=runner, progress=progress)  # type: ignore[arg-type]


def _show(asked: argparse.Namespace, counts: dict[str, Any], planning: bool = False) -> None:
    if asked.json:
        print(json.dumps(counts))
    else:
        print_counts(counts, planning)
