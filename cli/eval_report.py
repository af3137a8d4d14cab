"""``twinset eval report``: the page, JSON and tables of a run again, from its score files."""

import argparse
from pathlib import Path
from typing import Any

from twinset.cli.options import add_command, named_folder


def add(commands: Any) -> None:
    """Add the command to the subparsers of ``twinset eval``."""
    text = "write the report of a run again, from OUT/scores; no model is needed"
    reporting = add_command(commands, "report", report, text)
    reporting.add_argument("out", type=Path, metavar="OUT", help="folder of the run, as --out of `twinset eval run`")
    reporting.add_argument(
        "--benchmark",
        action="append",
        default=[],
        type=named_folder,
        metavar="NAME=DIR",
        help="a benchmark's folder, for pictures of mistakes that OUT does not hold yet; may be repeated",
    )


def report(asked: argparse.Namespace) -> None:
    """``twinset eval report``."""
    from twinset.evaluation.dataset_parts import open_benchmarks
    from twinset.evaluation.report.page import write_report  # it draws

    opened = [one for name, folder in asked.benchmark for one in open_benchmarks(name, folder)]
    benchmarks = {one.name: one for one in opened}
    for path in write_report(asked.out, benchmarks):
        print(path)
