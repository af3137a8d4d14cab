"""Audit of a dataset: everything is read and hashed again, and every problem named."""

import contextlib
import hashlib
import json
from collections import defaultdict
from collections.abc import Generator, Iterator, Sequence
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from twinset.contracts.canonical import digest
from twinset.contracts.kinds.samples import MediaFile
from twinset.contracts.plan import PlannedShard, parquet_rows, plan_digest, plan_file, read_parquet
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
from twinset.stages.status import StageState


def verify_stage(store: Store, state: StageState, media: Media | None = None) -> Iterator[str]:
    """Problems of one stage, each a sentence with file, shard and remedy; none when all is well.

    It needs no package that made the stage.

    media: where the sources lie, to hash them too.
    """
    home, stage, is_table = state.home, state.stage, state.makes == "table"
    if digest(stage.facts) != stage.content:
        yield f"{layout.meta(home, 'stage.json')}: its digest is not that of its facts; {_plan_again(home)}"
    counts = sum(shard.planned for shard in state.planned), len(state.planned)
    if not state.is_one_table and (plan_digest(state.planned), *counts) != (stage.plan, stage.planned, stage.shards):
        yield f"{layout.plan(home, 'shards.parquet')}: not the plan of stage.json; {_plan_again(home)}"
    for number in state.missing:
        yield f"{home} shard {number:05d}: not made yet; run the same build again"
    damaged = damaged_receipts(store, home)
    for number in damaged:
        ledger = layout.meta(home, LEDGER)
        remedy = "one of them was damaged: remove both and run the same build again"
        yield f"{layout.receipt(home, number)}: not what {ledger} says was read from it; {remedy}"
    for number, why in state.stale.items():
        if number not in damaged:
            yield f"{home} shard {number:05d}: stale, {why}; run the same build again"
    sources: defaultdict[MediaFile, list[int]] = defaultdict(list)
    kept = _hashes()
    whole = 0
    for receipt in state.done.receipts():
        planned = state.planned[receipt.shard]
        yield from _plan_problems(store, home, planned)
        table = yield from _row_problems(store, home, receipt)
        if table is None:
            continue
        whole += 1
        keys = table.filter(pc.equal(table["verdict"], KEPT))["key"].to_pylist()
        yield from _tar_problems(store, home, receipt, list(dict.fromkeys(keys)))
        for key in keys:
            kept[_tar_named(receipt)].update(f"{key}\n".encode())
        if not is_table:
            for source in {MediaFile(**one) for listed in table["sources"].to_pylist() for one in listed or ()}:
                if "://" not in source.path:  # what lies in a bucket is in no media folder
                    sources[source].append(receipt.shard)
    # Of a stage that is not finished, or whose rows are broken, the index is not asked to be right.
    if not state.todo and whole == len(state.planned):
        named = [] if state.is_one_table else list(_index_problems(store, state, kept, is_table))
        yield from named
        yield from _changed_since_indexed(store, state, named)
        for path in changed_descriptions(store, home):
            yield f"{path}: absent, or not the one that the build wrote; {_plan_again(home)}"
    if media is not None:
        for source, numbers in sorted(sources.items(), key=lambda item: (item[0].path, item[1])):
            yield from _source_problems(media, home, source, numbers)


def _plan_again(home: str) -> str:
    return f"remove {layout.meta(home, 'stage.json')} and run the same build again; shards that agree stay"


def _make_again(home: str, receipt: Receipt) -> str:
    # Without the removal a build would trust what it hashed once, if the damage changed no stamp.
    return f"remove {layout.receipt(home, receipt.shard)} and run the same build again"


def _plan_problems(store: Store, home: str, planned: PlannedShard) -> Iterator[str]:
    name, row_group = plan_file(planned.shard)
    path = layout.plan(home, name)
    try:
        with store.open(path) as stream:
            found = digest(read_parquet(stream, row_group=row_group).to_pylist())
    except (OSError, ValueError, TypeError, LookupError, pa.ArrowException) as error:
        yield f"{path}: cannot be read ({error}); {_plan_again(home)}"
        return
    if found != planned.slice:
        yield f"{path}: the candidates of shard {planned.shard:05d} are not those of the plan; {_plan_again(home)}"


def _row_problems(store: Store, home: str, receipt: Receipt) -> Generator[str, None, pa.Table | None]:
    path, again = layout.rows(home, receipt.shard), _make_again(home, receipt)
    try:
        sha256, _ = store.sha256(path)
        if sha256 != receipt.rows_sha256:
            yield f"{path}: sha256 {sha256}, its receipt says {receipt.rows_sha256}; {again}"
            return None
        with store.open(path) as stream:
            table = read_parquet(stream)
        kept = len(table.filter(pc.equal(table["verdict"], KEPT))["key"].unique())
        rejected = len(table.filter(pc.equal(table["verdict"], REJECTED)))
    except (OSError, LookupError, pa.ArrowException) as error:
        yield f"{path}: cannot be read ({error}); {again}"
        return None
    if (kept, rejected) != (receipt.kept, sum(receipt.rejected.values())) or kept + rejected != receipt.planned:
        yield f"{path}: {kept} kept and {rejected} rejected, {receipt.planned} planned; {again}"
    return table


