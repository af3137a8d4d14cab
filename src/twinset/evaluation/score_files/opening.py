"""Opens a table of scores, of ours or of anyone's, and reads the columns asked for; writes ours."""

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

from twinset.contracts.errors import WrongUse
from twinset.shards.storage.parquet_reader import batches
from twinset.shards.storage.whole_file import whole_file

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
_GREATEST = 1e37  # of a score: sums of four fit into float32
_TRUE, _FALSE = ("true", "1", "1.0", "yes", "t", "y"), ("false", "0", "0.0", "no", "f", "n")
ROWS = 16_384  # read at a time
_LARGEST = 256 << 20  # bytes of a row of CSV
_ROW = "\x1frow"  # no column of a file
_METADATA = b"twinset"


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
            words = pl.Series(column).str.strip_chars()
            parsed = words.cast(pl.Float64, strict=False)
            wrong = (parsed.is_null() & (words.fill_null("") != "")).to_numpy()
            self._refuse(wrong, f"column {name} is {words[int(wrong.argmax())]!r}. Write a number.")
            column = parsed.to_arrow()
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

    def as_stored(self, name: str, number: float) -> float:
        """A number as a column has it: 0.3 is another one in float32."""
        kind = self.columns[name].type
        return float(kind.to_pandas_dtype()(number)) if pa.types.is_floating(kind) else number

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


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind))


@dataclass(frozen=True)
class ScoreFile:
    """A table of scores: of ours, or of anyone's.

    where: for messages. names: of its columns. about: what our own score files say of themselves, else empty.
    """

    where: str
    names: tuple[str, ...]
    about: Mapping[str, Any]
    _source: pa.Table | Path
    _delimiter: str = ""  # of CSV

    def read(self, names: Sequence[str]) -> Batch:
        """The named columns; raises `WrongUse` for a column that is not there, no rows, and for a broken file."""
        names = list(dict.fromkeys(names))
        for name in names:
            self.require(name, "")
        try:
            table = self._read(names).unify_dictionaries().combine_chunks()
            table.validate(full=True)  # a dictionary's numbers may be damaged
        except (pa.ArrowException, OSError) as error:
            raise WrongUse(f"{self.where}: cannot be read, copy or write it again: {str(error)[:500]}") from error
        if not table.num_rows:
            raise WrongUse(f"{self.where}: no rows; write a row for each example")
        return Batch(self.where, {name: table[name].combine_chunks() for name in names})

    @property
    def listed(self) -> str:
        """Its columns for messages; of very many the first."""
        return ", ".join(self.names[:20]) + (", …" if len(self.names) > 20 else "")

    def require(self, name: str, asked_by: str) -> None:
        """Raise `WrongUse` unless there is exactly one column of this name; asked_by: option that names it, or ""."""
        asked = f" for {asked_by}" if asked_by else ""
        if name not in self.names:
            raise WrongUse(f"{self.where}: no column {name!r}{asked}; it has {self.listed}")
        if self.names.count(name) > 1:
            raise WrongUse(f"{self.where}: several columns {name!r}{asked}; give them different names")

    def refuse_repeats(self, names: Sequence[str], remedy: str) -> None:
        """Raise `WrongUse` where two rows have the same values in columns that are the key of a row."""
        columns = self.read(names)
        keys = pl.DataFrame({name: pl.Series(columns.texts(name)) for name in names})
        rows = keys.with_row_index(_ROW, 1).group_by(names, maintain_order=True).agg(_ROW)
        repeated = rows.filter(pl.col(_ROW).list.len() > 1)
        if len(repeated):
            *values, (first, second, *_) = repeated.row(0)
            what = f"rows {first} and {second} have the same {', '.join(names)}, {' / '.join(values)!r}"
            raise WrongUse(f"{self.where}: {what} (repeated rows: {len(keys) - len(rows):,}); {remedy}")

    def _read(self, names: list[str]) -> pa.Table:
        if isinstance(self._source, pa.Table):
            return self._source.select(names)
        if not self._delimiter:
            rows = [*batches(self._source, names, ROWS)]
            return pa.Table.from_batches(rows) if rows else pa.table({name: [] for name in names})
        # All as text: types guessed from the first rows would be wrong for a later one.
        convert = pa.csv.ConvertOptions(
            column_types={name: pa.string() for name in names}, include_columns=names, strings_can_be_null=False
        )
        # Captions have line breaks. An empty line of a file with one column is a row without a value.
        parse = pa.csv.ParseOptions(
            delimiter=self._delimiter, newlines_in_values=True, ignore_empty_lines=len(self.names) > 1
        )
        read = pa.csv.ReadOptions(block_size=min(self._source.stat().st_size + 1, _LARGEST))
        return pa.csv.read_csv(self._source, read, parse, convert)


def open_scores(source: pa.Table | str | Path) -> ScoreFile:
    """Open a table of scores: a Parquet file, or CSV (UTF-8, with a header; ``.tsv`` with tabs). Raises `WrongUse`: no
    such file, or one that is neither.
    """
    if isinstance(source, pa.Table):
        return ScoreFile("table", tuple(source.column_names), _about(source.schema, "table"), source)
    path, where = Path(source), str(source)
    try:
        with path.open("rb") as stream:
            head = stream.read(4096)
    except OSError as error:
        raise WrongUse(f"{where}: {str(error.strerror).lower()}; name a Parquet or CSV file") from error
    if not head:
        raise WrongUse(f"{where}: empty file; write scores into it as Parquet or CSV")
    if head.startswith(b"PAR1"):
        try:
            schema = pq.read_schema(path)
        except (pa.ArrowException, OSError) as error:
            raise WrongUse(f"{where}: broken Parquet, copy or write it again: {error}") from error
        return ScoreFile(where, tuple(schema.names), _about(schema, where), path)
    if path.suffix.lower() in (".parquet", ".pq") or b"\0" in head or head.lstrip()[:1] in (b"{", b"["):
        raise WrongUse(f"{where}: neither Parquet nor CSV; write scores into it as one of them, CSV in UTF-8")
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:  # Excel begins a file with a byte order mark
            names = next(csv.reader(lines, delimiter=delimiter), [])
    except (UnicodeDecodeError, csv.Error) as error:
        raise WrongUse(f"{where}: neither Parquet nor CSV in UTF-8: {error}") from error
    return ScoreFile(where, tuple(names), {}, path, delimiter)


def _about(schema: pa.Schema, where: str) -> dict[str, Any]:
    try:
        return TypeAdapter(dict[str, Any]).validate_json((schema.metadata or {}).get(_METADATA, b"{}"))
    except ValidationError as error:
        raise WrongUse(f"{where}: its metadata 'twinset' is not a JSON object; write the file again") from error


def wide_enough(schema: pa.Schema, numbers: Floats) -> pa.Schema:
    """A schema, in float64 where it has float32 and that would make equal what is not."""
    if len(np.unique(numbers.astype(np.float32))) == len(np.unique(numbers)):
        return schema
    return pa.schema([field.with_type(pa.float64()) if field.type == pa.float32() else field for field in schema])


def save_scores(table: pa.Table, about: Mapping[str, Any], path: Path) -> None:
    """Write a table of scores whole, with what it says of itself."""
    with whole_file(path) as unfinished:
        pq.write_table(table.replace_schema_metadata({_METADATA: json.dumps(about, sort_keys=True)}), unfinished)
