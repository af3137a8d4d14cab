"""``twinset eval scores`` and ``twinset eval compare``: what a table of scores says, and how two of them differ."""

import argparse
import math
import sys
from collections.abc import Sequence
from typing import Any

from twinset.cli.options import add_bootstrap, add_command, answer
from twinset.cli.tables import print_columns


def add(commands: Any) -> None:
    """Add the two commands to the subparsers of ``twinset eval``."""
    text = "measure a file of scores or outcomes of any model; your own code can write it"
    measuring = add_command(commands, "scores", scores, text)
    measuring.add_argument(
        "file",
        metavar="FILE",
        help="Parquet or CSV with columns such as s00 s01 s10 s11 (image, caption); docs/scores.md lists all",
    )
    measuring.add_argument(
        "--threshold",
        type=_number,
        metavar="P",
        help="score above which image and caption are said to match, such as 0.5 where scores are probabilities: adds "
        "VALSE's acc, p_c, p_f and min",
    )
    text = "compare two files of scores, row by row: A minus B, with intervals and McNemar's test"
    comparing = add_command(commands, "compare", compare, text)
    for name in ("a", "b"):
        comparing.add_argument(name, metavar=name.upper(), help="a file, as for `twinset eval scores`")
    comparing.add_argument(
        "--key",
        type=_names,
        default=("key",),
        metavar="COLUMN[,COLUMN]",
        help="columns that identify a row in both files (default: key)",
    )
    comparing.add_argument(
        "--in-order", action="store_true", help="join row n of A with row n of B, where the files have no key"
    )
    comparing.add_argument(
        "--figures",
        type=_names,
        default=(),
        metavar="NAME[,NAME]",
        help="figures to compare (default: text, image and group, or accuracy, or recall)",
    )
    for added in (measuring, comparing):
        added.add_argument(
            "--by",
            type=_names,
            default=(),
            metavar="COLUMN[,COLUMN]",
            help="give the figures also for each value, or combination of values, of these columns",
        )
        added.add_argument(
            "--group",
            metavar="COLUMN",
            help="column of the source image or video, whose rows are resampled together (default: the column group "
            "where there is one, else each row alone)",
        )
        add_bootstrap(added)


def scores(asked: argparse.Namespace) -> None:
    """``twinset eval scores``."""
    from twinset.evaluation.metrics.measure import measure

    found = measure(asked.file, asked.by, asked.seed, asked.resamples, group=asked.group, threshold=asked.threshold)
    rows = [
        (label or "(none)", f"{one.n:,}", name, *_words(name, figure, one.ties))
        for label, one in (("all", found.all), *found.by.items())
        for name, figure in one.figures.items()
    ]
    header = ("rows", "n", "figure", "value", "95 % interval", "ties broken at random", "ties")
    _answer(asked, found, header, rows)


def compare(asked: argparse.Namespace) -> None:
    """``twinset eval compare``."""
    from twinset.evaluation.metrics.compare import compare as compared

    found = compared(
        asked.a,
        asked.b,
        asked.by,
        asked.seed,
        asked.resamples,
        key=None if asked.in_order else asked.key,
        group=asked.group,
        figures=asked.figures,
    )
    rows = [
        (
            row.rows or "(none)",
            f"{row.n:,}",
            row.figure,
            f"{row.a:.2f}",
            f"{row.b:.2f}",
            f"{row.difference:+.2f}",
            _interval(row.low, row.high),
            f"{row.only_a:,} / {row.only_b:,}",
            f"{row.p:.2g}",
            f"{row.p_holm:.2g}",
        )
        for row in found.table
    ]
    header = ("rows", "n", "figure", "A", "B", "A − B", "95 % interval", "only A / only B right", "McNemar p", "Holm p")
    _answer(asked, found, header, rows)


def _words(name: str, figure: Any, ties: float | None) -> tuple[str, str, str, str]:
    expected = "" if figure.expected is None else f"{figure.expected:.2f}"
    digits = 4 if name.startswith("mean_") else 2  # percent, but for means of numbers
    return (
        f"{figure.value:.{digits}f}",
        _interval(figure.low, figure.high, digits),
        expected,
        "?" if ties is None else f"{ties:.2f}",
    )


def _interval(low: float | None, high: float | None, digits: int = 2) -> str:
    return "" if low is None or high is None else f"{low:.{digits}f} to {high:.{digits}f}"


def _answer(asked: argparse.Namespace, found: Any, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table or JSON on stdout, notes on stderr."""
    for note in found.notes:
        print(note, file=sys.stderr)
    answer(asked, found.as_json(), lambda: print_columns(header, rows))


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not all(names) or len({*names}) < len(names):
        raise argparse.ArgumentTypeError(f"{text!r}: write different names with a comma between them")
    return names


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise argparse.ArgumentTypeError(f"{text!r}: write a number such as 0.5")
    return number
