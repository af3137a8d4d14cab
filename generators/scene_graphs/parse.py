"""Captions to relations: plan once, make the shards that are not done, and write the index when all are."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from generators.scene_graphs.caption_sources import caption_sources
from generators.scene_graphs.pipelines import EMBEDDED, find_pipeline
from generators.scene_graphs.prepare import prepare
from generators.scene_graphs.progress import graph_progress
from generators.scene_graphs.record import INDEX, Index, captions_file, receipt_file, relations_file
from generators.scene_graphs.workers import Parsers
from shards.storage.store import Store

Told = Callable[[int, int], None]

SHARD_SIZE = 2048  # captions: two or three seconds of one core

logger = logging.getLogger("twinset")


def parse_captions(
    captions: Sequence[Path],
    to: str,
    pipeline: str = EMBEDDED,
    workers: int = 1,
    shard_size: int = SHARD_SIZE,
    told: Told | None = None,
) -> Index:
    """Write the relations of all captions below ``to`` (a folder or fsspec URL), or go on with what was begun there.

    captions: files and folders, read in this order (`generators.scene_graphs.caption_sources`). pipeline: `EMBEDDED`,
    an installed package or a folder. workers: processes. told: called with the numbers of done and of all shards, at
    first and after each. The files are the same on any number of workers and after any interruption:
    ``captions/NNNNN.parquet``, ``relations/NNNNN.parquet``, receipts and an index, which is written last.
    Raises `WrongUse` for captions or a pipeline that cannot be used, and then has changed nothing below ``to``;
    `BuildFailed` and OSError for what went wrong on the way; the same call resumes.
    """
    found = find_pipeline(pipeline)
    store = Store(to)
    with store.tidied(), Parsers(found, workers) as parsers:
        record, planned = prepare(store, caption_sources(captions), found, shard_size, parsers.load)
        state = graph_progress(store, record, planned)
        if todo := state.todo:
            store.remove(INDEX)
            if told is not None:
                told(len(state.done), len(planned))
        for count, receipt in enumerate(parsers.make_shards(store.root, record.content, todo), 1):
            state.done[receipt.shard] = receipt
            if told is not None:
                told(len(state.done), len(planned))
            logger.info("shard %05d: %d relations, %d of %d", receipt.shard, receipt.relations, count, len(todo))
        _remove_others(store, len(planned))
        index = state.index()
        if store.size(INDEX) is None or store.read(INDEX) != index.to_bytes():
            store.write(INDEX, index.to_bytes())
    return index


def _remove_others(store: Store, shards: int) -> None:
    """Remove shards of an earlier, longer plan: who reads the folder of relations reads all that lies in it."""
    for path_of in (receipt_file, relations_file, captions_file):
        folder = path_of(0).rpartition("/")[0]
        for name in store.names(folder):
            found = re.fullmatch(r"(\d{5,})\.\w+", name)
            if found and int(found[1]) >= shards and f"{folder}/{name}" == path_of(int(found[1])):
                store.remove(f"{folder}/{name}")
