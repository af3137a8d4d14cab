"""``twinset eval report``: the page, JSON and tables of a run again, from its score files."""

import argparse
from pathlib import Path
from typing import Any

from twinset.cli.options import add_command, add_repeatable, answer, named_folder


def add(commands: Any) -> None:
    """Add the command to the subparsers of ``twinset eval``."""
    text = "write the report of a run again, from RUN/scores; no model is needed"
    reporting = add_command(commands, "report", report, text)
    reporting.add_argument("run_folder", type=Path, metavar="RUN", help="folder that `twinset eval run --out` wrote")
    said = "a benchmark's folder, for pictures of mistakes that RUN does not hold yet"
    add_repeatable(reporting, "--benchmark", "NAME=DIR", said, type=named_folder)


def report(asked: argparse.Namespace) -> None:
    """``twinset eval report``."""
    from twinset.evaluation.dataset_parts import open_benchmarks
    from twinset.evaluation.report.page import write_report  # it draws

    opened = [one for name, folder in asked.benchmark for one in open_benchmarks(name, folder)]
    benchmarks = {one.name: one for one in opened}
    written = [str(path) for path in write_report(asked.run_folder, benchmarks)]
    answer(asked, {"written": written}, lambda: print(*written, sep="\n"))
