"""Measures a table of scores in columns: figures, ties, and intervals clustered by group."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from twinset.contracts.errors import WrongUse
from twinset.evaluation.metrics.bootstrap import alike, begins_of, interval, resampled
from twinset.evaluation.metrics.figures import Figure, Measured, Results
from twinset.evaluation.metrics.matching import Matchings
from twinset.evaluation.metrics.outcomes import Codes, Floats, ScoreKind
from twinset.evaluation.metrics.score_kinds import NO_THRESHOLD, group_column, kinds_of
from twinset.evaluation.score_files.opening import MOST_LABELS, Digests, Labels, ScoreFile, digests, open_scores

ALL, KEY = "all", "key"
APART = "apart"  # in a file's metadata: its subsets ask in different ways
_NORMAL = 1.959963984540054  # the 97.5 % quantile of the normal distribution


@dataclass(frozen=True, slots=True)
class _Rows:
    """What is kept of rows, ordered by group where they have one: 12 bytes each, and 4 for each number.

    expected: sums of the chances of events by label, shape (labels, events); None where they are not known.
    """

    codes: Codes
    labels: NDArray[np.uint16]
    groups: Digests | None
    numbers: NDArray[np.floating[Any]]
    expected: Floats | None


def measure(
    source: pa.Table | str | Path,
    by: Sequence[str] = (),
    seed: int = 0,
    resamples: int = 2000,
    *,
    group: str | None = None,
    threshold: float | None = None,
) -> Results:
    """Figures of a table of scores.

    Args:
        source: a table, or the path of one: `evaluation.metrics.score_kinds.COLUMNS` lists the columns.
        by: columns; the figures are also given for the rows of each value, or of each pair of values for two columns.
        resamples: of the bootstrap; 0 for no intervals.
        group: column whose rows are resampled together; None: ``group`` where there is one, else every row by itself.
        threshold: score above which image and caption are said to match (VALSE).

    Raises:
        WrongUse: the file cannot be read, lacks a column, a row has no score, or two rows have one key; names the row
            and the remedy.
    """
    file = open_scores(source)
    kinds = kinds_of(file, threshold)
    column = group_column(file, group)
    for name in by:
        file.require(name, "--by")
    if KEY in file.names:
        file.refuse_repeats([KEY], f"keep one row of each, or rename the column {KEY} where it is not a row's own")
    found = [_of_kind(file, kind, by, column, seed, resamples) for kind in kinds]  # in turn: memory is for one
    everything = _joined([one for one, _ in found])
    if file.about.get(APART):
        everything = replace(everything, figures={})
    values = {label: _joined([one[label] for _, one in found]) for label in found[0][1]}
    return Results(everything, values, _notes(everything, kinds[0], column, threshold is not None))


def _of_kind(
    file: ScoreFile, kind: ScoreKind, by: Sequence[str], column: str | None, seed: int, resamples: int
) -> tuple[Measured, dict[str, Measured]]:
    """Figures of one kind: of all rows, and by label."""
    labels = Labels(by)
    rows = _read(file, kind, labels, column)
    everything = _measured(kind, rows, None, seed, resamples, ALL)
    numbered = sorted((label, number) for number, label in enumerate(labels.names)) if by else []
    return everything, {
        label: _measured(kind, rows, number, seed, resamples, f"by {label}") for label, number in numbered
    }


def _joined(measured: Sequence[Measured]) -> Measured:
    """The figures of all kinds; the rest is of the first."""
    figures: dict[str, Figure] = {}
    for one in measured:
        if twice := [*(figures.keys() & one.figures.keys())]:
            raise WrongUse(f"two metrics have a figure {twice[0]!r}; give the installed one another name")
        figures |= one.figures
    return replace(measured[0], figures=figures)


def _read(file: ScoreFile, kind: ScoreKind, labels: Labels, column: str | None) -> _Rows:
    precision: Any = np.float64 if column is None else np.float32  # rows with groups need memory to be sorted
    kept, expected = [], np.zeros((MOST_LABELS, len(kind.events)))
    known = True
    for batch in file.batches([*kind.columns, *labels.columns, *([] if column is None else [column])]):
        found = kind.outcomes(batch)
        label = labels.numbered(batch) if labels.columns else np.zeros(len(batch), np.uint16)
        group = np.empty(0, np.uint64) if column is None else digests(batch, [column], empty=False)
        kept.append((found.code, label, group, found.numbers.astype(precision)))
        known = known and found.expected is not None
        for event, chances in enumerate(found.expected.T if found.expected is not None else ()):
            expected[:, event] += np.bincount(label, chances, minlength=MOST_LABELS)
    codes, numbered, groups, numbers = (np.concatenate(part) for part in zip(*kept, strict=True))
    order: Any = slice(None) if column is None else np.argsort(groups)
    grouped = None if column is None else groups[order]
    return _Rows(codes[order], numbered[order], grouped, numbers[order], expected if known else None)


def _measured(kind: ScoreKind, rows: _Rows, label: int | None, seed: int, resamples: int, name: str) -> Measured:
    """Figures of the rows with a label, or of all rows; name: of the random numbers."""
    chosen: Any = slice(None) if label is None else rows.labels == label
    codes, groups = rows.codes[chosen], None if rows.groups is None else rows.groups[chosen]
    totals = (np.bincount(codes, minlength=len(kind.truth)) @ kind.truth.astype(np.int64)).astype(np.float64)
    sums, counts = alike(codes, kind.truth, groups)
    clusters = int(counts.sum())
    again = resampled(sums, counts, resamples if clusters > 1 else 0, seed, name)
    expected = None if rows.expected is None else rows.expected.sum(0) if label is None else rows.expected[label]
    figures: dict[str, Figure] = {}
    for figure in kind.names(totals):
        chance = None
        if expected is not None and kind.has_expected(figure):
            chance = float(kind.figure(figure, expected))
        figures[figure] = Figure(float(kind.figure(figure, totals)), chance, *interval(kind.figure(figure, again)))
    for place, figure in enumerate(kind.means):
        if (mean := _mean(rows.numbers[chosen, place], groups)) is not None:
            if kind.expected_means:
                chance = float(np.nanmean(rows.numbers[chosen, place + len(kind.means)], dtype=np.float64))
                mean = replace(mean, expected=chance)
            figures[figure] = mean if resamples else replace(mean, low=None, high=None)
    tied = kind.tied(totals)
    n = int(totals[0])
    return Measured(n, clusters, None if tied is None else 100 * tied / n, figures)


def _mean(numbers: NDArray[np.floating[Any]], groups: Digests | None) -> Figure | None:
    """A mean of numbers with its interval; None where no row has such a number (NaN).

    Its error is robust to clusters: linearised, as the mean is a ratio of sums over clusters. With n_g numbers in
    cluster g of G, and sum S_g: error² = G / (G - 1) · Σ(S_g - mean · n_g)² / (Σn_g)².
    """
    has = ~np.isnan(numbers)
    n = int(has.sum())
    if not n:
        return None
    mean = float(numbers.sum(dtype=np.float64, where=has)) / n
    begins = begins_of(np.arange(len(numbers), dtype=np.uint64) if groups is None else groups)
    deviations = np.where(has, numbers.astype(np.float64) - mean, 0)
    squares = float(np.square(np.add.reduceat(deviations, begins)).sum())
    clusters = int(np.logical_or.reduceat(has, begins).sum())
    if clusters < 2:
        return Figure(mean)
    error = math.sqrt(clusters / (clusters - 1) * squares) / n
    least = -math.inf if (numbers[has] < 0).any() else 0.0  # of numbers that are never negative
    return Figure(mean, None, max(mean - _NORMAL * error, least), mean + _NORMAL * error)


def _notes(everything: Measured, kind: ScoreKind, group: str | None, asked_threshold: bool) -> tuple[str, ...]:
    notes = []
    if not everything.figures:
        notes.append("no figures of all rows: subsets ask in different ways; name --by subset")
    if group is None:
        notes.append("every row is its own group; where rows share an image or video, name its column with --group")
    if everything.groups < 2:
        notes.append("no intervals of figures: there is only one group")
    if isinstance(kind, Matchings) and kind.scored:
        one = "accuracy" in everything.figures
        if one and kind.threshold is None:
            notes.append(NO_THRESHOLD)
        if not one and asked_threshold:
            notes.append("the threshold changes nothing: every row has two images, VALSE's have one")
        if one and "text" in everything.figures:
            notes.append("some rows have one image: accuracy is of these; text, image and group are of the others")
    if everything.ties is None and isinstance(kind, Matchings):
        notes.append("ties are not known: the file has outcomes, not scores")
    return tuple(notes)
