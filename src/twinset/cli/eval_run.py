"""``twinset eval run``: models on benchmarks. ``twinset eval report``: the page, JSON and tables of a run again,
from its score files. ``twinset eval submission``: what a server takes. ``twinset eval benchmarks``: what there is.
"""

import argparse
import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from twinset.cli.options import add_cache, add_described, answer
from twinset.cli.terminal import say
from twinset.contracts.errors import WrongUse

NO_FIGURES = {"n", "groups", "ties", "expected", "interval", "sd"}  # what else is beside figures


def add(commands: Any) -> None:
    """Add the commands to the subparsers of ``twinset eval``."""
    add_cache(add_described(commands, "run", run, "run", "seeds", "devices"))
    add_described(commands, "report", report, "report", "seeds")
    add_cache(add_described(commands, "submission", submission, "submission", "devices"))
    add_described(commands, "benchmarks", benchmarks)


def run(asked: argparse.Namespace) -> None:
    """``twinset eval run``."""
    import twinset

    benchmarks = named(asked.benchmark, asked.data)
    how = {name: getattr(asked, name) for name in ("limit", "seed", "cache", "device", "batch", "threads")}
    with progress() as on_progress:
        found = twinset.evaluate(
            benchmarks,
            asked.model,
            asked.out,
            subsets=asked.only,
            prompts=asked.prompt,
            seeds=_by_name(asked.seeds),
            on_progress=on_progress,
            **how,
        )
    answer(asked, found, lambda: print_run(found))


def _by_name(seeds: Sequence[tuple[str, Sequence[str]]]) -> dict[str, list[str]]:
    found = dict[str, list[str]]()
    for name, models in seeds:
        found.setdefault(name, []).extend(models)
    return found


def named(benchmarks: Sequence[str], folders: Sequence[str]) -> list[tuple[str, str]]:
    """Names and folders of benchmarks: ``NAME=DIR``, or the next of ``--data``. Raises `WrongUse`: there are more or
    fewer folders than benchmarks without one.
    """
    waiting = [name for name in benchmarks if "=" not in name]
    if len(waiting) != len(folders):
        raise WrongUse(
            f"--benchmark without =DIR: {', '.join(waiting) or 'none'}; --data: {', '.join(folders) or 'none'}; there "
            "must be as many; write --benchmark NAME=DIR for each"
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


def print_run(run: dict[str, Any]) -> None:
    """The figures of what was scored, and where it lies."""
    for one in run["scores"]:
        left_out = "".join(f", {count:,} left out: {reason}" for reason, count in one["left_out"].items())
        silent = "".join(f", {count:,} questions unanswered: {reason}" for reason, count in one["unanswered"].items())
        cut = f", {one['cut_texts']:,} texts longer than the model reads" if one["cut_texts"] else ""
        say(f"{one['benchmark']}, {one['model']}: {one['rows']:,} scored{left_out}{silent}{cut}")
        whole = one["figures"]
        # Subsets that ask in different ways have no figures together.
        for subset, found in ({"": whole} if whole.keys() - NO_FIGURES else one["by_subset"]).items():
            expected, interval = found["expected"], found["interval"]
            for name in [name for name in found if name not in NO_FIGURES]:
                line = f"  {subset + ' ' if subset else ''}{name:16} {found[name]:8.2f}"
                line += f"  {interval[name][0]:.2f} to {interval[name][1]:.2f}" if name in interval else ""
                tied = found["ties"] and name in expected
                say(line + (f", {expected[name]:.2f} with ties broken at random" if tied else ""))
        say(f"  {one['path']}")
    say(run["report"])


def report(asked: argparse.Namespace) -> None:
    """``twinset eval report``."""
    from twinset.evaluation.dataset_parts import open_benchmarks
    from twinset.evaluation.report.page import write_report  # it draws

    opened = [one for name, folder in asked.benchmark for one in open_benchmarks(name, folder)]
    benchmarks = {one.name: one for one in opened}
    written = [str(path) for path in write_report(asked.run_folder, benchmarks, seeds=_by_name(asked.seeds))]
    answer(asked, {"written": written}, lambda: say(*written, sep="\n"))


def submission(asked: argparse.Namespace) -> None:
    """``twinset eval submission``."""
    from twinset.evaluation.benchmarks import open_benchmark
    from twinset.evaluation.submissions import write_submissions
    from twinset.models.encoders.contract import Running

    running = Running(asked.device, asked.batch, asked.threads)
    opened = open_benchmark(*asked.benchmark)
    written = [str(path) for path in write_submissions(opened, asked.model, asked.out, asked.cache, running)]
    answer(asked, {"written": written}, lambda: say(*written, sep="\n"))


def benchmarks(asked: argparse.Namespace) -> None:
    """``twinset eval benchmarks``."""
    from twinset.evaluation.benchmarks.listing import listing

    found = listing(asked.folder)

    def show() -> None:
        for one in found:
            there = f"{one['examples']:,} examples" if one["examples"] else "examples: as many as there are"
            say(f"{one['name']:22} {one['title']}; {there}; licence: {one['licence']}")
            for place in one["present"]:
                say(f"  {place['folder']}: {place['words']}")
            if not one["present"]:
                say(f"  {one['obtained']}" if asked.folder is None else "  not here")

    answer(asked, {"benchmarks": found}, show)
