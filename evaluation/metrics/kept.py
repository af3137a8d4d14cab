"""What is kept of rows that have been read, and the figures of it: sums of all, and of clusters for the bootstrap."""

from __future__ import annotations

import math
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twinset.evaluation.metrics.bootstrap import interval, resampled
from twinset.evaluation.metrics.clusters import of_histogram, whole_clusters
from twinset.evaluation.metrics.figures import Figure, Measured
from twinset.evaluation.metrics.outcomes import Codes, Floats, Outcomes, Question
from twinset.evaluation.metrics.ways import Ways
from twinset.evaluation.score_files.by_group import Records, RowsByGroup
from twinset.evaluation.score_files.identity import Digests

_NORMAL = 1.959963984540054  # the 97.5 % quantile of the normal distribution
Integers = NDArray[np.integer[Any]]


class KeptRows:
    """Sums over rows by label; and over the clusters of each label, where rows are grouped.

    ``add`` batches, ``finish``, then ask for what is ``measured``. Memory grows with the different sums that clusters
    have, not with rows or clusters. A context manager: it may use a temporary file.
    """

    def __init__(self, question: Question, grouped: bool) -> None:
        self._question = question
        self._grouped = RowsByGroup(len(question.means)) if grouped else None
        self._histogram = np.zeros((0, len(question.truth)), np.int64)
        self._expected: Floats | None = np.zeros((0, len(question.events)))
        # Of the numbers, by label: how many, their sum, sum of squares.
        self._moments = np.zeros((0, 3, len(question.means)))
        # Of clusters, by label and last of all: how many have numbers, sum of squares of their deviations.
        self._squares = np.zeros((0, 2, len(question.means)))
        self._all, self._by = Ways(len(question.events)), Ways(1 + len(question.events))

    def __enter__(self) -> KeptRows:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._grouped is not None:
            self._grouped.close()

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
        many = outcomes.numbers
        if self._grouped is not None and groups is not None:
            many = many.astype(np.float32).astype(np.float64)  # as they are kept
            self._grouped.add(groups, labels, outcomes.code, many)
        self._moments = _grown(self._moments, size)
        for place, numbers in enumerate(many.T):
            has = ~np.isnan(numbers)
            for moment, powers in enumerate((np.ones(int(has.sum())), numbers[has], numbers[has] ** 2)):
                self._moments[:, moment, place] += np.bincount(labels[has], powers, minlength=size)

    def finish(self) -> None:
        """Sum the clusters; no batch comes after."""
        if self._grouped is None:
            return
        labels = len(self._histogram)
        moments = np.concatenate([self._moments, self._moments.sum(0)[None]])
        means = moments[:, 1] / np.maximum(1, moments[:, 0])
        self._squares = np.zeros((labels + 1, 2, len(self._question.means)))
        for part in self._grouped.parts():
            for rows, begins in whole_clusters(part["group"]):
                self._sum(part[rows], begins, means)

    def _sum(self, rows: Records, begins: NDArray[np.int64], means: Floats) -> None:
        """Sum whole clusters, in order of group and label; begins: of each cluster."""
        last, label, numbers = len(self._histogram), rows["label"], rows["numbers"]
        self._count(self._all, rows["code"], begins, None)
        self._deviate(numbers - means[last], begins, np.full(len(begins), last))
        if last == 1:
            return
        begin = np.concatenate([[True], label[1:] != label[:-1]])
        begin[begins] = True
        begins = np.flatnonzero(begin)  # of clusters' rows with one label, which are clusters among those of this label
        self._count(self._by, rows["code"], begins, label[begins])
        self._deviate(numbers - means[label], begins, label[begins])

    def _count(self, ways: Ways, codes: Codes, begins: NDArray[np.int64], labels: NDArray[np.uint16] | None) -> None:
        """Count clusters by their sums, after their labels if any."""
        truth, single = self._question.truth, np.diff(begins, append=len(codes)) == 1
        if several := int((~single).sum()):
            sums = np.add.reduceat(truth[codes], begins, axis=0, dtype=np.int32)[~single]
            ways.add(sums if labels is None else np.column_stack([labels[~single], sums]))
        if several < len(begins):
            # Clusters of one row are counted by its code, which is faster.
            joint = codes[begins[single]] + np.int64(len(truth)) * (0 if labels is None else labels[single])
            counts = np.bincount(joint)
            met = np.flatnonzero(counts)
            sums = truth[met % len(truth)].astype(np.int32)
            ways.add(sums if labels is None else np.column_stack([met // len(truth), sums]), counts[met])

    def _deviate(self, deviations: Floats, begins: NDArray[np.int64], places: Integers) -> None:
        """Add clusters to ``_squares``; deviations: numbers less their mean; places: of each cluster."""
        for place, column in enumerate(deviations.T):
            has = ~np.isnan(column)
            sums = np.add.reduceat(np.where(has, column, 0), begins)
            any_number = np.logical_or.reduceat(has, begins)
            for power, added in enumerate((any_number, sums**2)):
                self._squares[:, power, place] += np.bincount(places, added, minlength=len(self._squares))

    def measured(self, label: int | None, seed: int, resamples: int, name: str) -> Measured:
        """Figures of the rows with a label, or of all rows; name: of the random numbers."""
        question = self._question
        chosen = slice(None) if label is None else slice(label, label + 1)
        histogram = self._histogram[chosen].sum(0)
        totals = (histogram @ question.truth.astype(np.int64)).astype(np.float64)
        sums, counts = of_histogram(histogram, question.truth) if self._grouped is None else self._clusters(label)
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
            if (mean := self._mean(label, place)) is not None:
                figures[figure] = mean if resamples else Figure(mean.value)
        tied = question.tied(totals)
        n = int(totals[0])
        return Measured(n, groups, None if tied is None else 100 * tied / n, figures)

    def _clusters(self, label: int | None) -> tuple[Integers, NDArray[np.int64]]:
        """Sums within the clusters of a label, and how many clusters have them; shapes (p, events), (p,)."""
        if label is None or len(self._histogram) == 1:
            return self._all.counted()
        rows, counts = self._by.counted()
        chosen = np.flatnonzero(rows[:, 0] == label)
        place = slice(chosen[0], chosen[-1] + 1)
        return rows[place, 1:], counts[place]

    def _mean(self, label: int | None, place: int) -> Figure | None:
        """A mean of numbers with its interval; None where no row has such a number.

        Its error is robust to clusters: linearised, as the mean is a ratio of sums over clusters. With n_g numbers in
        cluster g of G, and sum S_g: error² = G / (G - 1) · Σ(S_g - mean · n_g)² / (Σn_g)².
        """
        chosen = slice(None) if label is None else slice(label, label + 1)
        n, total, squares = self._moments[chosen, :, place].sum(0)
        if not n:
            return None
        mean = float(total / n)
        if self._grouped is None:  # each row is a cluster
            clusters, deviation = n, max(0.0, squares - n * mean**2)
        else:
            clusters, deviation = self._squares[-1 if label is None else label, :, place]
        if clusters < 2:
            return Figure(mean)
        error = math.sqrt(clusters / (clusters - 1) * deviation) / n
        return Figure(mean, None, float(mean - _NORMAL * error), float(mean + _NORMAL * error))


def _grown(array: NDArray[Any], size: int) -> NDArray[Any]:
    """The array with as many rows as asked, the new ones 0."""
    return np.concatenate([array, np.zeros((size - len(array), *array.shape[1:]), array.dtype)])
