"""Rows of a table stage: the verdict on every candidate, with the columns that its generator names."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa

from shards.kinds.samples import TableRows
from shards.rows import JUDGED, Judged, write_columns


def table_schema(columns: pa.Schema) -> pa.Schema:
    """Columns of the rows of a table. columns: the generator's own, which are null where a candidate was rejected.

    Raises:
        ValueError: the generator has a column of a name that every row has.
    """
    if taken := sorted({*columns.names} & {*JUDGED.names}):
        raise ValueError(f"a table has a column {taken[0]!r} of its own; rename the generator's")
    return pa.schema([*JUDGED, *(pa.field(one.name, one.type) for one in columns)])


def write_table_rows(made: Iterable[tuple[Judged, TableRows | None]], columns: pa.Schema, path: Path) -> None:
    """Write the rows of a shard as Parquet with bytes that depend on the rows alone.

    Args:
        made: each candidate's verdict with its rows, which are one row each; None, for a rejected one, is one row too.
        columns: the generator's own.
        path: of the new file.

    Raises:
        ValueError: a kept candidate has no rows.
        pyarrow.ArrowException: a value does not fit its column.
    """
    schema = table_schema(columns)
    found: dict[str, list[Any]] = {name: [] for name in schema.names}
    own = [(name, found[name]) for name in columns.names]
    for judged, result in made:
        rows = [{}] if result is None else result.rows
        if not rows:
            raise ValueError(f"{judged.key}: kept without any row; its generator must give rows, or reject it")
        for name in JUDGED.names:
            found[name] += [getattr(judged, name)] * len(rows)
        for name, values in own:
            values += [row.get(name) for row in rows]
    write_columns(found, schema, path)
