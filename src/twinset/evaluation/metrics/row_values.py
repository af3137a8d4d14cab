"""Row values: a column for each figure, whose mean over the rows that are asked it is the figure."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from twinset.contracts.errors import WrongUse
from twinset.evaluation.score_files.opening import Batch

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
ALL = "all"  # what all rows are called
MOST_VALUES = 1000  # of the columns that figures are given by
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
    return RowValues({name: np.where(np.isnan(right), np.nan, right == 1) for name, right in chances.items()}, chances)


def chosen(table: Batch, rows: Places) -> Batch:
    """Some rows of a batch."""
    return replace(table, columns={name: column.take(pa.array(rows)) for name, column in table.columns.items()})


def common(tables: Sequence[Batch], key: Sequence[str]) -> list[Batch]:
    """The rows of tables whose keys all of them have, in one order; without a key their rows are in one order."""
    rows = []
    for number, table in enumerate(tables):
        texts = {name: pl.Series(table.texts(name)) for name in key}
        rows.append(pl.DataFrame(texts or {"": range(len(table))}).with_row_index(f"\x1frow {number}"))
    joined = reduce(lambda first, second: first.join(second, list(key) or "", maintain_order="left"), rows)
    joined = joined.sort(list(key) or "")
    return [chosen(table, joined[f"\x1frow {number}"].to_numpy()) for number, table in enumerate(tables)]


def labelled(table: Batch, by: Sequence[str]) -> Iterator[tuple[str, Places]]:
    """The values of some columns in order, "value / value" of two, each with its rows."""
    if not by:
        return
    values = pl.DataFrame([pl.Series(str(number), table.texts(name)) for number, name in enumerate(by)])
    parts = values.with_row_index("row").group_by(values.columns).agg("row")
    if len(parts) > MOST_VALUES:
        what = f"--by {','.join(by)}: more than {MOST_VALUES:,} values"
        raise WrongUse(f"{table.where}: {what}; name columns of categories")
    labels = parts.select(label=pl.concat_str(values.columns, separator=" / "), row="row").sort("label")
    if labels["label"].is_duplicated().any():
        raise WrongUse(f"--by {','.join(by)}: values with ' / ' in them cannot be told apart")
    for label, rows in labels.iter_rows():
        yield label, np.array(rows)


def refuse_all(names: Collection[str], what: str) -> None:
    """Raise `WrongUse` where a part has the name of all of them."""
    if ALL in names:
        raise WrongUse(f"{what} is {ALL!r}, which all together are called; give it another name")


def clusters(table: Batch, group: str | None) -> Places:
    """The cluster of each row, a number from 0: its group, or itself where there are none; shape (n,)."""
    if group is None:
        return np.arange(len(table))
    return pl.Series(table.texts(group, empty=False)).rank("dense").to_numpy().astype(np.int64) - 1
