"""Rows of a table stage: the verdict on every candidate, with the columns that its generator names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from manifests.candidate import Candidate
from shards.kinds.samples import Rejected, TableRows
from shards.rows import JUDGED, KEPT, REJECTED, write_columns


def table_schema(columns: pa.Schema) -> pa.Schema:
    """Columns of the rows of a table. columns: the generator's own, which are null where a candidate was rejected.

    Raises:
        ValueError: the generator has a column of a name that every row has.
    """
    if taken := sorted({*columns.names} & {*JUDGED.names}):
        raise ValueError(f"a table has a column {taken[0]!r} of its own; rename the generator's")
    return pa.schema([*JUDGED, *(pa.field(one.name, one.type) for one in columns)])


def write_table_rows(results: Iterable[tuple[Candidate, TableRows | Rejected]], columns: pa.Schema, path: Path) -> None:
    """Write the rows of a shard as Parquet with bytes that depend on the rows alone.

    Args:
        results: candidates in plan order with what was made of them: several rows each, or one that says why not.
        columns: the generator's own.
        path: of the new file.

    Raises:
        ValueError: a generator gave no rows for a candidate that it did not reject.
        pyarrow.ArrowException: a value does not fit its column.
    """
    schema = table_schema(columns)
    found: dict[str, list[Any]] = {name: [] for name in schema.names}
    same = [(name, found[name]) for name in ("key", "identity", "group", "split")]
    own = [(name, found[name]) for name in columns.names]
    for candidate, made in results:
        rows: Sequence[Mapping[str, Any]] = [{}]
        verdict = (KEPT, "", "", "")
        if isinstance(made, TableRows):
            rows = made.rows
        else:
            verdict = (REJECTED, "generator", made.reason, made.detail)
        if not rows:
            raise ValueError(f"{candidate.key}: a candidate of a table gave no row; its generator must reject it")
        for name, values in same:
            values += [getattr(candidate, name)] * len(rows)
        for name, value in zip(("verdict", "filter", "reason", "detail"), verdict, strict=True):
            found[name] += [value] * len(rows)
        for name, values in own:
            values += [row.get(name) for row in rows]
    found["score"] = [None] * len(found["key"])
    write_columns(found, schema, path)
