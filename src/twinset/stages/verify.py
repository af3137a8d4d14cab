"""What is wrong with a dataset: its audit, in which everything is read and hashed again."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from twinset.contracts.canonical import digest
from twinset.contracts.kinds.samples import MediaFile
from twinset.contracts.receipt import Receipt
from twinset.shards.ledger import LEDGER, damaged_receipts
from twinset.shards.media.media_folder import Media
from twinset.shards.plan import PlannedShard, plan_file, read_parquet
from twinset.shards.rows import KEPT, REJECTED
from twinset.shards.storage import layout
from twinset.shards.storage.member_headers import read_members
from twinset.shards.storage.store import Store
from twinset.shards.storage.tar_reader import BrokenTar
from twinset.stages.dataset import changed_descriptions
from twinset.stages.finish import damaged_index
from twinset.stages.job import StageState
from twinset.stages.plan import contradiction

UNREADABLE = (OSError, ValueError, TypeError, LookupError, pa.ArrowException)


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is wrong, and what to do about it.

    code: what kind, such as ``tar-damaged``. path: of the file or folder, below OUT. message: what is wrong with it.
    remedy: what to do. shard: its number, where it is of one.
    """

    code: str
    path: str
    message: str
    remedy: str
    shard: int | None = None

    def __str__(self) -> str:
        return "; ".join(filter(None, (f"{self.path}: {self.message}", self.remedy)))


def again(*paths: str) -> str:
    """A remedy: have what some files vouch for made again. Without the removal a build trusts what it hashed once."""
    return f"remove {' and '.join(paths)} and run the same build again" if paths else "run the same build again"


def verify_stage(store: Store, state: StageState, media: Media | None = None) -> Iterator[Problem]:
    """Problems of one stage; none when all is well. It needs no package that made the stage.

    media: where the sources lie, to hash them too.
    """
    home, record, ledger = state.home, layout.meta(state.home, "stage.json"), layout.meta(state.home, LEDGER)
    if message := contradiction(state.stage, state.planned):
        yield Problem("plan-damaged", record, message, again(record))
    for number in state.missing:
        yield Problem("shard-missing", home, f"shard {number:05d} is not made yet", again(), number)
    damaged = damaged_receipts(store, home)
    for number in damaged:
        path, message = (
            layout.receipt(home, number),
            f"not what {ledger} says was read from it; one is damaged",
        )
        yield Problem("receipt-damaged", path, message, again(path, ledger), number)
    for number in sorted(state.stale.keys() - {*damaged}):
        yield Problem("shard-stale", home, f"shard {number:05d} is stale, {state.stale[number]}", again(), number)
    sources = defaultdict[MediaFile, list[str]](list)
    for receipt in state.done.receipts():
        if message := _plan_problem(store, home, state.planned[receipt.shard]):
            path = layout.plan(home, plan_file(receipt.shard)[0])
            yield Problem("plan-damaged", path, message, again(record), receipt.shard)
        rows, own = _of_shard(store, home, receipt), layout.receipt(home, receipt.shard)
        if isinstance(rows, Problem):
            yield rows
        elif media is not None and state.makes != "table":
            for source in {MediaFile(**source) for listed in rows["sources"].to_pylist() for source in listed or ()}:
                sources[source].append(own)
    # Of a stage that is not finished, or only made by hand, the index is not asked to be right.
    if not state.todo and store.size(layout.meta(home, "index.json")) is not None:
        if path := damaged_index(store, state):
            remedy = again(layout.meta(home, "index.json"), ledger)
            yield Problem("index-damaged", path, "absent, or not of the shards that the receipts vouch for", remedy)
        for path in changed_descriptions(store, home):
            yield Problem("description-changed", path, "absent, or not the one that the build wrote", again(record))
    for source in sorted(sources, key=lambda source: source.path):
        if media is not None and "://" not in source.path:  # what lies in a bucket is in no media folder
            yield from _of_source(media, source, sources[source])


def _plan_problem(store: Store, home: str, planned: PlannedShard) -> str:
    """What is wrong with the candidates of a shard; empty where nothing is."""
    name, row_group = plan_file(planned.shard)
    try:
        with store.open(layout.plan(home, name)) as stream:
            candidates = read_parquet(stream, row_group=row_group).to_pylist()
            same = digest(candidates) == planned.slice
    except UNREADABLE as error:
        return f"cannot be read ({error})"
    return "" if same else f"the candidates of shard {planned.shard:05d} are not those of the plan"


def _of_shard(store: Store, home: str, receipt: Receipt) -> Problem | pa.Table:
    """The rows of a shard that agrees with its receipt, or how it does not."""
    number, code, path = receipt.shard, "rows-damaged", layout.rows(home, receipt.shard)
    try:
        if not (message := _changed(store, path, receipt.rows_sha256)):
            with store.open(path) as stream:
                table = read_parquet(stream)
            keys = list(dict.fromkeys(table.filter(pc.equal(table["verdict"], KEPT))["key"].to_pylist()))
            counts = len(keys), len(table.filter(pc.equal(table["verdict"], REJECTED)))
            if counts != (receipt.kept, sum(receipt.rejected.values())):
                message = f"{counts[0]} kept and {counts[1]} rejected, {receipt.planned} planned"
            else:
                code, path = "tar-damaged", layout.tar(home, receipt.split, number)
                if not (message := _tar_problem(store, path, receipt, keys)):
                    return table
    except (BrokenTar, *UNREADABLE) as error:
        message = f"cannot be read ({error})"
    return Problem(code, path, message, again(layout.receipt(home, number)), number)


def _changed(store: Store, path: str, sha256: str) -> str:
    there = store.sha256(path)[0]
    return "" if there == sha256 else f"sha256 {there}, its receipt says {sha256}"


def _tar_problem(store: Store, path: str, receipt: Receipt, keys: list[str]) -> str:
    """What is wrong with a tar that should have the samples of some keys; empty where nothing is."""
    if not receipt.tar_size:
        return "" if store.size(path) is None else "its receipt says that nothing was kept"
    if message := _changed(store, path, receipt.tar_sha256):
        return message
    with store.open(path) as stream:
        there = dict.fromkeys(name.partition(".")[0] for name, _ in read_members(stream, path))
    return "" if list(there) == keys else "its samples are not those that the rows of the shard keep"


def _of_source(media: Media, source: MediaFile, receipts: list[str]) -> Iterator[Problem]:
    there, path = media.sha256(source.path), f"{media.root}/{source.path}"
    if there is None:
        remedy = f"put it back, or, to do without it, {again(*receipts)}"
        yield Problem("source-gone", path, "the source is gone", remedy)
    elif there != (source.sha256, source.size):
        message = f"not the file that the samples were made from (sha256 was {source.sha256})"
        yield Problem("source-changed", path, message, f"put that one back, or {again(*receipts)}")
