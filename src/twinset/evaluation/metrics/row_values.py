"""Row values: a column for each figure, whose mean over the rows that are asked it is the figure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from twinset.evaluation.score_files.batch import Batch
from twinset.evaluation.score_files.opening import Labels, ScoreFile, digests

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
MEAN = "mean_"  # figures that begin so are means of plain numbers; all others are percent


@dataclass(frozen=True, slots=True)
class RowValues:
    """Columns of n rows by the name of their figure, each of shape (n,).

    strict: from 0 to 1, a tie is 0; NaN where a row is not asked. Any number where the name begins with `MEAN`.
    expected: the same with ties broken at random, of the figures where this is known.
    """

    strict: Mapping[str, Floats]
    expected: Mapping[str, Floats] = field(default_factory=dict)

    @property
    def asked(self) -> list[str]:
        """Figures that some row is asked."""
        return [name for name, column in self.strict.items() if not np.isnan(column).all()]

    @property
    def ties(self) -> float | None:
        """Percent of rows that a tie makes wrong in some figure; None where it cannot be known."""
        unlike = [np.nan_to_num(self.strict[name]) != np.nan_to_num(chance) for name, chance in self.expected.items()]
        return 100 * float(np.any(unlike, axis=0).mean()) if unlike else None


def certain(chances: Mapping[str, Floats]) -> RowValues:
    """Row values from chances of being right under random breaking of ties: strictly right is what is certain."""
    return RowValues({name: np.where(np.isnan(one), np.nan, one == 1) for name, one in chances.items()}, chances)


def whole(file: ScoreFile, columns: Sequence[str]) -> Batch:
    """Some columns of a file as one batch."""
    batches = [*file.batches(columns)]
    table = pa.concat_tables([pa.table(dict(batch.columns)) for batch in batches]).unify_dictionaries()
    return Batch(file.where, 1, {name: table[name].combine_chunks() for name in table.column_names}, batches[0].text)


def chosen(table: Batch, rows: Places) -> Batch:
    """Some rows of a batch."""
    return replace(table, columns={name: column.take(pa.array(rows)) for name, column in table.columns.items()})


def common(tables: Sequence[Batch], key: Sequence[str]) -> list[Batch]:
    """The rows of tables whose keys all of them have, in one order; without a key their rows are in one order."""
    keys = [digests(table, key) if key else np.arange(len(table)) for table in tables]
    both, orders = reduce(np.intersect1d, keys), [np.argsort(one) for one in keys]
    places = (order[np.searchsorted(one, both, sorter=order)] for one, order in zip(keys, orders, strict=True))
    return [chosen(table, place) for table, place in zip(tables, places, strict=True)]


def labelled(table: Batch, by: Sequence[str]) -> Iterator[tuple[str, Places]]:
    """The values of some columns in order, "value / value" of two, each with its rows."""
    labels = Labels(by)
    numbers = labels.numbered(table) if by else np.empty(0, np.uint16)
    for label, number in sorted(zip(labels.names, range(len(labels.names)), strict=True)):
        yield label, np.flatnonzero(numbers == number)


def clusters(table: Batch, group: str | None) -> Places:
    """The cluster of each row, a number from 0: its group, or itself where there are none; shape (n,)."""
    if group is None:
        return np.arange(len(table))
    return np.unique(digests(table, [group], empty=False), return_inverse=True)[1]
