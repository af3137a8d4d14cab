"""``twinset eval human``: what people get on the questions that models are asked."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinset.cli.options import add_bootstrap, add_command, answer
from twinset.cli.tables import print_columns

if TYPE_CHECKING:
    from twinset.evaluation.metrics.figures import Figure
    from twinset.evaluation.people import People

_HEADER = ("", "pairs", "I2T", "95 % interval", "T2I", "95 % interval", "group", "95 % interval")


def add(commands: Any) -> None:
    """Add the command to the subparsers of ``twinset eval``."""
    text = "measure what people answered in a stage of human-baseline: I2T, T2I and group score, as of models"
    added = add_command(commands, "human", human, text)
    added.add_argument("stage", metavar="STAGE", help="folder of the stage, such as OUT/_stages/human-baseline")
    added.add_argument(
        "-o",
        "--out",
        type=Path,
        metavar="RUN",
        help="folder of a run of `twinset eval run` on the same pairs: also write people's outcomes beside its scores, "
        "so that `twinset eval report RUN` shows them with the models",
    )
    added.add_argument(
        "--data", metavar="DIR", help="with --out: the dataset of the pairs (default: the one that holds the stage)"
    )
    add_bootstrap(added)


def human(asked: argparse.Namespace) -> None:
    """``twinset eval human``."""
    from twinset.evaluation.people import people, read_answered
    from twinset.manifests.errors import WrongUse

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
    answer(asked, document, lambda: _print(found, lines))


def _print(found: People, lines: Iterable[str]) -> None:
    if found.answered.simulated:
        print("Nobody was asked: the answers are those of simulated annotators.")
    print_columns(_HEADER, [*_rows(found)])
    if found.undecided:
        print(f"{found.undecided:,} of {found.answered.sampled:,} pairs are left out: not all four are decided")
    print()
    rows = [
        (name, f"{one.of:,}", f"{100 * one.count / one.of:.2f}", f"{100 * one.low:.2f} to {100 * one.high:.2f}")
        for name, annotator in found.annotators.items()
        for one in [annotator.answers]
    ]
    print_columns(("annotator", "answers", "right %", "95 % interval (Wilson)"), rows)
    agreement = found.answered.agreement
    if agreement["mean"] is not None:
        print(f"Cohen's kappa: mean {agreement['mean']:.3f} over {len(agreement['pairs'])} pairs of annotators")
    for line in lines:
        print(line)


def _rows(found: People) -> Iterator[tuple[str, ...]]:
    """As BiVLC's Table 2: people, kinds, annotators, what the paper has, guesses."""
    from twinset.evaluation.people import guessing, references

    yield _row("people", f"{found.pooled.all.n:,}", found.pooled.all.figures)
    if len(found.pooled.by) > 1:
        for kind, part in found.pooled.by.items():
            yield _row(f"  {kind}", f"{part.n:,}", part.figures)
    for name, annotator in found.annotators.items():
        if annotator.whole is not None and len(found.annotators) > 1:
            yield _row(f"  {name}", f"{annotator.whole.n:,}", annotator.whole.figures)
    for reference in references():
        figures = reference.figures[""]
        yield (f"{reference.name} ({reference.source})", "", *_alone(figures))
    yield _row("guesses", "", guessing())


def _row(label: str, pairs: str, figures: Mapping[str, Figure]) -> tuple[str, ...]:
    cells = []
    for name in ("text", "image", "group"):
        one = figures[name]
        cells += [f"{one.value:.2f}", "" if one.low is None else f"{one.low:.2f} to {one.high:.2f}"]
    return (label, pairs, *cells)


def _alone(figures: Mapping[str, float]) -> tuple[str, ...]:
    return tuple(cell for name in ("text", "image", "group") for cell in (f"{figures[name]:.2f}", ""))
