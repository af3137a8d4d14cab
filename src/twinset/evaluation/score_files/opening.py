"""Opens a table of scores, of ours or of anyone's, and reads the columns asked for; writes ours."""

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from pydantic import TypeAdapter, ValidationError

from twinset.contracts.errors import WrongUse
from twinset.evaluation.score_files.batch import Batch
from twinset.shards.storage.parquet_reader import batches
from twinset.shards.storage.whole_file import whole_file

ROWS = 16_384  # read at a time
_LARGEST = 256 << 20  # bytes of a row of CSV
_ROW = "\x1frow"  # no column of a file
_METADATA = b"twinset"
_OBJECT = TypeAdapter(dict[str, Any])
_DELIMITER = {"csv": ",", "tsv": "\t"}


@dataclass(frozen=True)
class ScoreFile:
    """A table of scores: of ours, or of anyone's.

    where: for messages. names: of its columns. about: what our own score files say of themselves, else empty.
    """

    where: str
    names: tuple[str, ...]
    about: Mapping[str, Any]
    _source: pa.Table | Path
    _format: str

    def read(self, names: Sequence[str]) -> Batch:
        """The named columns; raises `WrongUse` for a column that is not there, no rows, and for a broken file."""
        names = list(dict.fromkeys(names))
        for name in names:
            self.require(name, "")
        try:
            table = self._read(names).unify_dictionaries().combine_chunks()
            table.validate(full=True)  # a dictionary's numbers may be damaged
        except (pa.ArrowException, OSError) as error:
            raise WrongUse(f"{self.where}: cannot be read, copy or write it again: {_first_line(error)}") from error
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
        if self._format == "parquet":
            rows = [*batches(self._source, names, ROWS)]
            return pa.Table.from_batches(rows) if rows else pa.table({name: [] for name in names})
        # All as text: types guessed from the first rows would be wrong for a later one.
        convert = pa.csv.ConvertOptions(
            column_types={name: pa.string() for name in names}, include_columns=names, strings_can_be_null=False
        )
        # Captions have line breaks. An empty line of a file with one column is a row without a value.
        parse = pa.csv.ParseOptions(
            delimiter=_DELIMITER[self._format], newlines_in_values=True, ignore_empty_lines=len(self.names) > 1
        )
        read = pa.csv.ReadOptions(block_size=min(self._source.stat().st_size + 1, _LARGEST))
        return pa.csv.read_csv(self._source, read, parse, convert)


def open_scores(source: pa.Table | str | Path) -> ScoreFile:
    """Open a table of scores.

    Args:
        source: a table; or a Parquet file, or CSV (UTF-8, with a header; ``.tsv`` with tabs).

    Raises:
        WrongUse: no such file, or one that is neither Parquet nor CSV.
    """
    if isinstance(source, pa.Table):
        return ScoreFile("table", tuple(source.column_names), _about(source.schema, "table"), source, "parquet")
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
            raise WrongUse(f"{where}: broken Parquet, copy or write it again: {_first_line(error)}") from error
        return ScoreFile(where, tuple(schema.names), _about(schema, where), path, "parquet")
    if path.suffix.lower() in (".parquet", ".pq") or b"\0" in head or head.lstrip()[:1] in (b"{", b"["):
        raise WrongUse(f"{where}: neither Parquet nor CSV; write scores into it as one of them, CSV in UTF-8")
    kind = "tsv" if path.suffix.lower() == ".tsv" else "csv"
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:  # Excel begins a file with a byte order mark
            names = next(csv.reader(lines, delimiter=_DELIMITER[kind]), [])
    except (UnicodeDecodeError, csv.Error) as error:
        raise WrongUse(f"{where}: neither Parquet nor CSV in UTF-8: {error}") from error
    return ScoreFile(where, tuple(names), {}, path, kind)


def _about(schema: pa.Schema, where: str) -> dict[str, Any]:
    try:
        return _OBJECT.validate_json((schema.metadata or {}).get(_METADATA, b"{}"))
    except ValidationError as error:
        raise WrongUse(f"{where}: its metadata 'twinset' is not a JSON object; write the file again") from error


def save_scores(table: pa.Table, about: Mapping[str, Any], path: Path) -> None:
    """Write a table of scores whole, with what it says of itself."""
    with whole_file(path) as unfinished:
        pq.write_table(table.replace_schema_metadata({_METADATA: json.dumps(about, sort_keys=True)}), unfinished)


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]
