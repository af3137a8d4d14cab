"""The verdict on every candidate, one row each: what was kept, what was rejected, by whom and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from manifests.canonical import digest
from manifests.parquet import read_parquet
from shards.kinds.names import KINDS, PAIR, SampleKind
from shards.kinds.samples import Pair, Sample, Source

KEPT, REJECTED = "kept", "rejected"
DUPLICATE = "duplicate"

_SOURCE = pa.struct([("path", pa.string()), ("size", pa.int64()), ("sha256", pa.string())])
_FIRST = pa.schema(
    [
        ("key", pa.string()),
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
    """Verdict on one candidate.

    filter: kind of the filter that rejected it; ``generator`` when it could not be made; empty when kept.
    words: by column (`shards.kinds.names.SampleKind.described`). images: sha256 of the encoded ones, by role.
    content: digest of images and words; two samples of one content are duplicates. Empty when nothing was made.
    """

    kind: SampleKind = PAIR
    key: str
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
    sources: tuple[Source, ...] = field(default=())


def schema_of(kind: SampleKind) -> pa.Schema:
    """Columns of the rows of a kind of samples."""
    told = pa.schema([(name, pa.string()) for name in (*kind.described, *kind.hashed)])
    return pa.schema([*_FIRST, *told, *_LAST])


def content_digest(sample: Sample, images: Mapping[str, str]) -> str:
    """The same for two samples that ask the same question, such as a pair and its mirror image.

    images: sha256 by role; without any, a sample is told by its words.
    """
    words = sample.described()
    if isinstance(sample, Pair):
        return digest(sorted(zip(images.values(), words.values(), strict=True)))
    # Captions and ids may differ where images and condition do not: then it is the same question.
    return digest([sample.kind.name, {"condition": sample.condition} if images else words, dict(images)])


def write_rows(rows: Iterable[Row], path: Path) -> None:
    """Write the rows of a shard as Parquet, with bytes that depend on the rows alone."""
    rows = list(rows)
    table = pa.Table.from_pylist([_to_dict(row) for row in rows], schema_of(rows[0].kind if rows else PAIR))
    pq.write_table(table, path, compression="zstd", store_schema=False, write_statistics=False)


def read_rows(stream: BinaryIO) -> list[Row]:
    """Rows of one shard, in plan order. Raises ValueError when they are of no kind of samples."""
    table = read_parquet(stream)
    kind = next((kind for kind in KINDS if set(table.schema.names) == set(schema_of(kind).names)), None)
    if kind is None:
        raise ValueError(f"columns {', '.join(table.schema.names)} are of no kind of samples")
    found: list[dict[str, Any]] = table.to_pylist()
    return [_from_dict(kind, row) for row in found]


def _to_dict(row: Row) -> dict[str, Any]:
    values: dict[str, Any] = {name: getattr(row, name) for name in (*_FIRST.names, "content")}
    values |= {name: row.words.get(name, "") for name in row.kind.described}
    values |= {f"{role}_sha256": row.images.get(role, "") for role in row.kind.images}
    values["sources"] = [{"path": one.path, "size": one.size, "sha256": one.sha256} for one in row.sources]
    return values


def _from_dict(kind: SampleKind, values: dict[str, Any]) -> Row:
    return Row(
        kind=kind,
        **{name: values[name] for name in (*_FIRST.names, "content")},
        words={name: values[name] for name in kind.described},
        images={role: values[f"{role}_sha256"] for role in kind.images if values[f"{role}_sha256"]},
        sources=tuple(Source(**one) for one in values["sources"]),
    )