def _tar_problems(store: Store, home: str, receipt: Receipt, kept: list[str]) -> Iterator[str]:
    path = layout.tar(home, receipt.split, receipt.shard)
    if not receipt.tar_size:
        if store.size(path) is not None:
            yield f"{path}: its receipt says that nothing was kept; run the same build again"
        return
    sha256, _ = store.sha256(path)
    if sha256 != receipt.tar_sha256:
        yield f"{path}: sha256 {sha256}, its receipt says {receipt.tar_sha256}; {_make_again(home, receipt)}"
        return
    try:
        with store.open(path) as stream:
            keys = dict.fromkeys(name.partition(".")[0] for name, _ in read_members(stream, path))
    except BrokenTar as error:
        yield str(error)
        return
    if list(keys) != kept:
        keeps = f"that {layout.rows(home, receipt.shard)} keeps"
        yield f"{path}: its samples are not those {keeps}; {_make_again(home, receipt)}"


def _tar_named(receipt: Receipt) -> str:
    """The tar of a shard as the index names it: not at all where samples have no images."""
    return layout.tar_name(receipt.split, receipt.shard) if receipt.tar_size else ""


def _hashes() -> defaultdict[str, hashlib.blake2b]:
    """By tar, a hash to be fed with the keys of its samples, in order."""
    return defaultdict(partial(hashlib.blake2b, digest_size=16))


def _index_problems(
    store: Store, state: StageState, kept: defaultdict[str, hashlib.blake2b], is_table: bool
) -> Iterator[str]:
    """Where index and sizes, if they are there, are not those of the shards. kept: as `_hashes`."""
    name = state.home
    sizes = {_tar_named(one): one.kept for one in state.done.receipts() if one.tar_size}
    again = _index_again(name)
    path = layout.meta(name, "sizes.json")
    if store.size(path) is not None:
        try:
            agree = json.loads(store.read(path)) == sizes
        except (ValueError, RecursionError) as error:
            yield f"{path}: cannot be read ({error}); {again}"
        else:
            if not agree:
                yield f"{path}: not the counts that the receipts of {name} add up to; {again}"
    path = layout.meta(name, "index.parquet")
    if store.size(path) is not None:
        listed = _hashes()
        try:
            with store.open(path) as stream:
                for row in parquet_rows(stream, ["key"] if is_table else ["key", "tar"]):
                    listed[str(row.get("tar", ""))].update(f"{row['key']}\n".encode())
        except (OSError, ValueError, TypeError, LookupError, pa.ArrowException) as error:
            yield f"{path}: cannot be read ({error}); {again}"
            return
        wrong = sorted(tar for tar in listed.keys() | kept.keys() if listed[tar].digest() != kept[tar].digest())
        if wrong:
            which = ", ".join(tar or "the samples without images" for tar in wrong[:3])
            yield f"{path}: of {which} it lists other samples than the shards hold; {again}"


def _changed_since_indexed(store: Store, state: StageState, named: Sequence[str]) -> Iterator[str]:
    """Files of the index that are not those its record vouches for. named: problems that were found before."""
    home, record = state.home, layout.meta(state.home, "index.json")
    if store.size(record) is None:
        return
    index = read_index_record(store, home)
    counts = state.stage.content, state.stage.plan, state.stage.planned, state.kept
    if index is None or (index.content, index.plan, index.planned, index.kept) != counts:
        yield f"{record}: cannot be read, or of other shards than the receipts; {_index_again(home)}"
        return
    if index.digest != shards_digest(state):
        yield f"{record}: of other shards than the receipts; remove {layout.meta(home, LEDGER)}, {_index_again(home)}"
    for file, (sha256, _) in index.files.items():
        path = layout.meta(home, file)
        if any(problem.startswith(path) for problem in named):
            continue
        with contextlib.suppress(OSError):
            if store.sha256(path)[0] == sha256:
                continue
        yield f"{path}: absent, or not the one of {record}; {_index_again(home)}"


def _index_again(home: str) -> str:
    return f"remove {layout.meta(home, 'index.json')} and run the same build again"


def _source_problems(media: Media, home: str, source: MediaFile, numbers: Sequence[int]) -> Iterator[str]:
    found = media.sha256(source.path)
    receipts = ", ".join(layout.receipt(home, number) for number in numbers)
    if found is None:
        yield (
            f"{media.root}/{source.path}: the source is gone; put it back, or remove {receipts} and run the same build "
            "again to do without it"
        )
    elif found != (source.sha256, source.size):
        yield (
            f"{media.root}/{source.path}: not the file that the samples were made from (sha256 was {source.sha256}); "
            f"put that one back, or remove {receipts} and run the same build again"
        )
