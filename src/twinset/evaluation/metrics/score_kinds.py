"""Kinds of tables of scores: which of them a file is, by its columns, and the functions that give its row values."""

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import FunctionType
from typing import Any

import numpy as np
import pyarrow as pa

from twinset.contracts.doors import Registry
from twinset.contracts.errors import WrongUse
from twinset.evaluation.metrics import matching
from twinset.evaluation.metrics.galleries import RANKS, TIED_TARGETS, of_errors, of_ranks
from twinset.evaluation.metrics.matching import SCORES
from twinset.evaluation.metrics.row_values import MEAN, Floats, RowValues
from twinset.evaluation.score_files.opening import Batch, ScoreFile

#: A function of columns, which are its parameters, and perhaps of a threshold.
Metric = Callable[..., RowValues | Mapping[str, Floats]]
KINDS = {"detection": "twinset.evaluation.metrics.matching:detection"}
#: Measured of every table that has their columns; the others of tables that name them, as `Reader.metrics` does.
METRICS = Registry[Metric]("metric", FunctionType, __name__, "twinset.metrics")
NAMED = {
    "map": "twinset.evaluation.metrics.galleries:mean_average_precision",
    "semantic-map": "twinset.evaluation.metrics.galleries:semantic_map",
}
NAMED_METRICS = Registry[Metric]("metric", FunctionType, f"{__name__}:NAMED", "twinset.named_metrics")
#: Columns of each kind, of which the first that a file has are read; what they ask, and the function that reads them.
COLUMNS: dict[tuple[str, ...], tuple[str, Callable[..., RowValues]]] = {
    **dict.fromkeys((SCORES, SCORES[:2]), ("matching", matching.of_scores)),
    **dict.fromkeys(((*RANKS, TIED_TARGETS), RANKS), ("query", of_ranks)),
    ("errors",): ("grounding", of_errors),
    **dict.fromkeys((*matching.RELEASED, matching.CORRECT), ("matching", matching.of_outcomes)),
    **dict.fromkeys((matching.CHOICES, matching.FINER), ("matching", matching.of_choices)),
}


@dataclass(frozen=True, slots=True)
class Reading:
    """How row values are read from a file.

    kind: what its columns ask, or the name of a metric. parts: functions of a batch of columns. notes: what is left.
    """

    kind: str
    columns: tuple[str, ...]
    parts: tuple[Callable[[Batch], RowValues], ...]
    notes: tuple[str, ...] = ()

    def rows(self, table: Batch) -> RowValues:
        """The row values of all parts."""
        strict, expected = dict[str, Floats](), dict[str, Floats]()
        for values in (part(table) for part in self.parts):
            if twice := sorted(strict.keys() & values.strict.keys()):
                raise WrongUse(f"two metrics have a figure {twice[0]!r}; give the installed one another name")
            strict |= values.strict
            expected |= values.expected
        return RowValues(strict, expected)


def reading_of(file: ScoreFile, threshold: float | None = None) -> Reading:
    """How a file is read: the kind of scores that it has, then the metrics that it names in its metadata
    (``"metrics"``), and those whose columns it has.

    Args:
        threshold: score above which image and caption are said to match; None: as the file says of itself, else none.
    """
    there = {*file.names}
    columns = next((kind for kind in COLUMNS if there >= {*kind}), ())
    if columns == SCORES[:2] and there & {*SCORES[2:]}:
        columns = ()
    if scored := columns[:1] == SCORES[:1]:
        own = file.about.get("threshold")
        if own is not None and not (type(own) in (int, float) and math.isfinite(own)):
            raise WrongUse(f"{file.where}: its metadata has the threshold {own!r}; write a number, or none")
        threshold = own if threshold is None else threshold
        silent = own or 0.0 if file.about.get("unanswered") else math.nan  # as `evaluation.features.pairs` scores them
    elif threshold is not None:
        raise WrongUse(f"{file.where}: --threshold is about scores, and it has none; leave the option out")
    kind, read = COLUMNS.get(columns, ("", matching.of_scores))
    parts: list[Callable[[Batch], RowValues]] = []
    if columns:
        parts.append(partial(read, threshold=threshold, silent=silent) if scored else read)
    named = file.about.get("metrics", ())
    metrics = {name: NAMED_METRICS.find(name) for name in (named if isinstance(named, list) else ())}
    notes = list[str]()
    for name, metric in (metrics | {name: METRICS.find(name) for name in METRICS.kinds()}).items():
        asked = inspect.signature(metric).parameters.values()
        parameters = [column.name for column in asked if column.name != "threshold" and column.default is column.empty]
        if {*parameters} <= there:
            kind, columns = kind or name, (*columns, *parameters)
            parts.append(partial(_of_metric, name, metric, parameters, threshold))
        elif name in metrics or name not in KINDS:
            absent = ", ".join(column for column in parameters if column not in there)
            notes.append(f"{name} is not measured: {file.where} has no column {absent}")
    if not parts:
        kinds = "; or ".join(", ".join(names) for names in COLUMNS)
        raise WrongUse(f"{file.where}: no scores in its columns: {file.listed}; needed are {kinds}")
    for column in columns:
        file.require(column, "")
    return Reading(kind, columns, tuple(parts), tuple(notes))


def _of_metric(name: str, metric: Metric, columns: list[str], threshold: float | None, table: Batch) -> RowValues:
    """What a metric gives, checked."""
    parameters = inspect.signature(metric).parameters
    given = {column: _values(table, column, parameters[column].annotation) for column in columns}
    if "threshold" in parameters:
        given["threshold"] = threshold if threshold is None else table.as_stored(columns[0], threshold)
    try:
        values = metric(**given)
    except Exception as error:
        raise WrongUse(f"metric {name}: {type(error).__name__}: {error}; correct it") from error
    values = values if isinstance(values, RowValues) else RowValues(values)
    for figure, column in values.strict.items():
        right = figure.startswith(MEAN) | np.isnan(column) | ((np.asarray(column) >= 0) & (np.asarray(column) <= 1))
        if np.shape(right) != (len(table),) or not right.all():
            problem = f"{figure} is not 0 to 1, or NaN where it is not asked, for each of {len(table)} rows; correct it"
            raise WrongUse(f"metric {name}: {problem}")
    return RowValues({name: np.asarray(column, np.float64) for name, column in values.strict.items()}, values.expected)


def _values(table: Batch, name: str, annotation: object) -> Any:
    """A column for metrics: numbers with NaN for null, texts (always for ``Sequence[str]``), or numbers of each row."""
    kind = table.columns[name].type
    if annotation in (Sequence[str], "Sequence[str]"):
        return table.texts(name).to_numpy(zero_copy_only=False)
    if pa.types.is_nested(kind):
        numbers, begins = table.lists(name)
        return np.split(numbers, begins[1:])
    if pa.types.is_boolean(kind):
        return table.flags(name).astype(np.float64)
    try:
        return table.numbers(name, nullable=True)
    except WrongUse:
        return table.texts(name).to_numpy(zero_copy_only=False)
