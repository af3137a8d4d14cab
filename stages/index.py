"""The index of a finished subset: Parquet files of what was kept and of what was rejected, and the sizes of tars."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cards.summary import IndexSummary
from manifests.canonical import canonical_json
from manifests.errors import BuildFailed
from manifests.parquet import parquet_rows, read_parquet
from manifests.receipt import Receipt
from shards import rows
from shards.kinds.names import PAIR, SampleKind
from shards.read import read_receipts
from shards.storage import layout
from shards.storage.store import Store

ROW_GROUP = 65_536  # rows that memory holds, whatever the number of candidates

_REJECTED = ("key", "split", "group", "filter", "reason", "score", "detail")


def index_schema(kind: SampleKind) -> pa.Schema:
    """Columns of ``index.parquet``. tar: below the subset; empty where a sample has no images."""
    schema = rows.schema_of(kind)
    kept = ("split", "group", *kind.described, *kind.hashed, "content", "sources")
    return pa.schema([schema.field("key"), ("tar", pa.string()), *(schema.field(name) for name in kept)])


def rejections_schema(kind: SampleKind) -> pa.Schema:
    """Columns of ``rejections.parquet``."""
    schema = rows.schema_of(kind)
    return pa.schema([schema.field(name) for name in (*_REJECTED, *kind.described)])


def write_index(store: Store, subset: str, kind: SampleKind = PAIR) -> IndexSummary:
    """Write ``index.parquet``, ``rejections.parquet`` and ``sizes.json`` from the rows of all finished shards.

    The bytes depend on the rows alone. Raises BuildFailed when rows and receipt of a shard disagree.
    """
    receipts = read_receipts(store, subset)
    kept_by_split: Counter[str] = Counter()
    by_filter: defaultdict[str, Counter[str]] = defaultdict(Counter)
    tars: dict[str, int] = {}
    images: set[str] = set()
    with store.spool() as spool:
        index_file, rejections_file = spool / "index", spool / "rejections"
        with (
            _Streamed(index_file, index_schema(kind)) as index,
            _Streamed(rejections_file, rejections_schema(kind)) as rejections,
        ):
            for receipt in receipts:
                table = _rows_of(store, subset, receipt)
                kept = table.filter(pc.equal(table["verdict"], rows.KEPT))
                rejected = table.filter(pc.equal(table["verdict"], rows.REJECTED))
                if (len(kept), len(rejected)) != (receipt.kept, receipt.planned - receipt.kept):
                    raise BuildFailed(
                        f"{store.root}/{layout.rows(subset, receipt.shard)}: {len(kept)} kept and {len(rejected)} "
                        f"rejected, but the receipt says {receipt.kept} of {receipt.planned}; remove "
                        f"{layout.receipt(subset, receipt.shard)} and run the build again"
                    )
                tar = layout.tar(subset, receipt.split, receipt.shard).removeprefix(f"{subset}/")
                tar = tar if receipt.tar_size else ""
                if tar:
                    tars[tar] = receipt.kept
                if receipt.kept:
                    kept_by_split[receipt.split] += receipt.kept
                images |= {role for role in kind.images if pc.any(pc.not_equal(kept[f"{role}_sha256"], "")).as_py()}
                index.add(kept.append_column("tar", pa.array([tar] * len(kept), pa.string())))
                rejections.add(rejected)
                for judge, reason in zip(rejected["filter"].to_pylist(), rejected["reason"].to_pylist(), strict=True):
                    by_filter[judge][reason] += 1
        store.move_in(index_file, layout.meta(subset, "index.parquet"))
        store.move_in(rejections_file, layout.meta(subset, "rejections.parquet"))
    store.write(layout.meta(subset, "sizes.json"), canonical_json(tars) + b"\n")
    return IndexSummary(
        planned=sum(receipt.planned for receipt in receipts),
        kept=sum(receipt.kept for receipt in receipts),
        rejected=dict(sorted(sum(by_filter.values(), Counter()).items())),
        by_filter={judge: dict(sorted(reasons.items())) for judge, reasons in sorted(by_filter.items())},
        kept_by_split=dict(sorted(kept_by_split.items())),
        shards=len(receipts),
        tars=tars,
        bytes=sum(receipt.tar_size for receipt in receipts),
        images=tuple(role for role in kind.images if role in images),
    )


def index_rows(store: Store, subset: str, columns: Sequence[str]) -> Iterator[dict[str, str]]:
    """Columns of ``index.parquet``, row by row as a stream."""
    with store.open(layout.meta(subset, "index.parquet")) as stream:
        yield from parquet_rows(stream, list(columns))


def _rows_of(store: Store, subset: str, receipt: Receipt) -> pa.Table:
    path = layout.rows(subset, receipt.shard)
    try:
        with store.open(path) as stream:
            return read_parquet(stream)
    except (FileNotFoundError, pa.ArrowInvalid) as error:
        remedy = f"remove {layout.receipt(subset, receipt.shard)} and run the build again"
        raise BuildFailed(f"{store.root}/{path}: absent or not Parquet ({error}); {remedy}") from error


class _Streamed:
    """A Parquet file written in row groups of one size, however the rows arrive."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._schema = schema
        self._writer = pq.ParquetWriter(path, schema, compression="zstd", store_schema=False, write_statistics=False)
        self._pending: list[pa.Table] = []

    def add(self, table: pa.Table) -> None:
        """Append the schema's columns of a table."""
        self._pending.append(table.select(self._schema.names).cast(self._schema))
        if sum(map(len, self._pending)) >= ROW_GROUP:
            self._flush()

    def _flush(self) -> None:
        pending = pa.concat_tables(self._pending) if self._pending else self._schema.empty_table()
        self._pending = []
        if len(pending):
            self._writer.write_table(pending.combine_chunks(), row_group_size=len(pending))

    def __enter__(self) -> _Streamed:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._flush()
        self._writer.close()
