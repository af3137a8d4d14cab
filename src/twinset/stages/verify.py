"""Audit of a dataset: everything is read and hashed again, and every problem named."""

from collections import defaultdict
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from twinset.contracts.canonical import digest
from twinset.contracts.kinds.samples import MediaFile
from twinset.contracts.plan import PlannedShard, plan_file, read_parquet
from twinset.contracts.receipt import Receipt
from twinset.shards.ledger import LEDGER, damaged_receipts
from twinset.shards.media.media_folder import Media
from twinset.shards.records import read_index_record
from twinset.shards.rows import KEPT, REJECTED
from twinset.shards.storage import layout
from twinset.shards.storage.member_headers import read_members
from twinset.shards.storage.store import Store
from twinset.shards.storage.tar_reader import BrokenTar
from twinset.stages.description_record import changed_descriptions
from twinset.stages.index import shards_digest
from twinset.stages.problems import Problem, index_again, make_again, plan_again, plan_problem
from twinset.stages.status import StageState

AGAIN = "run the same build again"
UNREADABLE = (OSError, ValueError, TypeError, LookupError, pa.ArrowException)


def verify_stage(store: Store, state: StageState, media: Media | None = None) -> Iterator[Problem]:
    """Problems of one stage; none when all is well. It needs no package that made the stage.

    media: where the sources lie, to hash them too.
    """
    home = state.home
    if problem := plan_problem(home, state.stage, state.planned):
        yield problem
    for number in state.missing:
        yield Problem("shard-missing", home, f"shard {number:05d} is not made yet", AGAIN, number)
    damaged = damaged_receipts(store, home)
    for number in damaged:
        message = f"not what {layout.meta(home, LEDGER)} says was read from it"
        remedy = f"one of them was damaged: remove both and {AGAIN}"
        yield Problem("receipt-damaged", layout.receipt(home, number), message, remedy, number)
    for number in sorted(state.stale.keys() - {*damaged}):
        message = f"shard {number:05d} is stale, {state.stale[number]}"
        yield Problem("shard-stale", home, message, AGAIN, number)
    sources = defaultdict[MediaFile, list[int]](list)
    for receipt in state.done.receipts():
        yield from _of_plan(store, home, state.planned[receipt.shard])
        rows = _of_shard(store, home, receipt)
        if isinstance(rows, Problem):
            yield rows
        elif media is not None and state.makes != "table":
            for source in {MediaFile(**source) for listed in rows["sources"].to_pylist() for source in listed or ()}:
                sources[source].append(receipt.shard)
    if not state.todo:  # of a stage that is not finished the index is not asked to be right
        yield from _of_index(store, state)
        for path in changed_descriptions(store, home):
            yield Problem("description-changed", path, "absent, or not the one that the build wrote", plan_again(home))
    for source in sorted(sources, key=lambda source: source.path):
        if media is not None and "://" not in source.path:  # what lies in a bucket is in no media folder
            yield from _of_source(media, home, source, sources[source])


def _of_plan(store: Store, home: str, planned: PlannedShard) -> Iterator[Problem]:
    name, row_group = plan_file(planned.shard)
    path, message = layout.plan(home, name), f"the candidates of shard {planned.shard:05d} are not those of the plan"
    try:
        with store.open(path) as stream:
            if digest(read_parquet(stream, row_group=row_group).to_pylist()) == planned.slice:
                return
    except UNREADABLE as error:
        message = f"cannot be read ({error})"
    yield Problem("plan-damaged", path, message, plan_again(home), planned.shard)


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
    return Problem(code, path, message, make_again(home, number), number)


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


def _of_index(store: Store, state: StageState) -> Iterator[Problem]:
    """Files of the index that are not those its record vouches for."""
    home, path = state.home, layout.meta(state.home, "index.json")
    if store.size(path) is None:
        return
    index = read_index_record(store, home)
    counts = state.stage.content, state.stage.plan, state.stage.planned, state.kept, shards_digest(state)
    if index is None or (index.content, index.plan, index.planned, index.kept, index.digest) != counts:
        message = "cannot be read, or of other shards than the receipts"
        remedy = f"remove {layout.meta(home, LEDGER)}, {index_again(home)}"
        yield Problem("index-damaged", path, message, remedy)
    for file, (sha256, _) in index.files.items() if index is not None else ():
        place = layout.meta(home, file)
        if store.size(place) is None or store.sha256(place)[0] != sha256:
            yield Problem("index-damaged", place, f"absent, or not the one of {path}", index_again(home))


def _of_source(media: Media, home: str, source: MediaFile, numbers: list[int]) -> Iterator[Problem]:
    there, path = media.sha256(source.path), f"{media.root}/{source.path}"
    receipts = ", ".join(layout.receipt(home, number) for number in numbers)
    if there is None:
        remedy = f"put it back, or remove {receipts} and {AGAIN} to do without it"
        yield Problem("source-gone", path, "the source is gone", remedy)
    elif there != (source.sha256, source.size):
        message = f"not the file that the samples were made from (sha256 was {source.sha256})"
        yield Problem("source-changed", path, message, f"put that one back, or remove {receipts} and {AGAIN}")
