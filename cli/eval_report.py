"""``twinset eval report``: the page, JSON and tables of a run again, from its score files."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from cli.eval_run import named


def add(commands: Any) -> None:
    """Add the command to the subparsers of ``twinset eval``."""
    text = "write the report of a run again, from OUT/scores; no model is needed"
    reporting = commands.add_parser("report", help=text, description=text)
    reporting.set_defaults(run=report)
    reporting.add_argument("out", type=Path, metavar="OUT", help="folder of the run, as --out of `twinset eval run`")
    reporting.add_argument(
        "--benchmark",
        action="append",
        default=[],
        metavar="NAME=DIR",
        help="a benchmark's folder, for pictures of mistakes that OUT does not hold yet; may be repeated",
    )


def report(asked: argparse.Namespace) -> None:
    """``twinset eval report``."""
    from evaluation.benchmarks import open_parts
    from evaluation.report.page import write_report  # it draws

    benchmarks = {part.name: part for name, folder in named(asked.benchmark, []) for part in open_parts(name, folder)}
    for path in write_report(asked.out, benchmarks):
        print(path)
