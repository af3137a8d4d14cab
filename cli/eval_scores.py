"""``twinset eval scores`` and ``twinset eval compare``: what a table of scores says, and how two of them differ."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from typing import Any

MOST_RESAMPLES = 1_000_000


def add(commands: Any) -> None:
    """Add the two commands to the subparsers of ``twinset eval``."""
    text = "measure a file of scores or outcomes, of any model"
    measuring = commands.add_parser("scores", help=text, description=text)
    measuring.set_defaults(run=scores)
    measuring.add_argument("file", metavar="FILE", help="Parquet or CSV; docs/evaluation.md lists its columns")
    measuring.add_argument(
        "--threshold",
        type=_number,
        metavar="P",
        help="score above which image and caption are said to match, such as 0.5 where scores are probabilities: adds "
        "VALSE's acc, p_c, p_f and min",
    )
    text = "compare two files of scores, paired by key: A minus B, with McNemar's test"
    comparing = commands.add_parser("compare", help=text, description=text)
    comparing.set_defaults(run=compare)
    for name in ("a", "b"):
        comparing.add_argument(name, metavar=name.upper(), help="a file, as for `twinset eval scores`")
    comparing.add_argument(
        "--key", type=_names, default=("key",), metavar="COLUMN[,COLUMN]", help="columns that identify a row"
    )
    comparing.add_argument("--in-order", action="store_true", help="row n of A belongs to row n of B; there is no key")
    comparing.add_argument(
        "--figures", type=_names, default=(), metavar="NAME[,NAME]", help="figures to compare (default: the main ones)"
    )
    for added in (measuring, comparing):
        added.add_argument(
            "--by", type=_names, default=(), metavar="COLUMN[,COLUMN]", help="also for each value of these columns"
        )
        added.add_argument(
            "--group",
            metavar="COLUMN",
            help="source image or video; its rows are resampled together (default: the column group, else every row)",
        )
        added.add_argument("--seed", type=_count, default=0, metavar="N", help="of the bootstrap (default: 0)")
        added.add_argument(
            "--resamples", type=resamples, default=2000, metavar="N", help="of the bootstrap; 0 for no intervals"
        )
        added.add_argument("--json", action="store_true", help="print one JSON object on stdout")


def scores(asked: argparse.Namespace) -> None:
    """``twinset eval scores``."""
    from evaluation.metrics.measure import measure

    found = measure(asked.file, asked.by, asked.seed, asked.resamples, group=asked.group, threshold=asked.threshold)
    if asked.json:
        print(json.dumps(found.as_json()))
        return
    rows = [
        (label or "(none)", f"{one.n:,}", name, *_words(name, figure, one.ties))
        for label, one in (("all", found.all), *found.by.items())
        for name, figure in one.figures.items()
    ]
    _print(("rows", "n", "figure", "value", "95 % interval", "ties broken at random", "ties"), rows, found.notes)


def compare(asked: argparse.Namespace) -> None:
    """``twinset eval compare``."""
    from evaluation.metrics.compare import compare as compared

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
    if asked.json:
        print(json.dumps(found.as_json()))
        return
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
    _print(header, rows, found.notes)


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


def _print(header: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str]) -> None:
    """A table on stdout in plain text, whatever the width of the terminal; notes on stderr."""
    # Values of columns are other people's: they must not steer the terminal, nor break the line.
    lines = [
        ["".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in cell) for cell in line]
        for line in (header, *rows)
    ]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
    for note in notes:
        print(note, file=sys.stderr)


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not all(names) or len({*names}) < len(names):
        raise argparse.ArgumentTypeError(f"{text!r}: write different names with a comma between them")
    return names


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r}: write a number, 0 or more")
    return int(text)


def resamples(text: str) -> int:
    """An argument that is a number of resamples; each takes memory."""
    if (number := _count(text)) > MOST_RESAMPLES:
        raise argparse.ArgumentTypeError(f"{text!r}: write at most {MOST_RESAMPLES:,}")
    return number


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise argparse.ArgumentTypeError(f"{text!r}: write a number such as 0.5")
    return number
