"""``twinset eval agreement``: scores of images beside people's ratings."""

import argparse
import sys
from typing import Any

from twinset import WrongUse
from twinset.cli.options import add_arguments, add_command, add_repeatable, answer
from twinset.cli.tables import print_columns

TEXT = "compare scores of generated images with people's ratings: Kendall's tau-b, Spearman's rho, Pearson's r"
RATINGS = (
    "released ratings, tifa=DIR, dsg=DIR or geneval=DIR; or CSV or Parquet with the columns key and rating, a row for "
    "each rating, and group for the prompt"
)
SCORES = "scores of the same images: CSV or Parquet, such as the index of a stage of image-verification"


def add(commands: Any) -> None:
    """Add the command to the subparsers of ``twinset eval``."""
    command = add_command(commands, "agreement", agreement, TEXT)
    command.add_argument("ratings", metavar="RATINGS", help=RATINGS)
    add_repeatable(command, "--scores", "FILE", SCORES)
    for column in ("key", "score"):
        help_ = f"column of the {column}s in every FILE (default: {column})"
        command.add_argument(f"--{column}", default=column, metavar="COLUMN", help=help_)
    add_arguments(command, "bootstrap")


def agreement(asked: argparse.Namespace) -> None:
    """``twinset eval agreement``."""
    from twinset_extras.ratings.agreement import agreement as agreed
    from twinset_extras.ratings.released import read_ratings, read_scores

    if twice := next((file for n, file in enumerate(asked.scores) if file in asked.scores[:n]), None):
        raise WrongUse(f"--scores names {twice} twice; name each file once")
    scores = {file: read_scores(file, asked.key, asked.score) for file in asked.scores}
    found = agreed(read_ratings(asked.ratings), scores, asked.seed, asked.resamples)
    rows = []
    for name, one in found.checks.items():
        cells = [
            cell for each in one.figures.values() for cell in (f"{each.value:.3f}", _interval(each.low, each.high))
        ]
        published = ", ".join(f"{figure} {value:.3f}" for figure, value in one.published.items())
        rows.append((name, f"{one.n:,}", *cells, published))
    for note in found.notes:
        print(note, file=sys.stderr)
    named = (cell for name in ("Kendall", "Spearman", "Pearson") for cell in (name, "95 % interval"))
    answer(asked, found.as_json(), lambda: print_columns(("check", "images", *named, "published"), rows))


def _interval(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"{low:.3f} to {high:.3f}"
