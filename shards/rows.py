"""The verdict on every candidate, one row each: what was kept, what was rejected, by whom and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from manifests.parquet import read_parquet
from shards.kinds.kind import SampleKind
from shards.kinds.registry import KINDS
from shards.kinds.samples import Source

KEPT, REJECTED = "kept", "rejected"
DUPLICATE = "duplicate"

_SOURCE = pa.struct([("path", pa.string()), ("size", pa.int64()), ("sha256", pa.string())])
#: Columns of every row, of samples and of tables.
JUDGED = pa.schema(
    [
        ("key", pa.string()),
        ("identity", pa.string()),
        ("group", pa.string()),
        ("split", pa.string()),
        ("verdict", pa.string()),
        ("filter", pa.string()),
        ("reason", pa.string()),
        ("score", pa.float64()),
        ("detail", pa.string()),
    ]
)
_LAST = pa.schema([("content", pa.string()), ("sources", pa.list_(_SOURCE))])


@dataclass(slots=True, kw_only=True)
class Row:
    """Verdict on one candidate for a sample.

    identity: of the candidate, what its key was made from. filter: kind of the filter that rejected it; ``generator``
    when it could not be made; empty when kept.
    words: by column (`shards.kinds.kind.SampleKind.described`). images: sha256 of the encoded ones, by role.
    content: digest of images and words; two samples of one content are duplicates. Empty when nothing was made.
    """

    kind: SampleKind
    key: str
    identity: str = ""
    group: str
    split: str
    verdict: str
    filter: str = ""
    reason: str = ""
    score: float | None = None
    detail: str = ""
    words: dict[str, str] = field(default_factory=dict)
    images: dict[str, str] = field(default_factory=dict)
    content: str = ""
    sources: tuple[Source, ...] = ()


def schema_of(kind: SampleKind) -> pa.Schema:
    """Columns of the rows of a kind of samples."""
    own = pa.schema([(name, pa.string()) for name in (*kind.described, *kind.hashed)])
    return pa.schema([*JUDGED, *own, *_LAST])


def write_rows(rows: Sequence[Row], path: Path) -> None:
    """Write the rows of a shard, at least one, as Parquet with bytes that depend on the rows alone."""
    kind = rows[0].kind
    columns: dict[str, list[Any]] = {name: [getattr(row, name) for row in rows] for name in (*JUDGED.names, "content")}
    columns |= {name: [row.words.get(name, "") for row in rows] for name in kind.described}
    columns |= {f"{role}_sha256": [row.images.get(role, "") for row in rows] for role in kind.images}
    columns["sources"] = [
        [{"path": one.path, "size": one.size, "sha256": one.sha256} for one in row.sources] for row in rows
    ]
    write_columns(columns, schema_of(kind), path)


def write_columns(columns: dict[str, list[Any]], schema: pa.Schema, path: Path) -> None:
    """Write columns as Parquet without statistics, whose bytes depend on the library that computes them."""
    table = pa.table([pa.array(columns[one.name], one.type) for one in schema], schema)
    # A file that pyarrow opens by its name stays open for as long as the error of a full disk lives.
    with path.open("wb") as stream:
        pq.write_table(table, stream, compression="zstd", store_schema=False, write_statistics=False)


def read_rows(stream: BinaryIO) -> list[Row]:
    """Rows of one shard, in plan order.

    Raises:
        ValueError: the columns are of no kind of samples.
    """
    table = read_parquet(stream)
    kind = next((kind for kind in KINDS.values() if table.schema.names == schema_of(kind).names), None)
    if kind is None:
        raise ValueError(f"columns {', '.join(table.schema.names)} are of no kind of samples")
    found: list[dict[str, Any]] = table.to_pylist()
    return [_from_dict(kind, row) for row in found]


def _from_dict(kind: SampleKind, values: dict[str, Any]) -> Row:
    return Row(
        kind=kind,
        **{name: values[name] for name in (*JUDGED.names, "content")},
        words={name: values[name] for name in kind.described},
        images={role: values[f"{role}_sha256"] for role in kind.images if values[f"{role}_sha256"]},
        sources=tuple(Source(**one) for one in values["sources"]),
    )
