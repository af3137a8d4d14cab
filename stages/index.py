"""The index of a finished stage: Parquet files of what was kept and of what was rejected, and the sizes of tars."""

from __future__ import annotations

from collections import Counter, defaultdict
from io import BytesIO
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cards.summary import IndexSummary
from manifests.canonical import canonical_json, digest, sha256_of, sha256_of_file
from manifests.errors import BuildFailed
from manifests.index_record import IndexRecord
from manifests.parquet import read_parquet
from manifests.receipt import parsed
from shards import rows
from shards.kinds.registry import KINDS
from shards.storage import layout
from shards.storage.store import Store
from stages.ledger import Receipts
from stages.status import StageState

ROW_GROUP = 65_536  # rows that memory holds, whatever the number of candidates

_REJECTED = ("key", "identity", "split", "group", "filter", "reason", "score", "detail")


def index_schemas(makes: str, columns: pa.Schema | None) -> tuple[pa.Schema, pa.Schema]:
    """Columns of ``index.parquet`` and ``rejections.parquet``.

    Args:
        makes: name of the sample kind, or ``table``.
        columns: those of a table's rows.
    """
    if columns is not None:
        schema = rows.table_schema(columns)
        kept = pa.schema([schema.field(name) for name in ("key", "identity", "split", "group", *columns.names)])
        return kept, pa.schema([schema.field(name) for name in _REJECTED])
    kind = KINDS[makes]
    schema = rows.schema_of(kind)
    described = ("split", "group", *kind.described, *kind.hashed, "content", "sources")
    first = [schema.field("key"), schema.field("identity"), ("tar", pa.string())]
    kept = pa.schema([*first, *(schema.field(name) for name in described)])
    return kept, pa.schema([schema.field(name) for name in (*_REJECTED, *kind.described)])


def is_indexed(store: Store, state: StageState) -> bool:
    """Whether the index that lies there is of these very shards."""
    try:
        record = parsed(IndexRecord, store.read(layout.meta(state.home, "index.json")))
    except FileNotFoundError:
        return False
    current = (state.stage.content, state.stage.plan, receipts_digest(state.done))
    if record is None or (record.content, record.plan, record.digest) != current:
        return False
    return all(store.size(layout.meta(state.home, name)) == size for name, (_, size) in record.files.items())


def write_index(store: Store, state: StageState, makes: str, columns: pa.Schema | None = None) -> IndexRecord:
    """Write ``index.parquet``, ``rejections.parquet``, ``sizes.json`` and the record that vouches for them.

    The bytes depend on the rows alone.

    Raises:
        BuildFailed: rows and receipt of a shard disagree.
    """
    home, stage, place = state.home, state.stage, layout.meta(state.home, "index.json")
    store.remove(place)
    kept_schema, rejected_schema = index_schemas(makes, columns)
    sizes: dict[str, int] = {}
    with store.spool() as spool:
        index_file, rejections_file = spool / "index", spool / "rejections"
        with _Streamed(index_file, kept_schema) as index, _Streamed(rejections_file, rejected_schema) as rejections:
            for number, split, planned, kept, tar_size in _receipts(state.done):
                table = _rows_of(store, home, number)
                good = table.filter(pc.equal(table["verdict"], rows.KEPT))
                bad = table.filter(pc.equal(table["verdict"], rows.REJECTED))
                found = len(good["key"].unique()) if columns is not None else len(good)
                if (found, len(bad)) != (kept, planned - kept):
                    raise BuildFailed(
                        f"{store.root}/{layout.rows(home, number)}: {found} kept and {len(bad)} rejected, but "
                        f"the receipt says {kept} of {planned}; remove {layout.receipt(home, number)} and run the "
                        "build again"
                    )
                tar = layout.tar(home, split, number).removeprefix(f"{home}/") if tar_size else ""
                if tar:
                    sizes[tar] = kept
                index.add(good.append_column("tar", pa.array([tar] * len(good), pa.string())))
                rejections.add(bad)
        files = {"index.parquet": sha256_of_file(index_file), "rejections.parquet": sha256_of_file(rejections_file)}
        count = index.rows
        store.move_in(index_file, layout.meta(home, "index.parquet"))
        store.move_in(rejections_file, layout.meta(home, "rejections.parquet"))
    listed = canonical_json(sizes) + b"\n"
    files["sizes.json"] = sha256_of(BytesIO(listed))
    store.write(layout.meta(home, "sizes.json"), listed)
    record = IndexRecord(
        content=stage.content,
        plan=stage.plan,
        digest=receipts_digest(state.done),
        planned=stage.planned,
        kept=sum(state.done.column("kept")),
        rows=count,
        files=files,
    )
    store.write(place, record.to_bytes())
    return record


