"""``twinset train grid``: a paper's table, all arms of it trained and scored."""

import argparse
from pathlib import Path
from typing import Any

from twinset.cli.options import add_command, answer
from twinset.cli.terminal import say

TEXT = """\
train and score every arm of a design, and write its figures beside the paper's; the same command resumes, and does \
again only what is not done"""


def add_grid(trainings: Any) -> None:
    """Add the command to those of ``twinset train``."""
    grid = add_command(trainings, "grid", run, TEXT, "train and score every arm of a paper's table")
    grid.add_argument("design", type=Path, help="eqben, eqben_data, eqben_fusion, bivlc or genecis; or a YAML file")
    several: dict[str, Any] = {"action": "append", "default": [], "metavar": "NAME=PLACE"}
    grid.add_argument("--data", **several, help="what a name of the design's data stands for; repeat for several")
    grid.add_argument("--test", **several, help="folder of a test or of a benchmark's tests; others are left out")
    grid.add_argument("--set", **several | {"metavar": "KEY.PATH=VALUE"}, dest="settings", help="change the design")
    grid.add_argument("--only", action="append", default=[], metavar="ARM", help="these arms, and what they begin from")
    grid.add_argument("-o", "--out", required=True, type=Path, metavar="OUT", help="folder of runs, scores and tables")
    grid.add_argument("--device", choices=("cpu", "gpu"), default="cpu", help="where models are scored (default: cpu)")


def run(asked: argparse.Namespace) -> None:
    """Carry out ``twinset train grid``."""
    from twinset.models.encoders.contract import Running
    from twinset.training.grids.run import open_grid, run_grid

    grid = open_grid(asked.design, asked.data, asked.test, asked.out, asked.settings, Running(asked.device), asked.only)
    found = run_grid(grid, lambda line: None if asked.json else say(line))
    answer(asked, found, lambda: say(Path(found["tables"][0]).read_text("utf-8"), *found["tables"], sep="\n"))
