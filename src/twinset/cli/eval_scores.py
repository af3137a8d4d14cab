"""``twinset eval scores`` and ``twinset eval compare``: what a table of scores says, and how two of them differ.
``twinset eval questions``: what a model that runs elsewhere is to score.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from twinset.cli.eval_run import named, print_run
from twinset.cli.options import add_described, answer
from twinset.cli.tables import print_columns
from twinset.cli.terminal import say
from twinset.contracts.errors import WrongUse


def add(commands: Any) -> None:
    """Add the three commands to the subparsers of ``twinset eval``."""
    add_described(commands, "questions", questions)
    add_described(commands, "scores", scores, "scores", "rows", "bootstrap")
    add_described(commands, "compare", compare, "compare", "rows", "bootstrap")


def scores(asked: argparse.Namespace) -> None:
    """``twinset eval scores``."""
    if asked.scores is not None:
        from twinset.evaluation.score_files.opening import write_csv

        write_csv(asked.file, asked.scores)
    if asked.out or asked.model or asked.questions or asked.benchmark:
        _take(asked)
        return
    from twinset.evaluation.metrics.measure import measure

    found = measure(asked.file, asked.by, asked.seed, asked.resamples, group=asked.group, threshold=asked.threshold)
    rows = [
        (label or "(none)", f"{one.n:,}", name, *_words(name, figure, one.ties))
        for label, one in (("all", found.all), *found.by.items())
        for name, figure in one.figures.items()
    ]
    header = ("rows", "n", "figure", "value", "95 % interval", "ties broken at random", "ties")
    _answer(asked, found, header, rows)


def _take(asked: argparse.Namespace) -> None:
    """Scores of other code into a run, and its report."""
    if not (asked.out and asked.model and (asked.questions or len(asked.benchmark) == 1)):
        raise WrongUse(
            "scores that go into a run need --out RUN, --model NAME, and --questions Q or --benchmark NAME=DIR"
        )
    from twinset.evaluation.from_python import put_scores

    found = put_scores(
        Path(asked.file), asked.model, asked.out, dict(asked.benchmark), asked.questions, asked.threshold
    )
    answer(asked, found, lambda: print_run(found))


def questions(asked: argparse.Namespace) -> None:
    """``twinset eval questions``."""
    from twinset.evaluation.questions.asked import write_questions

    found = write_questions(named(asked.benchmark, asked.data), asked.only, asked.out)

    def show() -> None:
        say(f"{asked.out}: {found.images:,} images, {found.texts:,} texts, {found.pairs:,} pairs")
        for reason, count in found.left_out.items():
            say(f"  {count:,} examples left out: {reason}")

    answer(asked, asdict(found), show)


def compare(asked: argparse.Namespace) -> None:
    """``twinset eval compare``."""
    from twinset.evaluation.metrics.compare import compare as compared

    key = None if asked.in_order else asked.key
    found = compared(
        asked.a, asked.b, asked.by, asked.seed, asked.resamples, key=key, group=asked.group, figures=asked.figures
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
        say(note, file=sys.stderr)
    answer(asked, found.as_json(), lambda: print_columns(header, rows))
