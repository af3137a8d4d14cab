"""Some rows of a table of scores, each column as what it has to be; what is not that is an error with its row."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
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
            column = self._parsed(name, pc.utf8_trim_whitespace(column))
        elif not (_is_number(column.type) or pa.types.is_null(column.type)):
            raise WrongUse(f"{self.where}: column {name} is {column.type}; write numbers into it")
        null = np.asarray(column.is_null())
        if null.any() and not nullable:
            raise self._wrong(name, null, "has no number", "Fill it in, or leave the row out and say so.")
        found = np.asarray(pc.fill_null(column.cast(pa.float64(), safe=False), np.nan), np.float64)
        wrong = ~(np.abs(found) < _GREATEST) & ~null  # NaN compares as false
        if wrong.any():
            what = f"is {found[wrong.argmax()]}"
            raise self._wrong(name, wrong, what, "Score the row again in float32, or leave it out and say so.")
        return found

    def counts(self, name: str) -> NDArray[np.int64]:
        """A column of integers, 0 or more."""
        found = self.numbers(name)
        wrong = (found < 0) | (found != np.floor(found)) | (found >= 2**31)
        if wrong.any():
            raise self._wrong(name, wrong, f"is {found[wrong.argmax()]:g}", "Write a count, 0 or more.")
        return found.astype(np.int64)

    def flags(self, name: str) -> NDArray[np.bool_]:
        """A column of outcomes: booleans, 0 and 1, or such words as ``True`` and ``no`` in any case."""
        column = self.columns[name]
        if pa.types.is_boolean(column.type) and not column.null_count:
            return np.asarray(column)
        if pa.types.is_floating(column.type) or pa.types.is_integer(column.type):
            words = pc.cast(column, pa.float64()).cast(pa.string())
        elif _is_text(column.type):
            words = pc.utf8_lower(pc.utf8_trim_whitespace(pc.cast(column, pa.string())))
        elif pa.types.is_boolean(column.type) or pa.types.is_null(column.type):
            words = pc.cast(column, pa.string())
        else:
            raise WrongUse(f"{self.where}: column {name} is {column.type}; write True or False into it")
        words = pc.fill_null(words, "")
        true = np.asarray(pc.is_in(words, value_set=pa.array(_TRUE)))
        wrong = ~(true | np.asarray(pc.is_in(words, value_set=pa.array(_FALSE))))
        if wrong.any():
            value = column[int(wrong.argmax())].as_py()
            what = "has no outcome" if value in (None, "") else f"is {value!r}"
            raise self._wrong(name, wrong, what, "Write True or False, or 1 or 0.")
        return true

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
        if not (pa.types.is_list(column.type) or pa.types.is_large_list(column.type)):
            raise WrongUse(f"{self.where}: column {name} is {column.type}; write lists of numbers into it, as Parquet")
        if not _is_number(column.type.value_type):
            raise WrongUse(f"{self.where}: column {name} is {column.type}; write lists of numbers into it")
        lengths = np.asarray(pc.fill_null(pc.list_value_length(column), 0), np.int64)
        if (lengths == 0).any():
            raise self._wrong(name, lengths == 0, "is empty", "Write one number or more, or leave the row out.")
        begins = np.concatenate([[0], lengths.cumsum()[:-1]])
        values = np.asarray(pc.fill_null(column.flatten().cast(pa.float64()), np.nan), np.float64)
        wrong = ~np.isfinite(values) | (values < 0)
        if wrong.any():
            rows = np.repeat(np.arange(len(column)), lengths)
            what = f"has {values[wrong.argmax()]}"
            raise self._wrong(name, np.isin(np.arange(len(column)), rows[wrong]), what, "Write seconds, 0 or more.")
        return values, begins

    def wrong(self, names: str, rows: NDArray[np.bool_], what: str) -> WrongUse:
        """The error for the first of some rows."""
        return WrongUse(f"{self.where}: row {self.first + int(rows.argmax())}, {names}: {what}")

    def _wrong(self, name: str, rows: NDArray[np.bool_], what: str, remedy: str) -> WrongUse:
        row = self.first + int(rows.argmax())
        return WrongUse(f"{self.where}: row {row}, column {name} {what}. {remedy}")

    def _parsed(self, name: str, words: pa.Array) -> pa.Array:
        """Numbers from text; an empty cell is null."""
        words = pc.if_else(pc.equal(words, ""), pa.scalar(None, pa.string()), words)
        try:
            return words.cast(pa.float64())
        except pa.ArrowInvalid:
            for row, word in enumerate(words.to_pylist()):
                try:
                    float(word or 0)
                    other = bool(word) and ("_" in word or not word.isascii())  # 1_000 is Python's, and nobody else's
                except ValueError:
                    other = True
                if other:
                    message = f"{self.where}: row {self.first + row}, column {name} is {word!r}. Write a number."
                    raise WrongUse(message) from None
            return pa.array([None if word is None else float(word) for word in words.to_pylist()], pa.float64())


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind))


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return _is_text(kind.value_type)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))
