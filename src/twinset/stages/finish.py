"""The end of a stage: its shards are made until all agree with their receipts, then its index is written.

The index is Parquet files of what was kept and of what was rejected, and the sizes of tars.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Protocol, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from twinset.cards.kinds.kind import IndexSummary
from twinset.cards.lineage import rejections
from twinset.contracts.canonical import canonical_json, digest, sha256_of_file
from twinset.contracts.errors import BuildFailed, DecisionsMissing
from twinset.contracts.kinds import KINDS
from twinset.contracts.licences.terms import TERMS
from twinset.contracts.receipt import IndexRecord
from twinset.shards import rows
from twinset.shards.ledger import LEDGER, Receipts, keep
from twinset.shards.plan import SHARDS_A_FILE, read_parquet
from twinset.shards.read import term_counts
from twinset.shards.records import read_index_record, read_receipt
from twinset.shards.storage import layout
from twinset.shards.storage.store import Store
from twinset.stages.job import Job, StageState, refuse_mixed_runtimes, state_of

ROUNDS = 3  # make, find what does not agree, make that again
PARALLEL_HASHES = 4
ROW_GROUP = 65_536  # rows of a group of the index at least, but for the last; memory holds these and those of one shard

INDEX, REJECTIONS, SIZES = "index.parquet", "rejections.parquet", "sizes.json"
INDEX_FILES = (INDEX, REJECTIONS, SIZES)
_REJECTED = ("key", "identity", "split", "group", "filter", "reason", "score", "detail")
#: Which shards the card describes; without it the card is written again.
DESCRIBED = "log/described.json"

#: Makes shards of a stage, by its name; returns a sentence for each that failed.
MakeShards = Callable[[Job, str, StageState], Sequence[str]]


class Progress(Protocol):
    """Reported to by a build, from several threads."""

    def begin(self, stage: str, total: int, done: int) -> None:
        """A stage has shards to make: ``done`` of ``total`` are made already."""

    def advance(self, stage: str) -> None:
        """One more shard of a stage is made."""

    def samples(self, stage: str, made: int, planned: int) -> None:
        """Candidates of the shards of a stage that are made, of all that are planned."""

    def phase(self, stage: str, doing: str) -> None:
        """A stage does something other than making shards, such as ``planning``; empty when it has ended."""


class Silent:
    """Shows nothing."""

    def begin(self, stage: str, total: int, done: int) -> None: ...

    def advance(self, stage: str) -> None: ...

    def samples(self, stage: str, made: int, planned: int) -> None: ...

    def phase(self, stage: str, doing: str) -> None: ...


def refuse_waiting(job: Job, name: str) -> None:
    """Raise `DecisionsMissing` where people have not decided enough to make a stage."""
    if (waiting := job.worker(name).source.waiting()) is not None:
        raise DecisionsMissing(job.store.root, {name: waiting})


def settle(job: Job, name: str, make_shards: MakeShards, progress: Progress) -> StageState:
    """Make shards until all are done and agree with their receipts, then write the index.

    Raises `DecisionsMissing` where people have not decided enough to make them.
    """
    worker, store = job.worker(name), job.store
    media = worker.source.media_files()
    for _ in range(ROUNDS):
        state = state_of(store, worker.home, media)
        if state.todo:
            refuse_waiting(job, name)
            progress.begin(name, len(state.planned), len(state.done))
            if failures := make_shards(job, name, state):
                raise BuildFailed("\n".join(failures))
            state = state_of(store, worker.home, media)
        progress.phase(name, "checking")
        state, wrong = disagreeing(store, state)
        forget(store, worker.home, wrong)
        if not wrong and not state.todo:
            break
    else:
        ledger = f"{store.root}/{layout.meta(worker.home, LEDGER)}"
        raise BuildFailed(
            f"{name}: shards do not stay what their receipts say; remove {ledger} and run the same build again, and if "
            "that does not help have the disk checked"
        )
    if not job.recipe.allow_mixed_runtimes:
        runtimes = {asked or own for _, asked, own in state.done.columns("requested_runtime", "runtime")}
        refuse_mixed_runtimes(f"{store.root}/{worker.home}", runtimes)
    if not is_indexed(store, state):
        remove_leftovers(store, state)
        progress.phase(name, "writing the index")
        write_index(store, state, worker.source.makes, worker.source.row_schema, worker.source.numbers)
    job.settled[name] = state
    return state


def disagreeing(store: Store, state: StageState) -> tuple[StageState, list[int]]:
    """Hash the rows and tars that changed since they were last hashed.

    Returns the state with its ledger brought up to date, and the shards whose files are not what their receipt says.
    """

    def agrees(file: tuple[str, str, str]) -> bool:
        path, sha256, _ = file
        try:
            return store.sha256(path)[0] == sha256
        except FileNotFoundError:
            return False

    if not (changed := _changed_files(state)):
        return state, []
    with ThreadPoolExecutor(PARALLEL_HASHES) as pool:
        right = pool.map(agrees, changed.values())
        bad = {number for (_, number), same in zip(changed, right, strict=True) if not same}
    done = state.done.hashed({file: stamp for file, (_, _, stamp) in changed.items() if file[1] not in bad})
    keep(store, state.home, done)
    return replace(state, done=done), sorted(bad)


def _changed_files(state: StageState) -> dict[tuple[str, int], tuple[str, str, str]]:
    """Path, sha256 and stamp of each file that is not the one that was hashed, by column of the ledger and shard."""
    home, changed = state.home, dict[tuple[str, int], tuple[str, str, str]]()
    columns = state.done.columns("split", "rows_sha256", "rows_stamp", "tar_sha256", "tar_size", "tar_stamp")
    for number, split, rows_sha256, rows_stamp, tar_sha256, tar_size, tar_stamp in columns:
        if (stamp := state.rows[f"{number:05d}.parquet"].stamp) != rows_stamp:
            changed["rows_stamp", number] = layout.rows(home, number), rows_sha256, stamp
        if tar_size and (stamp := state.tars[layout.tar_name(split, number)].stamp) != tar_stamp:
            changed["tar_stamp", number] = layout.tar(home, split, number), tar_sha256, stamp
    return changed


def forget(store: Store, home: str, numbers: Iterable[int]) -> None:
    """Take back receipts, so that their shards are made again."""
    for number in numbers:
        store.remove(layout.receipt(home, number))


def remove_leftovers(store: Store, state: StageState) -> None:
    """Remove tars, rows, receipts, logs and plan files that the present plan does not know.

    Tars are looked for in the folders of splits that the plan or a receipt names: other folders are somebody else's.
    """
    home, count = state.home, len(state.planned)
    tars = {layout.tar(home, split, number) for number, split, size in state.done.columns("split", "tar_size") if size}
    splits = {shard.split for shard in state.planned}
    for name in store.listing(layout.meta(home, "receipts")):
        number = layout.shard_number(name, "json")
        if number >= count and (receipt := read_receipt(store, home, number)) is not None:
            splits.add(receipt.split)
    folders = [(f"{home}/{split}", "tar", 0) for split in sorted(splits)]
    folders += [(layout.meta(home, "rows"), "parquet", count)]
    folders += [(layout.meta(home, "plan"), "parquet", -(-count // SHARDS_A_FILE))]
    # Receipts go last: should this be interrupted, they still name the splits of what is left.
    folders += [(layout.meta(home, "log"), "json", count), (layout.meta(home, "receipts"), "json", count)]
    for folder, suffix, first in folders:
        for name in sorted(store.listing(folder)):
            if layout.shard_number(name, suffix) >= first and f"{folder}/{name}" not in tars:
                store.remove(f"{folder}/{name}")


def index_schemas(makes: str, columns: pa.Schema | None, numbers: Sequence[str] = ()) -> tuple[pa.Schema, pa.Schema]:
    """Columns of ``index.parquet`` and ``rejections.parquet``. columns, numbers: of the source."""
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
    """The first file of an index that is absent or not of these very shards; empty where all are. hashed: so too."""
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
) -> None:
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
    _write_record(store, state, files, index.count)


def write_table_record(store: Store, state: StageState) -> None:
    """Write the record that vouches for the index of a stage without shards."""
    files = {name: store.sha256(layout.meta(state.home, name)) for name in INDEX_FILES}
    _write_record(store, state, files, state.kept)


def _write_record(store: Store, state: StageState, files: dict[str, tuple[str, int]], count: int) -> None:
    record = IndexRecord(
        content=state.stage.content,
        plan=state.stage.plan,
        digest=shards_digest(state),
        planned=state.stage.planned,
        kept=state.kept,
        rows=count,
        files=files,
    )
    store.write(layout.meta(state.home, "index.json"), record.to_bytes())


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
    """A new Parquet file of the schema's columns; its row groups but the last have at least `ROW_GROUP` rows."""

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
