"""Measures a table of scores in one pass, in columns: figures, ties, and intervals clustered by group."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from evaluation.metrics.bootstrap import interval, resampled
from evaluation.metrics.clusters import alike, clustered_error, of_histogram
from evaluation.metrics.figures import Figure, Measured, Results
from evaluation.metrics.matching import Matchings
from evaluation.metrics.outcomes import Floats, Outcomes, Question
from evaluation.metrics.questions import NO_THRESHOLD, group_column, question_of
from evaluation.score_files.identity import Digests, Labels, digests
from evaluation.score_files.opening import open_scores

ALL = "all"
_NORMAL = 1.959963984540054  # the 97.5 % quantile of the normal distribution


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
        source: a table, or the path of one: `evaluation.metrics.questions.KINDS` lists the columns.
        by: columns; the figures are also given for the rows of each value, or of each pair of values for two columns.
        resamples: of the bootstrap; 0 for no intervals.
        group: column whose rows are resampled together; None: ``group`` where there is one, else every row by itself.
        threshold: score above which image and caption are said to match (VALSE).

    Raises:
        WrongUse: the file cannot be read, lacks a column, or a row has no score; names the row and the remedy.
    """
    file = open_scores(source)
    question = question_of(file, threshold)
    column = group_column(file, group)
    for name in by:
        file.require(name, "--by")
    found = _Rows(question, column is not None)
    labels = Labels(by)
    for batch in file.batches([*question.columns, *by, *([] if column is None else [column])]):
        numbers = labels.numbered(batch) if by else np.zeros(len(batch), np.uint16)
        groups = None if column is None else digests(batch, [column], empty=False)
        found.add(question.outcomes(batch), numbers, groups)
    found.finish()
    names = labels.names if by else [ALL]
    everything = found.measured(range(len(names)), seed, resamples, ALL)
    numbered = sorted((label, number) for number, label in enumerate(names)) if by else []
    values = {label: found.measured([number], seed, resamples, f"by {label}") for label, number in numbered}
    return Results(everything, values, _notes(everything, question, column, threshold is not None))


