"""The index of a finished stage: Parquet files of what was kept and of what was rejected, and the sizes of tars."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from twinset.cards.kinds.kind import IndexSummary
from twinset.cards.lineage import counted, rejections
from twinset.contracts.canonical import canonical_json, digest, sha256_of, sha256_of_file
from twinset.contracts.errors import BuildFailed
from twinset.contracts.kinds import KINDS
from twinset.contracts.licences.terms import TERMS
from twinset.contracts.plan import compact, read_parquet
from twinset.contracts.receipt import IndexRecord
from twinset.shards import rows
from twinset.shards.ledger import Receipts
from twinset.shards.read import term_counts
from twinset.shards.records import read_index_record
from twinset.shards.storage import layout
from twinset.shards.storage.store import Store
from twinset.stages.status import StageState

ROW_GROUP = 65_536  # rows that memory holds, whatever the number of candidates

FLAGGED = "flagged.parquet"
_FLAGGED = pa.schema([(name, pa.string()) for name in ("key", "identity", "tar", "split", "group", "reason")])
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
    found = [pa.schema([schema.field(name) for name in names]) for names in (kept, (*_REJECTED, *described))]
    return found[0], found[1]


def is_indexed(store: Store, state: StageState, hashed: bool = False) -> bool:
    """Whether the index that lies there is of these very shards. hashed: also look for damage that changed no size."""
    record = read_index_record(store, state.home)
    current = (state.stage.content, state.stage.plan, shards_digest(state))
    if record is None or (record.content, record.plan, record.digest) != current:
        return False
    there = store.listing(f"{state.home}/{layout.META}")
    if any(name not in there or there[name].size != size for name, (_, size) in record.files.items()):
        return False
    return not hashed or all(store.sha256(layout.meta(state.home, name)) == file for name, file in record.files.items())


def write_index(
    store: Store, state: StageState, makes: str, columns: pa.Schema | None = None, numbers: Sequence[str] = ()
) -> IndexRecord:
    """Write ``index.parquet``, ``rejections.parquet``, ``sizes.json`` and the record that vouches for them.

    Where samples have flags, ``flagged.parquet`` has a row for each flag of each. The bytes depend on the rows alone.
    Raises `BuildFailed` when rows and receipt of a shard disagree.
    """
    home, stage, place = state.home, state.stage, layout.meta(state.home, "index.json")
    store.remove(place)
    kept_schema, rejected_schema = index_schemas(makes, columns, numbers)
    sizes: dict[str, int] = {}
    count = flags = 0
    with store.spool() as spool:
        kept_file, rejected_file, flagged_file = (
            spool / name for name in ("index.parquet", "rejections.parquet", FLAGGED)
        )
        with (
            _streamed(kept_file, kept_schema) as add,
            _streamed(rejected_file, rejected_schema) as add_rejected,
            _streamed(flagged_file, _FLAGGED) as add_flagged,
        ):
            for number, split, planned, kept, tar_size in state.done.columns("split", "planned", "kept", "tar_size"):
                table = _rows_of(store, home, number)
                good = table.filter(pc.equal(table["verdict"], rows.KEPT))
                bad = table.filter(pc.equal(table["verdict"], rows.REJECTED))
                found = len(good["key"].unique())  # a table can have several rows of one candidate
                if (found, len(bad)) != (kept, planned - kept):
                    raise BuildFailed(
                        f"{store.root}/{layout.rows(home, number)}: {found} kept and {len(bad)} rejected, but "
                        f"the receipt says {kept} of {planned}; remove {layout.receipt(home, number)} and run the "
                        "build again"
                    )
                tar = layout.tar_name(split, number) if tar_size else ""
                if tar:
                    sizes[tar] = kept
                count += len(good)
                good = good.append_column("tar", pa.array([tar] * len(good), pa.string()))
                add(good)
                add_rejected(bad)
                flagged = _flagged(good)
                flags += len(flagged)
                add_flagged(flagged)
        written = [kept_file, rejected_file, *([flagged_file] if flags else [])]
        files = {path.name: sha256_of_file(path) for path in written}
        if not flags:
            store.remove(layout.meta(home, FLAGGED))
        for path in written:
            store.move_in(path, layout.meta(home, path.name))
    listed = canonical_json(sizes) + b"\n"
    files["sizes.json"] = sha256_of(BytesIO(listed))
    store.write(layout.meta(home, "sizes.json"), listed)
    record = IndexRecord(
        content=stage.content,
        plan=stage.plan,
        digest=shards_digest(state),
        planned=stage.planned,
        kept=sum(state.done.column("kept")),
        rows=count,
        files=files,
    )
    store.write(place, record.to_bytes())
    return record


def write_table_record(store: Store, state: StageState) -> None:
    """Write the record that vouches for the index of a stage without shards."""
    files = {
        name: store.sha256(layout.meta(state.home, name))
        for name in ("index.parquet", "rejections.parquet", "sizes.json")
    }
    rows = state.stage.planned
    record = IndexRecord(
        content=state.stage.content,
        plan=state.stage.plan,
        digest=shards_digest(state),
        planned=rows,
        kept=rows,
        rows=rows,
        files=files,
    )
    store.write(layout.meta(state.home, "index.json"), record.to_bytes())


def summarise(store: Store, state: StageState) -> IndexSummary:
    """What a finished and indexed stage holds, in numbers."""
    kept_by_split: Counter[str] = Counter()
    tars: dict[str, int] = {}
    for number, split, kept, tar_size in state.done.columns("split", "kept", "tar_size"):
        kept_by_split[split] += kept
        if tar_size:
            tars[layout.tar_name(split, number)] = kept
    record, flagged = read_index_record(store, state.home), layout.meta(state.home, FLAGGED)
    flags = counted(store, flagged, ["reason"]) if record is not None and FLAGGED in record.files else []
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
        planned=state.stage.planned if state.is_one_table else sum(state.done.column("planned")),
        kept=state.kept,
        by_filter=rejections(store, state.home),
        kept_by_split={split: count for split, count in sorted(kept_by_split.items()) if count},
        tars=tars,
        bytes=sum(state.done.column("tar_size")),
        images=images,
        flagged={row["reason"]: row["count_all"] for row in flags},
        terms=term_counts(store, state.home),
    )


def _flagged(kept: pa.Table) -> pa.Table:
    """A row for each flag of each row of kept samples."""
    rows_of = kept.filter(pc.not_equal(kept["reason"], "")).select(_FLAGGED.names).to_pylist()
    one_each = [{**row, "reason": reason} for row in rows_of for reason in row["reason"].split(" ")]
    return pa.Table.from_pylist(one_each, _FLAGGED)


def shards_digest(state: StageState) -> str:
    """What later stages are bound to: the digest over all receipts, or of the index where there are no shards."""
    return state.stage.plan if state.is_one_table else receipts_digest(state.done)


def receipts_digest(receipts: Receipts) -> str:
    """The same for the same shards: over split, rows and tar of each, in order."""
    return digest([list(values) for values in receipts.columns("split", "rows_sha256", "tar_sha256")])


def _rows_of(store: Store, home: str, number: int) -> pa.Table:
    path = layout.rows(home, number)
    try:
        with store.open(path) as stream:
            return read_parquet(stream)
    except (FileNotFoundError, pa.ArrowInvalid) as error:
        remedy = f"remove {layout.receipt(home, number)} and run the build again"
        raise BuildFailed(f"{store.root}/{path}: absent or not Parquet ({error}); {remedy}") from error


@contextmanager
def _streamed(path: Path, schema: pa.Schema) -> Iterator[Callable[[pa.Table], None]]:
    """A function that appends the schema's columns of a table to a new Parquet file.

    However the rows arrive, they are written in row groups of one size.
    """
    pending: list[pa.Table] = []
    waiting = 0

    def add(table: pa.Table) -> None:
        nonlocal waiting
        if len(table):
            pending.append(table.select(schema.names).cast(schema))
            compact(pending)
            waiting += len(table)
        if waiting >= ROW_GROUP:
            flush()

    def flush() -> None:
        nonlocal waiting
        if pending:
            writer.write_table(pa.concat_tables(pending).combine_chunks(), row_group_size=waiting)
        pending.clear()
        waiting = 0

    with pq.ParquetWriter(path, schema, compression="zstd", store_schema=False, write_statistics=False) as writer:
        yield add
        flush()
