"""``twinset eval answers``: which captions a multimodal language model chose, by its free answers in both orders;
``twinset eval human``: what people get on the questions that models are asked.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from twinset.cli.options import add_described, answer
from twinset.cli.tables import print_columns
from twinset.cli.terminal import say

if TYPE_CHECKING:
    from twinset.evaluation.answers.report import Read, Report, SplitReport
    from twinset.evaluation.metrics.figures import Figure
    from twinset.evaluation.people import People

SHOWN = 160  # characters of an answer


def add(commands: Any) -> None:
    """Add both commands to the subparsers of ``twinset eval``."""
    add_described(commands, "answers", answers, "answers", "bootstrap")
    add_described(commands, "human", human, "human", "bootstrap")


def answers(asked: argparse.Namespace) -> None:
    """``twinset eval answers``."""
    from twinset.evaluation.answers.report import report

    found = report(asked.folder, asked.seed, asked.resamples)
    if asked.out is not None:
        from twinset.evaluation.answers.report import write_scores

        write_scores(asked.out, found.answers, {"model": f"answers in {asked.folder.name}"})
    for note in found.notes:
        say(note, file=sys.stderr)
    answer(asked, found.as_json(), lambda: _print(found))


def _print(found: Report) -> None:
    from twinset.evaluation.answers.report import ALL

    splits = found.splits if len(found.splits) == 1 else {**found.splits, ALL: found.all}
    print_columns(_HEADER, [row for name, split in splits.items() for row in _rows(name, split)])
    _print_answers("read in another way by the released evaluation", found.differences)
    _print_answers("unparsed", found.unparsed)
    for file, held in found.stray.items():
        say(f"{file}: not answers: {json.dumps(held)[:SHOWN]}")


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
        say(f"\n{title}: {len(shown):,}")
    for one in shown:
        said = "" if one.reading.choice is None else f"({one.reading.choice}), {'right' if one.right else 'wrong'}"
        text = one.answered.text
        # As a literal: an answer can hold control characters. The whole text is in --json.
        literal = repr(text[:SHOWN]) + ("…" if len(text) > SHOWN else "")
        say(f"{one.file}: {one.answered.key}: {said or one.reading.reason}: {literal}")


_PEOPLE_HEADER = ("", "pairs", "I2T", "95 % interval", "T2I", "95 % interval", "group", "95 % interval")


def human(asked: argparse.Namespace) -> None:
    """``twinset eval human``."""
    from twinset.contracts.errors import WrongUse
    from twinset.evaluation.people import people, read_answered

    if asked.data is not None and asked.out is None:
        raise WrongUse("--data: is for --out RUN, whose models were asked about the same pairs; name one")
    answered = read_answered(asked.stage)
    found = people(answered, asked.seed, asked.resamples)
    written = []
    if asked.out is not None:
        from twinset.evaluation.people import write_people

        written = write_people(answered, asked.out, asked.data)
    lines = [
        f"{one.path}: {one.rows:,} pairs; twinset eval report {asked.out} shows them beside the models"
        for one in written
    ]
    document = {**found.as_json(), "written": [one.path for one in written]}
    answer(asked, document, lambda: _print_people(found, lines))


def _print_people(found: People, lines: Iterable[str]) -> None:
    print_columns(_PEOPLE_HEADER, [*_rows_of_people(found)])
    if found.undecided:
        say(f"{found.undecided:,} of {found.answered.sampled:,} pairs are left out: not all four are decided")
    print()
    rows = [
        (name, f"{one.answers:,}", f"{100 * one.right / one.answers:.2f}") for name, one in found.annotators.items()
    ]
    print_columns(("annotator", "answers", "right %"), rows)
    agreement = found.answered.agreement
    if agreement["mean"] is not None:
        say(f"Cohen's kappa: mean {agreement['mean']:.3f} over {len(agreement['pairs'])} pairs of annotators")
    for line in lines:
        say(line)


def _rows_of_people(found: People) -> Iterator[tuple[str, ...]]:
    """As BiVLC's Table 2: people, kinds, annotators, what the paper has, guesses."""
    from twinset.evaluation.metrics.figures import Figure
    from twinset.evaluation.people import GUESSING, references

    yield _row("people", f"{found.pooled.all.n:,}", found.pooled.all.figures)
    if len(found.pooled.by) > 1:
        for kind, part in found.pooled.by.items():
            yield _row(f"  {kind}", f"{part.n:,}", part.figures)
    for name, annotator in found.annotators.items():
        if annotator.whole is not None and len(found.annotators) > 1:
            yield _row(f"  {name}", f"{annotator.whole.n:,}", annotator.whole.figures)
    for reference in references():
        figures = {name: Figure(value) for name, value in reference.figures[""].items()}
        yield _row(f"{reference.name} ({reference.source})", "", figures)
    yield _row("guesses", "", GUESSING)


def _row(label: str, pairs: str, figures: Mapping[str, Figure]) -> tuple[str, ...]:
    cells = []
    for name in ("text", "image", "group"):
        one = figures[name]
        cells += [f"{one.value:.2f}", "" if one.low is None else f"{one.low:.2f} to {one.high:.2f}"]
    return (label, pairs, *cells)
