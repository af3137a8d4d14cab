"""``twinset eval report``: the page, JSON and tables of a run again, from its score files."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any


def add(commands: Any) -> None:
    """Add the command to the subparsers of ``twinset eval``."""
    text = "write the report of a run again from OUT/scores; no model is needed"
    reporting = commands.add_parser("report", help=text, description=text)
    reporting.set_defaults(run=report)
    reporting.add_argument("out", type=Path, metavar="OUT", help="folder of the run")


def report(asked: argparse.Namespace) -> None:
    """``twinset eval report``."""
    from evaluation.report.page import write_report  # it draws

    for path in write_report(asked.out):
        print(path)
