"""Audit of scene graphs: everything is read and hashed again, and every problem named."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from generators.scene_graphs.caption_plan import read_captions
from generators.scene_graphs.progress import AGAIN, GraphProgress
from generators.scene_graphs.record import INDEX, RECORD, GraphReceipt, captions_file, receipt_file, relations_file
from manifests.canonical import digest
from manifests.errors import BuildFailed
from manifests.parquet import read_parquet
from manifests.plan import PlannedShard
from shards.storage.store import Store


def graph_problems(store: Store, state: GraphProgress) -> Iterator[str]:
    """Problems, each a sentence with file, shard and remedy; none when all is well.

    state: of relations that were hashed (`generators.scene_graphs.progress.graph_progress`).
    """
    record = state.record
    if digest(record.facts) != record.content:
        yield f"{RECORD}: its digest is not that of its facts; remove it and {AGAIN}"
    if (record.shards, record.captions) != (len(state.planned), sum(shard.planned for shard in state.planned)):
        yield f"{RECORD}: not the counts that its shards add up to; remove it and {AGAIN}"
    for number in state.missing:
        yield f"shard {number:05d}: not parsed yet; {AGAIN}"
    for number, why in sorted(state.stale.items()):
        yield f"shard {number:05d}: {why}; {AGAIN}"
    for shard in state.planned:
        yield from _shard_problems(store, shard, state.done.get(shard.shard))
    if not state.todo:
        if store.size(INDEX) is None:
            yield f"{INDEX}: absent; {AGAIN}"
        elif store.read(INDEX) != state.index().to_bytes():
            yield f"{INDEX}: not what the receipts add up to; {AGAIN}"
    for path_of in (captions_file, relations_file):
        expected = {path_of(shard.shard) for shard in state.planned}
        folder = path_of(0).rpartition("/")[0]
        for name in store.names(folder):
            if f"{folder}/{name}" not in expected:  # who reads the folder reads all that lies in it
                yield f"{folder}/{name}: not of these captions; move it elsewhere"


def _shard_problems(store: Store, planned: PlannedShard, receipt: GraphReceipt | None) -> Iterator[str]:
    """Where captions are not those that were planned, or relations not those that their receipt counts."""
    try:
        captions = read_captions(store, planned)["caption_id"]
    except BuildFailed as error:
        yield str(error).removeprefix(f"{store.root}/")
        return
    if receipt is None:
        return
    path = relations_file(planned.shard)
    again = f"remove {receipt_file(planned.shard)} and {AGAIN}"
    try:
        with store.open(path) as stream:
            ids: list[str] = read_parquet(stream, ["caption_id"])["caption_id"].to_pylist()
    except (OSError, LookupError, pa.ArrowException) as error:
        yield f"{path}: cannot be read ({error}); {again}"
        return
    found, related = (len(captions), len(captions) - len(set(ids)), len(ids)), set(ids) <= set(captions)
    if not related or found != (receipt.captions, receipt.without, receipt.relations):
        yield f"{path}: not the relations of the captions that its receipt counts; {again}"
