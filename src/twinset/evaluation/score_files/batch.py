"""Some rows of a table of scores, each column as what it has to be; what is not that is an error with its row."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from twinset.contracts.errors import WrongUse

Floats = NDArray[np.float64]
_GREATEST = 1e37  # of a score: sums of four fit into float32
_TRUE, _FALSE = ("true", "1", "1.0", "yes", "t", "y"), ("false", "0", "0.0", "no", "f", "n")


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows of a table.

    where: file, for messages. first: number of its first row; rows are counted from 1, without a CSV's header.
    text: all columns are text, as in a CSV, and numbers are read from it.
    """

    where: str
    first: int
    columns: Mapping[str, pa.Array]
    text: bool = False

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def numbers(self, name: str, nullable: bool = False) -> Floats:
        """A column of finite numbers; NaN stands for null, where that may be.

        Numbers are compared as the file has them: float16 and float32 are exact in float64, and nothing is rounded.
        """
        column = self.columns[name]
        if self.text:
            column = self._parsed(name, pl.Series(column.cast(pa.string())))
        elif not (_is_number(column.type) or pa.types.is_null(column.type)):
            raise WrongUse(f"{self.where}: column {name} is {column.type}; write numbers into it")
        null = np.asarray(column.is_null())
        if null.any() and not nullable:
            raise self._wrong(name, null, "has no number", "Fill it in, or leave the row out and say so.")
        values = np.asarray(pc.fill_null(column.cast(pa.float64(), safe=False), np.nan), np.float64)
        wrong = ~(np.abs(values) < _GREATEST) & ~null  # NaN compares as false
        if wrong.any():
            what = f"is {values[wrong.argmax()]}"
            raise self._wrong(name, wrong, what, "Score the row again in float32, or leave it out and say so.")
        return values

    def counts(self, name: str) -> NDArray[np.int64]:
        """A column of integers, 0 or more."""
        values = self.numbers(name)
        wrong = (values < 0) | (values != np.floor(values)) | (values >= 2**31)
        if wrong.any():
            raise self._wrong(name, wrong, f"is {values[wrong.argmax()]:g}", "Write a count, 0 or more.")
        return values.astype(np.int64)

    def flags(self, name: str) -> NDArray[np.bool_]:
        """A column of outcomes: booleans, 0 and 1, or such words as ``True`` and ``no`` in any case."""
        column = self.columns[name]
        if pa.types.is_nested(column.type):
            raise WrongUse(f"{self.where}: column {name} is {column.type}; write True or False into it")
        words = pl.Series(column).cast(pl.String).fill_null("").str.strip_chars().str.to_lowercase()
        true = words.is_in(_TRUE).to_numpy()
        wrong = ~(true | words.is_in(_FALSE).to_numpy())
        if wrong.any():
            value = column[int(wrong.argmax())].as_py()
            what = "has no outcome" if value in (None, "") else f"is {value!r}"
            raise self._wrong(name, wrong, what, "Write True or False, or 1 or 0.")
        return np.asarray(true, np.bool_)

    def texts(self, name: str, empty: bool = True) -> pa.Array:
        """A column as text, none of it null; ``empty`` tells whether it may be empty."""
        column = self.columns[name]
        try:
            column = column.cast(pa.string())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise WrongUse(f"{self.where}: column {name} is {column.type}; write text into it") from error
        wrong = np.asarray(column.is_null())
        if not empty:
            wrong = wrong | np.asarray(pc.fill_null(pc.equal(column, ""), True))
        if wrong.any():
            raise self._wrong(name, wrong, "is empty", "Fill it in, or name another column.")
        return column

    def lists(self, name: str) -> tuple[Floats, NDArray[np.int64]]:
        """A column of lists of numbers, none empty: all numbers, and where each row's begin in them."""
        column = self.columns[name]
        is_list = pa.types.is_list(column.type) or pa.types.is_large_list(column.type)
        if not is_list or not _is_number(column.type.value_type):
            raise WrongUse(f"{self.where}: column {name} is {column.type}; write lists of numbers into it, as Parquet")
        lengths = np.asarray(pc.fill_null(pc.list_value_length(column), 0), np.int64)
        if (lengths == 0).any():
            raise self._wrong(name, lengths == 0, "is empty", "Write one number or more, or leave the row out.")
        values = np.asarray(pc.fill_null(column.flatten().cast(pa.float64()), np.nan), np.float64)
        wrong = ~np.isfinite(values) | (values < 0)
        if wrong.any():
            rows = np.repeat(np.arange(len(column)), lengths)[wrong]
            what = f"has {values[wrong.argmax()]}"
            raise self._wrong(name, np.isin(np.arange(len(column)), rows), what, "Write seconds, 0 or more.")
        return values, lengths.cumsum() - lengths

    def wrong(self, names: str, rows: NDArray[np.bool_], what: str) -> WrongUse:
        """The error for the first of some rows."""
        return WrongUse(f"{self.where}: row {self.first + int(rows.argmax())}, {names}: {what}")

    def _wrong(self, name: str, rows: NDArray[np.bool_], what: str, remedy: str) -> WrongUse:
        row = self.first + int(rows.argmax())
        return WrongUse(f"{self.where}: row {row}, column {name} {what}. {remedy}")

    def _parsed(self, name: str, words: pl.Series) -> pa.Array:
        """Numbers from text; an empty cell is null."""
        words = words.str.strip_chars()
        numbers = words.cast(pl.Float64, strict=False)
        wrong = (numbers.is_null() & (words != "")).to_numpy()
        if wrong.any():
            raise self._wrong(name, wrong, f"is {words[int(wrong.argmax())]!r}", "Write a number.")
        return numbers.to_arrow()


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind))
