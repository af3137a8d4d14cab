"""The index of a finished stage: Parquet files of what was kept and of what was rejected, and the sizes of tars."""

from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from twinset.cards.kinds.kind import IndexSummary
from twinset.cards.lineage import rejections
from twinset.contracts.canonical import canonical_json, digest, sha256_of_file
from twinset.contracts.kinds import KINDS
from twinset.contracts.licences.terms import TERMS
from twinset.contracts.receipt import IndexRecord
from twinset.shards import rows
from twinset.shards.ledger import Receipts
from twinset.shards.plan import read_parquet
from twinset.shards.read import term_counts
from twinset.shards.records import read_index_record
from twinset.shards.storage import layout
from twinset.shards.storage.store import Store
from twinset.stages.status import StageState

ROW_GROUP = 65_536  # rows of a group at least; memory holds these and those of one shard

INDEX, REJECTIONS, SIZES = "index.parquet", "rejections.parquet", "sizes.json"
INDEX_FILES = (INDEX, REJECTIONS, SIZES)
_REJECTED = ("key", "identity", "split", "group", "filter", "reason", "score", "detail")


def index_schemas(makes: str, columns: pa.Schema | None, numbers: Sequence[str] = ()) -> tuple[pa.Schema, pa.Schema]:
    """Columns of ``index.parquet`` and ``rejections.parquet``. columns, numbers: of the generator."""
    described: tuple[str, ...] = ()
    if columns is not None:
        schema = rows.table_schema(columns)
        kept = ("key", "identity", "split", "group", *TERMS, *columns.names)
    else:
        kind = KINDS[makes].with_numbers(numbers)
        schema, described = rows.schema_of(kind).append(pa.field("tar", pa.string())), kind.described
        own = (*described, *kind.hashed, *kind.numbers)
        kept = ("key", "identity", "tar", "split", "group", *own, *TERMS, "content", "sources")
    rejected = (*_REJECTED, *described)
    return pa.schema([schema.field(name) for name in kept]), pa.schema([schema.field(name) for name in rejected])


def is_indexed(store: Store, state: StageState, hashed: bool = False) -> bool:
    """Whether the index that lies there is of these very shards. hashed: also look for damage that changed no size."""
    return not damaged_index(store, state, hashed)


def damaged_index(store: Store, state: StageState, hashed: bool = True) -> str:
    """The first file of an index that is absent or not of these very shards; empty where all are. hashed: as above."""
    record = read_index_record(store, state.home)
    current = (state.stage.content, state.stage.plan, shards_digest(state))
    if record is None or (record.content, record.plan, record.digest) != current:
        return layout.meta(state.home, "index.json")
    there = store.listing(f"{state.home}/{layout.META}")
    for name, file in record.files.items():
        path = layout.meta(state.home, name)
        if name not in there or there[name].size != file[1] or (hashed and store.sha256(path) != file):
            return path
    return ""


def write_index(
    store: Store, state: StageState, makes: str, columns: pa.Schema | None = None, numbers: Sequence[str] = ()
) -> IndexRecord:
    """Write ``index.parquet``, ``rejections.parquet``, ``sizes.json`` and the record that vouches for them.

    Bytes depend on the rows alone.
    """
    home, sizes = state.home, dict[str, int]()
    store.remove(layout.meta(home, "index.json"))
    kept_schema, rejected_schema = index_schemas(makes, columns, numbers)
    with store.spool() as spool:
        with ExitStack() as stack:
            index = stack.enter_context(_Rows(spool / INDEX, kept_schema))
            rejected = stack.enter_context(_Rows(spool / REJECTIONS, rejected_schema))
            for number, split, kept, tar_size in state.done.columns("split", "kept", "tar_size"):
                with store.open(layout.rows(home, number)) as stream:
                    table = read_parquet(stream)
                good, bad = (table.filter(pc.equal(table["verdict"], v)) for v in (rows.KEPT, rows.REJECTED))
                tar = layout.tar_name(split, number) if tar_size else ""
                if tar:
                    sizes[tar] = kept
                good = good.append_column("tar", pa.array([tar] * len(good), pa.string()))
                index.add(good)
                rejected.add(bad)
        (spool / SIZES).write_bytes(canonical_json(sizes) + b"\n")
        files = {path.name: sha256_of_file(path) for path in sorted(spool.iterdir())}
        for name in files:
            store.move_in(spool / name, layout.meta(home, name))
    return _write_record(store, state, files, sum(state.done.column("kept")), index.count)


