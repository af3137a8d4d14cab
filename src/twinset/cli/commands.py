"""The commands that make and read datasets: their options, and what they do in terms of `twinset`'s functions."""

import argparse
import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import psutil

import twinset
from twinset.cli.bars import bars
from twinset.cli.costs import print_estimates
from twinset.cli.options import add_arguments, add_described, answer
from twinset.cli.slurm_states import slurm_states
from twinset.cli.tables import print_counts, print_verified
from twinset.cli.terminal import JsonStream, in_json, say
from twinset.contracts.errors import NoDataset, WrongUse
from twinset.shards.export.formats import EXPORTERS

if TYPE_CHECKING:
    from twinset.contracts.recipe import Recipe

GRAPHS = "scene-graphs"


def add(commands: Any) -> None:
    """Add the commands to the subparsers of ``twinset``."""
    command = partial(add_described, commands)
    command("plan", plan, "recipe", "plan")
    command("build", build, "recipe", "making", "build")
    command("parse", parse, "parse", "making")
    command("status", status, "dataset", "status")
    command("verify", verify, "dataset", "only", "verify")
    command("look", look, "dataset", "only", "look")
    exporting = command("export", export, "dataset", "only")
    exporting.add_argument("--format", required=True, choices=EXPORTERS.kinds(), help="of the export")
    add_arguments(exporting, "export")
    command("publish", publish, "dataset", "only", "publish")


def plan(asked: argparse.Namespace) -> None:
    """``twinset plan``."""
    from twinset.contracts.recipe.loading import recipe_folder
    from twinset.contracts.recipe.permissions import in_words, outside

    recipe = twinset.load_recipe(asked.recipe, asked.set).only(asked.only)
    named = outside(recipe, recipe_folder(asked.recipe))
    for line in in_words(named):
        say(line, file=sys.stderr)
    found = {**twinset.plan(recipe, asked.out, like=asked.like), "outside": named}
    for line in found["not_found"]:
        say("not found here:", line, file=sys.stderr)
    _show(asked, found, planning=True)
    if not asked.json:
        with contextlib.redirect_stdout(asked.stdout):
            print_estimates({**found["stages"], **found["subsets"]})


def build(asked: argparse.Namespace) -> None:
    """``twinset build``: here, or in Prefect where ``PREFECT_API_URL`` is set."""
    recipe = twinset.load_recipe(asked.recipe, asked.set).only(asked.only)
    steps = {name: getattr(asked, name) for name in ("stage", "part", "shards", "plan_only", "finish")}
    if any(value not in (None, False) for value in steps.values()):
        with ending_at_once(), bars() as progress:
            counts = twinset.build(recipe, asked.out, (), (), asked.workers, asked.runner, progress, **steps)
        if "subsets" not in counts:
            return answer(asked, counts, lambda: say(", ".join(f"{name}: {one}" for name, one in counts.items())))
    else:
        counts = _built(recipe, asked.out, asked.workers, asked.runner, asked.log)
    _show(asked, counts)


def parse(asked: argparse.Namespace) -> None:
    """``twinset parse``: a build of one stage, the scene graphs of captions."""
    from twinset.contracts.recipe import parse_recipe

    source: dict[str, Any] = {"kind": "scene-graphs", "captions": [os.path.abspath(path) for path in asked.captions]}
    for name in ("pipeline", "confirm"):
        if (value := getattr(asked, name)) is not None:
            source[name] = os.path.abspath(value) if Path(value).is_dir() else value
    for path in source["captions"]:
        if not os.path.exists(path):  # the source's own message names a setting, and this command has no --set
            raise WrongUse(f"{path}: there is no such file or folder; name captions that exist")
    raw = {"name": "parse", "subsets": {GRAPHS: {"source": source, "shard_size": 2048}}}
    counts = _built(parse_recipe(raw), asked.out, asked.workers, "threads", asked.log)
    left_out = twinset.status(asked.out)["subsets"][GRAPHS]["examples"]
    for reason, where in left_out:
        say(f"{where}: left out, {reason}", file=sys.stderr)
    _show(asked, counts)


def status(asked: argparse.Namespace) -> int:
    """``twinset status``; exit code 1 when there is a problem."""
    states = slurm_states(asked.dataset)
    try:
        found = twinset.status(asked.dataset, asked.missing)
    except NoDataset:
        if not states:
            raise
        found = {"subsets": {}, "stages": {}}  # the job that plans has not begun, or failed
    _show(asked, {**found, "slurm": states})
    return 1 if any(row["problems"] for part in ("stages", "subsets") for row in found[part].values()) else 0


def verify(asked: argparse.Namespace) -> int:
    """``twinset verify``; exit code 1 when there is a problem."""
    found = twinset.verify(asked.dataset, asked.only, asked.media)
    problems = 0
    for row in {**found["stages"], **found["subsets"]}.values():
        problems += len(row["problems"])
        for problem in row["problems"]:
            say(problem, file=sys.stderr)
    answer(asked, found, lambda: print_verified(found))
    return 1 if problems else 0


def look(asked: argparse.Namespace) -> None:
    """``twinset look``."""
    written = twinset.look(asked.dataset, asked.only, asked.count)
    answer(asked, {"written": written}, lambda: say(*written, sep="\n"))


def export(asked: argparse.Namespace) -> None:
    """``twinset export``."""
    count = twinset.export(asked.dataset, asked.format, asked.out, asked.only, asked.only_licence)
    answer(asked, {"samples": count, "out": asked.out}, lambda: say(f"{count:,} samples in {asked.out}"))


def publish(asked: argparse.Namespace) -> None:
    """``twinset publish``."""
    found = twinset.publish(asked.dataset, asked.to, asked.only, asked.public, asked.update)
    said = f"{found['files']:,} files, {found['bytes'] / 1e6:,.1f} MB in {found.get('page', asked.to)}"
    if "revision" in found:
        said += f"\nrevision {found['revision']}, tagged {found['tag']}"
    answer(asked, found, lambda: say(said))


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
    words = "twinset: interrupted; the same command resumes"
    os.write(2, f"{in_json(message=words) if isinstance(sys.stderr, JsonStream) else words}\n".encode())
    os._exit(1)


def _built(recipe: "Recipe", out: str, workers: int, runner: str, log: str) -> dict[str, Any]:
    if os.environ.get("PREFECT_API_URL"):
        from twinset.flows.from_here import build_in_prefect

        if log != "text":
            raise WrongUse(f"--log {log}: Prefect keeps the log; unset PREFECT_API_URL, or leave --log out")
        with ending_at_once():
            return build_in_prefect(recipe, out, workers, runner)  # type: ignore[arg-type]
    with ending_at_once(), bars() as progress:
        return twinset.build(recipe, out, workers=workers, runner=runner, progress=progress)  # type: ignore[arg-type]


def _show(asked: argparse.Namespace, counts: dict[str, Any], planning: bool = False) -> None:
    answer(asked, counts, lambda: print_counts(counts, planning))