def summarise(store: Store, state: StageState) -> IndexSummary:
    """What a finished and indexed stage holds, in numbers."""
    kept_by_split: Counter[str] = Counter()
    tars: dict[str, int] = {}
    size = 0
    for number, split, _, kept, tar_size in _receipts(state.done):
        kept_by_split[split] += kept
        size += tar_size
        if tar_size:
            tars[layout.tar(state.home, split, number).removeprefix(f"{state.home}/")] = kept
    by_filter: defaultdict[str, dict[str, int]] = defaultdict(dict)
    with store.open(layout.meta(state.home, "rejections.parquet")) as stream:
        rejected = read_parquet(stream, ["filter", "reason"])
    counted = rejected.group_by(["filter", "reason"], use_threads=False).aggregate([([], "count_all")])
    for row in sorted(counted.to_pylist(), key=lambda row: (row["filter"], row["reason"])):
        by_filter[row["filter"]][row["reason"]] = row["count_all"]
    images: tuple[str, ...] = ()
    if state.makes != "table":
        kind = KINDS[state.makes]
        with store.open(layout.meta(state.home, "index.parquet")) as stream:
            hashes = read_parquet(stream, kind.hashed)
        images = tuple(
            role
            for role, column in zip(kind.images, kind.hashed, strict=True)
            if pc.any(pc.not_equal(hashes[column], "")).as_py()
        )
    return IndexSummary(
        planned=sum(state.done.column("planned")),
        kept=sum(state.done.column("kept")),
        rejected=state.rejected(),
        by_filter=dict(by_filter),
        kept_by_split={split: count for split, count in sorted(kept_by_split.items()) if count},
        shards=len(state.done),
        tars=tars,
        bytes=size,
        images=images,
    )


def receipts_digest(receipts: Receipts) -> str:
    """The same for the same shards: over split, rows and tar of each, in order."""
    columns = (receipts.column(name) for name in ("split", "rows_sha256", "tar_sha256"))
    return digest([list(values) for values in zip(receipts, *columns, strict=True)])


def _receipts(receipts: Receipts) -> list[tuple[int, str, int, int, int]]:
    """Number, split, planned, kept and size of the tar of each shard."""
    columns = (receipts.column(name) for name in ("split", "planned", "kept", "tar_size"))
    return list(zip(receipts, *columns, strict=True))


def _rows_of(store: Store, home: str, number: int) -> pa.Table:
    path = layout.rows(home, number)
    try:
        with store.open(path) as stream:
            return read_parquet(stream)
    except (FileNotFoundError, pa.ArrowInvalid) as error:
        remedy = f"remove {layout.receipt(home, number)} and run the build again"
        raise BuildFailed(f"{store.root}/{path}: absent or not Parquet ({error}); {remedy}") from error


class _Streamed:
    """A Parquet file written in row groups of one size, however the rows arrive. rows: how many have."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._schema = schema
        self._writer = pq.ParquetWriter(path, schema, compression="zstd", store_schema=False, write_statistics=False)
        self._pending: list[pa.Table] = []
        self._waiting = 0
        self.rows = 0

    def add(self, table: pa.Table) -> None:
        """Append the schema's columns of a table."""
        if not len(table):
            return
        self._pending.append(table.select(self._schema.names).cast(self._schema))
        self._waiting += len(table)
        self.rows += len(table)
        if self._waiting >= ROW_GROUP:
            self._flush()

    def _flush(self) -> None:
        if self._pending:
            pending = pa.concat_tables(self._pending)
            self._writer.write_table(pending.combine_chunks(), row_group_size=len(pending))
        self._pending, self._waiting = [], 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._flush()
        self._writer.close()
