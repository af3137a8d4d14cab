"""Records of a file one by one, whatever it is: a JSON list, JSON lines or Parquet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from twinset.generators.annotation_files import LINE_REASONS, Skipped, read_json, read_json_lines
from twinset.manifests.errors import WrongUse

Record = Mapping[str, Any] | Skipped
RECORD_REASONS = {**LINE_REASONS, "not-an-object": "records that are not objects with named fields"}


def read_records(path: Path, fields: tuple[str, ...]) -> Iterator[tuple[str, Record]]:
    """Place and fields of each record, in order; a record that is not one gives a `Skipped`.

    Args:
        path: ``.json`` with a list of objects, which is held whole; ``.jsonl`` or ``.ndjson``, also with ``.gz``;
            ``.parquet``. The last two are streamed.
        fields: that are asked for. Other columns of Parquet are not read.

    Raises:
        WrongUse: the file is of another kind, cannot be read, or lacks a column.
    """
    suffix = Path(path.name.removesuffix(".gz")).suffix.lower()
    records: Iterable[tuple[int, Any]]
    if suffix == ".parquet":
        records, noun = enumerate(_rows(path, fields), 1), "row"
    elif suffix == ".json":
        whole = read_json(path)
        if not isinstance(whole, list):
            raise WrongUse(f"{path}: not a JSON list of objects; write one, or JSON lines, or Parquet")
        records, noun = enumerate(whole, 1), "record"
    elif suffix in (".jsonl", ".ndjson"):
        records, noun = read_json_lines(path), "line"
    else:
        raise WrongUse(f"{path}: annotations are .json, .jsonl or .parquet, not {suffix or 'without a suffix'}")
    for number, value in records:
        place = f"{path.name} {noun} {number}"
        yield place, value if isinstance(value, dict | Skipped) else Skipped(place, "not-an-object")


def _rows(path: Path, fields: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    try:
        with pq.ParquetFile(path, pre_buffer=False) as file:
            missing = [name for name in fields if name not in file.schema_arrow.names]
            if missing:
                there = ", ".join(file.schema_arrow.names)[:200]
                raise WrongUse(f"{path}: no column {missing[0]!r} (it has {there}); name it with source.fields")
            for batch in file.iter_batches(columns=list(fields), use_threads=False):
                yield from batch.to_pylist()
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        raise WrongUse(f"{path}: not a Parquet file that can be read ({error}); fetch or write it again") from error