class _Rows:
    """What is kept of the rows that have been read: counts where every row is its own group, else 20 bytes a row."""

    def __init__(self, question: Question, grouped: bool) -> None:
        self._question, self._grouped = question, grouped
        self._histogram = np.zeros((0, len(question.truth)), np.int64)
        self._expected: Floats | None = np.zeros((0, len(question.events)))
        # Of the numbers, by label: how many, their sum, sum of squares.
        self._moments = np.zeros((0, 3, len(question.means)))
        # Of each row, in arrays a batch: digest of its group, number of its label, code, numbers.
        self._kept: tuple[list[NDArray[Any]], ...] = ([], [], [], [])

    def add(self, outcomes: Outcomes, labels: NDArray[np.uint16], groups: Digests | None) -> None:
        """Take in a batch; labels: number of each row's value."""
        size = max(len(self._histogram), int(labels.max()) + 1)
        joint = labels.astype(np.int64) * len(self._question.truth) + outcomes.code
        self._histogram = _grown(self._histogram, size)
        self._histogram += np.bincount(joint, minlength=self._histogram.size).reshape(self._histogram.shape)
        if outcomes.expected is None or self._expected is None:
            self._expected = None
        else:
            self._expected = _grown(self._expected, size)
            for event, chances in enumerate(outcomes.expected.T):
                self._expected[:, event] += np.bincount(labels, chances, minlength=size)
        if groups is not None:
            kept: tuple[NDArray[Any], ...] = (groups, labels, outcomes.code, outcomes.numbers.astype(np.float32))
            for column, array in zip(self._kept, kept, strict=True):
                column.append(array)
            return
        self._moments = _grown(self._moments, size)
        for place, numbers in enumerate(outcomes.numbers.T):
            has = ~np.isnan(numbers)
            for moment, powers in enumerate((np.ones(int(has.sum())), numbers[has], numbers[has] ** 2)):
                self._moments[:, moment, place] += np.bincount(labels[has], powers, minlength=size)

    def finish(self) -> None:
        """Put the rows in the order of their groups; no batch comes after."""
        if not self._grouped:
            return
        groups = np.concatenate(self._kept[0])
        order = np.argsort(groups, kind="stable")
        for column in self._kept:  # one at a time: they are not held twice
            column[:] = [np.concatenate(column)[order]]

    def measured(self, labels: Sequence[int], seed: int, resamples: int, name: str) -> Measured:
        """Figures of the rows with one of some labels; name: of the random numbers."""
        question, chosen = self._question, [*labels]
        rows: tuple[NDArray[Any], ...] | None = None
        if self._grouped:
            rows = tuple(column[0] for column in self._kept)
            if len(chosen) < len(self._histogram):
                has = np.isin(rows[1], chosen)
                rows = tuple(column[has] for column in rows)
            sums, counts = alike(rows[2], question.truth, rows[0])
        else:
            sums, counts = of_histogram(self._histogram[chosen].sum(0), question.truth)
        totals = (counts @ sums).astype(np.float64)
        groups = int(counts.sum())
        again = resampled(sums, counts, resamples if groups > 1 else 0, seed, name)
        expected = None if self._expected is None else self._expected[chosen].sum(0)
        figures: dict[str, Figure] = {}
        for figure in question.names(totals):
            chance = None
            if expected is not None and question.has_expected(figure):
                chance = float(question.figure(figure, expected))
            figures[figure] = Figure(
                float(question.figure(figure, totals)), chance, *interval(question.figure(figure, again))
            )
        for place, figure in enumerate(question.means):
            if (mean := self._mean(rows, chosen, place)) is not None:
                figures[figure] = mean if resamples else Figure(mean.value)
        tied = question.tied(totals)
        n = int(totals[0])
        return Measured(n, groups, None if tied is None else 100 * tied / n, figures)

    def _mean(self, rows: tuple[NDArray[Any], ...] | None, labels: list[int], place: int) -> Figure | None:
        """A mean of numbers with its interval; None where no row has such a number."""
        if rows is not None:
            numbers, groups = rows[3][:, place], rows[0]
            if (none := np.isnan(numbers)).any():
                numbers, groups = numbers[~none], groups[~none]
            if not len(numbers):
                return None
            mean, error = clustered_error(numbers, groups)
        else:
            n, total, squares = self._moments[labels, :, place].sum(0)
            if not n:
                return None
            mean = total / n
            # As `clustered_error` with a cluster a row: error² = n / (n - 1) · Σ(x - mean)² / n².
            error = math.sqrt(max(0.0, squares - n * mean**2) / (n - 1) / n) if n > 1 else math.nan
        if math.isnan(error):
            return Figure(float(mean))
        return Figure(float(mean), None, float(mean - _NORMAL * error), float(mean + _NORMAL * error))


def _grown(array: NDArray[Any], size: int) -> NDArray[Any]:
    """The array with as many rows as asked, the new ones 0."""
    return np.concatenate([array, np.zeros((size - len(array), *array.shape[1:]), array.dtype)])


def _notes(everything: Measured, question: Question, group: str | None, asked_threshold: bool) -> tuple[str, ...]:
    notes = []
    if group is None:
        notes.append("every row is its own group; where rows share an image or video, name its column with --group")
    if everything.groups < 2:
        notes.append("no intervals of figures: there is only one group")
    if isinstance(question, Matchings) and question.scored:
        one = "accuracy" in everything.figures
        if one and question.threshold is None:
            notes.append(NO_THRESHOLD)
        if not one and asked_threshold:
            notes.append("the threshold changes nothing: every row has two images, VALSE's have one")
        if one and "text" in everything.figures:
            notes.append("some rows have one image: accuracy is of these; text, image and group are of the others")
    if everything.ties is None:
        notes.append("ties are not known: the file has outcomes, not scores")
    return tuple(notes)