def write_table_record(store: Store, state: StageState) -> None:
    """Write the record that vouches for the index of a stage without shards."""
    files = {name: store.sha256(layout.meta(state.home, name)) for name in INDEX_FILES}
    _write_record(store, state, files, state.stage.planned, state.stage.planned)


def _write_record(
    store: Store, state: StageState, files: dict[str, tuple[str, int]], kept: int, count: int
) -> IndexRecord:
    record = IndexRecord(
        content=state.stage.content,
        plan=state.stage.plan,
        digest=shards_digest(state),
        planned=state.stage.planned,
        kept=kept,
        rows=count,
        files=files,
    )
    store.write(layout.meta(state.home, "index.json"), record.to_bytes())
    return record


def summarise(store: Store, state: StageState) -> IndexSummary:
    """What a finished and indexed stage holds, in numbers."""
    kept_by_split, tars = Counter[str](), dict[str, int]()
    for number, split, kept, tar_size in state.done.columns("split", "kept", "tar_size"):
        kept_by_split[split] += kept
        if tar_size:
            tars[layout.tar_name(split, number)] = kept
    return IndexSummary(
        planned=state.stage.planned if state.is_one_table else sum(state.done.column("planned")),
        kept=state.kept,
        by_filter=rejections(store, state.home),
        kept_by_split=dict(sorted((+kept_by_split).items())),
        tars=tars,
        bytes=sum(state.done.column("tar_size")),
        images=_images(store, state),
        terms=term_counts(store, state.home),
    )


def _images(store: Store, state: StageState) -> tuple[str, ...]:
    """Roles that some sample has a picture for."""
    if state.makes == "table":
        return ()
    hashed = dict(zip(KINDS[state.makes].images, KINDS[state.makes].hashed, strict=True))
    with store.open(layout.meta(state.home, INDEX)) as stream:
        hashes = read_parquet(stream, [*hashed.values()])
    return tuple(role for role, column in hashed.items() if pc.any(pc.not_equal(hashes[column], "")).as_py())


def shards_digest(state: StageState) -> str:
    """What later stages are bound to: the digest over all receipts, or of the index where there are no shards."""
    return state.stage.plan if state.is_one_table else receipts_digest(state.done)


def receipts_digest(receipts: Receipts) -> str:
    """The same for the same shards: over split, rows and tar of each, in order."""
    return digest([list(values) for values in receipts.columns("split", "rows_sha256", "tar_sha256")])


class _Rows:
    """A new Parquet file of the schema's columns; rows are gathered into row groups of at least `ROW_GROUP`."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.count = self._waiting = 0
        self._schema, self._pending = schema, list[pa.Table]()
        self._writer = pq.ParquetWriter(path, schema, compression="zstd", store_schema=False, write_statistics=False)

    def add(self, table: pa.Table) -> None:
        """Append the rows of a table."""
        if len(table):
            self._pending.append(table.select(self._schema.names).cast(self._schema))
            if len(self._pending) >= 1000:  # the memory of a small table is several times that of its rows
                self._pending = [pa.concat_tables(self._pending).combine_chunks()]
            self.count += len(table)
            self._waiting += len(table)
        if self._waiting >= ROW_GROUP:
            self._flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        if error is None:
            self._flush()
        self._writer.close()

    def _flush(self) -> None:
        if self._pending:
            self._writer.write_table(pa.concat_tables(self._pending).combine_chunks(), row_group_size=self._waiting)
            self._pending.clear()
            self._waiting = 0
