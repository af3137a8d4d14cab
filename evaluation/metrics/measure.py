"""Measures a table of scores in one pass, in columns: figures, ties, and intervals clustered by group."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from twinset.evaluation.metrics.figures import Measured, Results
from twinset.evaluation.metrics.kept import KeptRows
from twinset.evaluation.metrics.matching import Matchings
from twinset.evaluation.metrics.outcomes import Question
from twinset.evaluation.metrics.questions import NO_THRESHOLD, group_column, question_of
from twinset.evaluation.score_files.identity import Labels, digests
from twinset.evaluation.score_files.opening import open_scores

ALL = "all"


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
    labels = Labels(by)
    with KeptRows(question, column is not None) as kept:
        for batch in file.batches([*question.columns, *by, *([] if column is None else [column])]):
            numbers = labels.numbered(batch) if by else np.zeros(len(batch), np.uint16)
            groups = None if column is None else digests(batch, [column], empty=False)
            kept.add(question.outcomes(batch), numbers, groups)
        kept.finish()
    everything = kept.measured(None, seed, resamples, ALL)
    numbered = sorted((label, number) for number, label in enumerate(labels.names)) if by else []
    values = {label: kept.measured(number, seed, resamples, f"by {label}") for label, number in numbered}
    return Results(everything, values, _notes(everything, question, column, threshold is not None))


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
