"""Audit of a dataset: everything is read and hashed again, and every problem named."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Generator, Iterator, Sequence

import pyarrow as pa

from manifests.candidate import Candidate
from manifests.canonical import digest
from manifests.parquet import parquet_rows
from manifests.plan import PlannedShard, plan_digest, plan_file, read_slice, slice_digest
from manifests.receipt import Receipt
from manifests.stage import Stage
from shards.kinds.samples import Source
from shards.media.source_media import Media
from shards.rows import KEPT, REJECTED, Row, read_rows
from shards.storage import layout
from shards.storage.store import Store
from shards.storage.tar_reader import BrokenTar, read_members
from stages.status import Progress


def verify_subset(store: Store, state: Progress, kind: type[Candidate], media: Media | None = None) -> Iterator[str]:
    """Problems of one subset, each a sentence with file, shard and remedy; none when all is well.

    kind: type of the subset's candidates. media: the source folder, to hash the sources too.
    """
    stage = state.stage
    if digest(stage.facts) != stage.content:
        yield f"{layout.meta(stage.name, 'stage.json')}: its digest is not that of its facts; {_plan_again(stage)}"
    if plan_digest(state.planned) != stage.plan:
        yield f"{layout.plan(stage.name, 'shards.parquet')}: not the plan of stage.json; {_plan_again(stage)}"
    for number in state.missing:
        yield f"{stage.name} shard {number:05d}: not made yet; run the same build again"
    for number, why in state.stale.items():
        yield f"{stage.name} shard {number:05d}: stale, {why}; run the same build again"
    sources: defaultdict[Source, list[int]] = defaultdict(list)
    kept: defaultdict[str, _Keys] = defaultdict(_Keys)
    whole = 0
    for number, receipt in sorted(state.done.items()):
        planned = state.planned[number]
        yield from _plan_problems(store, stage, planned, kind)
        rows = yield from _row_problems(store, stage, receipt)
        yield from _tar_problems(store, stage, receipt, rows)
        if rows:
            whole += 1
            for row in rows:
                if row.verdict == KEPT:
                    kept[_tar_named(stage.name, receipt)].add(row.key)
        for source in {source for row in rows for source in row.sources if "://" not in source.path}:
            sources[source].append(number)  # what lies in a bucket is in no media folder
    # Of a subset that is not finished, or whose rows are broken, the index is not asked to be right.
    if not state.todo and whole == len(state.planned):
        yield from _index_problems(store, state, kept)
    if media is not None:
        for source, numbers in sorted(sources.items(), key=lambda item: (item[0].path, item[1])):
            yield from _source_problems(media, stage, source, numbers)


def _plan_again(stage: Stage) -> str:
    return f"remove {layout.meta(stage.name, 'stage.json')} and run the same build again; shards that agree stay"


def _plan_problems(store: Store, stage: Stage, planned: PlannedShard, kind: type[Candidate]) -> Iterator[str]:
    name, row_group = plan_file(planned.shard)
    path = layout.plan(stage.name, name)
    try:
        with store.open(path) as stream:
            found = slice_digest(read_slice(stream, row_group, kind))
    except (OSError, ValueError, TypeError, LookupError, pa.ArrowException) as error:
        yield f"{path}: cannot be read ({error}); {_plan_again(stage)}"
        return
    if found != planned.slice:
        yield f"{path}: the candidates of shard {planned.shard:05d} are not those of the plan; {_plan_again(stage)}"


def _row_problems(store: Store, stage: Stage, receipt: Receipt) -> Generator[str, None, list[Row]]:
    path = layout.rows(stage.name, receipt.shard)
    sha256, _ = store.sha256(path)
    if sha256 != receipt.rows_sha256:
        yield f"{path}: sha256 {sha256}, its receipt says {receipt.rows_sha256}; run the same build again"
        return []
    with store.open(path) as stream:
        rows = read_rows(stream)
    kept = sum(row.verdict == KEPT for row in rows)
    rejected = sum(row.verdict == REJECTED for row in rows)
    if (kept, rejected) != (receipt.kept, sum(receipt.rejected.values())) or kept + rejected != receipt.planned:
        yield f"{path}: {kept} kept and {rejected} rejected, {receipt.planned} planned; run the same build again"
    return rows


def _tar_problems(store: Store, stage: Stage, receipt: Receipt, rows: list[Row]) -> Iterator[str]:
    path = layout.tar(stage.name, receipt.split, receipt.shard)
    if not receipt.tar_size:
        if store.size(path) is not None:
            yield f"{path}: its receipt says that nothing was kept; run the same build again"
        return
    sha256, _ = store.sha256(path)
    if sha256 != receipt.tar_sha256:
        yield f"{path}: sha256 {sha256}, its receipt says {receipt.tar_sha256}; run the same build again"
        return
    try:
        with store.open(path) as stream:
            keys = dict.fromkeys(name.partition(".")[0] for name, _ in read_members(stream, path))
    except BrokenTar as error:
        yield str(error)
        return
    if rows and list(keys) != [row.key for row in rows if row.verdict == KEPT]:
        yield f"{path}: its samples are not those that {layout.rows(stage.name, receipt.shard)} keeps"


class _Keys:
    """The keys of a tar's samples, in order, as a digest."""

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=16)

    def add(self, key: str) -> None:
        self._hash.update(f"{key}\n".encode())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Keys) and self._hash.digest() == other._hash.digest()


def _tar_named(name: str, receipt: Receipt) -> str:
    """The tar of a shard as the index names it: not at all where samples have no images."""
    return layout.tar(name, receipt.split, receipt.shard).removeprefix(f"{name}/") if receipt.tar_size else ""


def _index_problems(store: Store, state: Progress, kept: dict[str, _Keys]) -> Iterator[str]:
    """Where index and sizes, if they are there, are not those of the shards. kept: keys of each tar."""
    name = state.stage.name
    sizes = {_tar_named(name, one): one.kept for one in state.done.values() if one.tar_size}
    again = "run the same build again"
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
        listed: defaultdict[str, _Keys] = defaultdict(_Keys)
        try:
            with store.open(path) as stream:
                for row in parquet_rows(stream, ["key", "tar"]):
                    listed[row["tar"]].add(row["key"])
        except (OSError, ValueError, TypeError, LookupError, pa.ArrowException) as error:
            yield f"{path}: cannot be read ({error}); {again}"
            return
        wrong = sorted(tar for tar in listed.keys() | kept.keys() if listed.get(tar) != kept.get(tar))
        if wrong:
            which = ", ".join(tar or "the samples without images" for tar in wrong[:3])
            yield f"{path}: of {which} it lists other samples than the shards hold; {again}"


def _source_problems(media: Media, stage: Stage, source: Source, numbers: Sequence[int]) -> Iterator[str]:
    found = media.sha256(source.path)
    receipts = ", ".join(layout.receipt(stage.name, number) for number in numbers)
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
