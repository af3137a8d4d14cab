"""The verdict on every candidate, one row each: what was kept, what was rejected, by whom and why."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from manifests.canonical import digest
from manifests.parquet import read_parquet
from shards.samples import Source

KEPT, REJECTED = "kept", "rejected"
DUPLICATE = "duplicate"

_SOURCE = pa.struct([("path", pa.string()), ("size", pa.int64()), ("sha256", pa.string())])
SCHEMA = pa.schema(
    [
        ("key", pa.string()),
        ("group", pa.string()),
        ("split", pa.string()),
        ("verdict", pa.string()),
        ("filter", pa.string()),
        ("reason", pa.string()),
        ("score", pa.float64()),
        ("detail", pa.string()),
        ("caption0", pa.string()),
        ("caption1", pa.string()),
        ("image0_sha256", pa.string()),
        ("image1_sha256", pa.string()),
        ("content", pa.string()),
        ("sources", pa.list_(_SOURCE)),
    ]
)


@dataclass(slots=True, kw_only=True)
class Row:
    """Verdict on one candidate.

    filter: kind of the filter that rejected it; ``generator`` when it could not be made; empty when kept.
    content: digest of images and captions; two samples of one content are duplicates. Empty when nothing was made.
    """

    key: str
    group: str
    split: str
    verdict: str
    filter: str = ""
    reason: str = ""
    score: float | None = None
    detail: str = ""
    caption0: str = ""
    caption1: str = ""
    image0_sha256: str = ""
    image1_sha256: str = ""
    content: str = ""
    sources: tuple[Source, ...] = field(default=())


def content_digest(images: tuple[str, str], captions: tuple[str, str]) -> str:
    """The same for a pair and its mirror image: it is the same question."""
    return digest(sorted(zip(images, captions, strict=True)))


def write_rows(rows: Iterable[Row], path: Path) -> None:
    """Write rows as Parquet, with bytes that depend on the rows alone."""
    table = pa.Table.from_pylist([_to_dict(row) for row in rows], SCHEMA)
    pq.write_table(table, path, compression="zstd", store_schema=False, write_statistics=False)


def read_rows(stream: BinaryIO) -> list[Row]:
    """Rows of one shard, in plan order."""
    found: list[dict[str, Any]] = read_parquet(stream).to_pylist()
    return [Row(**{**row, "sources": tuple(Source(**one) for one in row["sources"])}) for row in found]


def _to_dict(row: Row) -> dict[str, Any]:
    values = {name: getattr(row, name) for name in SCHEMA.names}
    values["sources"] = [{"path": one.path, "size": one.size, "sha256": one.sha256} for one in row.sources]
    return values
