"""Columns of a table of scores, each as what it has to be; what is not that is an error with its row."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from twinset.contracts.errors import WrongUse

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
_GREATEST = 1e37  # of a score: sums of four fit into float32
_TRUE, _FALSE = ("true", "1", "1.0", "yes", "t", "y"), ("false", "0", "0.0", "no", "f", "n")


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows of a table. where: file, for messages, which count rows from 1, without a CSV's header."""

    where: str
    columns: Mapping[str, pa.Array]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def numbers(self, name: str, nullable: bool = False) -> Floats:
        """A column of finite numbers, or of text that is read as such; NaN stands for null, where that may be.

        Numbers are compared as the file has them: float16 and float32 are exact in float64, and nothing is rounded.
        """
        column = self.columns[name]
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            column = self._parsed(name, pl.Series(column).str.strip_chars())
        elif not (_is_number(column.type) or pa.types.is_null(column.type)):
            raise WrongUse(f"{self.where}: column {name} is {column.type}; write numbers into it")
        null = np.asarray(column.is_null())
        if not nullable:
            self._refuse(null, f"column {name} has no number. Fill it in, or leave the row out and say so.")
        values = np.asarray(pc.fill_null(column.cast(pa.float64(), safe=False), np.nan), np.float64)
        wrong = ~(np.abs(values) < _GREATEST) & ~null  # NaN compares as false
        value = values[wrong.argmax()]
        self._refuse(wrong, f"column {name} is {value}. Score the row again in float32, or leave it out and say so.")
        return values

    def counts(self, name: str) -> NDArray[np.int64]:
        """A column of integers, 0 or more."""
        values = self.numbers(name)
        wrong = (values < 0) | (values != np.floor(values)) | (values >= 2**31)
        self._refuse(wrong, f"column {name} is {values[wrong.argmax()]:g}. Write a count, 0 or more.")
        return values.astype(np.int64)

    def flags(self, name: str) -> Flags:
        """A column of outcomes: booleans, 0 and 1, or such words as ``True`` and ``no`` in any case."""
        column = self.columns[name]
        if pa.types.is_nested(column.type):
            raise WrongUse(f"{self.where}: column {name} is {column.type}; write True or False into it")
        words = pl.Series(column).cast(pl.String).fill_null("").str.strip_chars().str.to_lowercase()
        true = words.is_in(_TRUE).to_numpy()
        wrong = ~(true | words.is_in(_FALSE).to_numpy())
        self._refuse(wrong, f"column {name} is {words[int(wrong.argmax())]!r}. Write True or False, or 1 or 0.")
        return np.asarray(true, np.bool_)

    def texts(self, name: str, empty: bool = True) -> pa.Array:
        """A column as text, none of it null; ``empty`` tells whether it may be empty."""
        column = self.columns[name]
        try:
            column = column.cast(pa.string())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise WrongUse(f"{self.where}: column {name} is {column.type}; write text into it") from error
        wrong = column.is_null() if empty else pc.fill_null(pc.equal(column, ""), True)
        self._refuse(np.asarray(wrong), f"column {name} is empty. Fill it in, or name another column.")
        return column

    def lists(self, name: str) -> tuple[Floats, NDArray[np.int64]]:
        """A column of lists of numbers, 0 or more, none empty: all numbers, and where each row's begin in them."""
        column = self.columns[name]
        is_list = pa.types.is_list(column.type) or pa.types.is_large_list(column.type)
        if not is_list or not _is_number(column.type.value_type):
            raise WrongUse(f"{self.where}: column {name} is {column.type}; write lists of numbers into it, as Parquet")
        lengths = np.asarray(pc.fill_null(pc.list_value_length(column), 0), np.int64)
        self._refuse(lengths == 0, f"column {name} is empty. Write one number or more, or leave the row out.")
        values = np.asarray(pc.fill_null(column.flatten().cast(pa.float64()), np.nan), np.float64)
        begins = lengths.cumsum() - lengths
        wrong = np.logical_or.reduceat(~np.isfinite(values) | (values < 0), begins)
        self._refuse(wrong, f"column {name} has a number that is none, or negative. Write seconds, 0 or more.")
        return values, begins

    def wrong(self, names: str, rows: Flags, what: str) -> WrongUse:
        """The error for the first of some rows."""
        return WrongUse(f"{self.where}: row {1 + int(rows.argmax())}, {names}: {what}")

    def _refuse(self, rows: Flags, message: str) -> None:
        if rows.any():
            raise WrongUse(f"{self.where}: row {1 + int(rows.argmax())}, {message}")

    def _parsed(self, name: str, words: pl.Series) -> pa.Array:
        """Numbers from text; an empty cell is null."""
        numbers = words.cast(pl.Float64, strict=False)
        wrong = (numbers.is_null() & (words != "").fill_null(False)).to_numpy()
        self._refuse(wrong, f"column {name} is {words[int(wrong.argmax())]!r}. Write a number.")
        return numbers.to_arrow()


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind))
