"""``twinset eval answers``: which captions a multimodal language model chose, by its free answers in both orders."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinset.cli.options import add_bootstrap, add_command, answer
from twinset.cli.tables import print_columns

if TYPE_CHECKING:
    from twinset.evaluation.answers.report import Read, Report, SplitReport
    from twinset.evaluation.metrics.figures import Figure

SHOWN = 160  # characters of an answer


def add(commands: Any) -> None:
    """Add the command to the subparsers of ``twinset eval``."""
    text = "measure what a multimodal language model answered to: which of two captions fits the image?"
    added = add_command(commands, "answers", answers, text)
    added.add_argument(
        "folder",
        type=Path,
        metavar="DIR",
        help="folder with positive-first/SPLIT.json and negative-first/SPLIT.json, as SugarCrepe released them",
    )
    add_bootstrap(added)
    added.add_argument(
        "-o",
        "--out",
        type=Path,
        metavar="FILE",
        help="also write the choices as a Parquet file of scores, for `twinset eval compare`",
    )


def answers(asked: argparse.Namespace) -> None:
    """``twinset eval answers``."""
    from twinset.evaluation.answers.report import report

    found = report(asked.folder, asked.seed, asked.resamples)
    if asked.out is not None:
        from twinset.evaluation.answers.report import write_scores

        write_scores(asked.out, found.answers, {"model": f"answers in {asked.folder.name}"})
    for note in found.notes:
        print(note, file=sys.stderr)
    answer(asked, found.as_json(), lambda: _print(found))


def _print(found: Report) -> None:
    from twinset.evaluation.answers.report import ALL

    splits = found.splits if len(found.splits) == 1 else {**found.splits, ALL: found.all}
    print_columns(_HEADER, [row for name, split in splits.items() for row in _rows(name, split)])
    _print_answers("read in another way by the released evaluation", found.differences)
    _print_answers("unparsed", found.unparsed)
    for file, held in found.stray.items():
        print(f"{file}: not answers: {json.dumps(held)[:SHOWN]}")


_HEADER = ("split", "order", "n", "right", "%", "95 % interval", "wrong", "unparsed", "as published", "chose first")


def _rows(name: str, split: SplitReport) -> Iterable[tuple[str, ...]]:
    for order, one in split.orders.items():
        counts, published = one.counts, one.published
        yield (
            *(name, order, f"{one.n:,}", f"{counts['right']:,}", *_value(one.figures["right"])),
            *(f"{counts['wrong']:,}", f"{counts['unparsed']:,}", f"{published['right']:,}"),
            _value(one.figures.get("first"))[0],
        )
        name = ""
    if (both := split.both) is not None:
        counts = both.counts
        yield (
            *(name, "both", f"{both.n:,}", f"{counts['right']:,}", *_value(both.figures["right"])),
            *(f"{counts['wrong']:,}", f"{counts['unparsed']:,}", ""),
            _value(both.figures.get("first"))[0],
        )
        yield ("", "order decides", "", f"{counts['inconsistent']:,}", *_value(both.figures["inconsistent"]), *[""] * 4)
        yield ("", "average", "", "", *_value(both.figures["average"]), *[""] * 4)


def _value(figure: Figure | None) -> tuple[str, str]:
    if figure is None:
        return "", ""
    interval = "" if figure.low is None or figure.high is None else f"{figure.low:.2f} to {figure.high:.2f}"
    return f"{figure.value:.2f}", interval


def _print_answers(title: str, some: Iterable[Read]) -> None:
    shown = [*some]
    if shown:
        print(f"\n{title}: {len(shown):,}")
    for one in shown:
        said = "" if one.reading.choice is None else f"({one.reading.choice}), {'right' if one.right else 'wrong'}"
        text = one.answered.text
        # As a literal: an answer can hold control characters. The whole text is in --json.
        literal = repr(text[:SHOWN]) + ("…" if len(text) > SHOWN else "")
        print(f"{one.file}: {one.answered.key}: {said or one.reading.reason}: {literal}")
