"""Processes that parse whole shards: spaCy holds the interpreter's lock, and documents are too large to send about."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from multiprocessing import get_context

from generators.scene_graphs.make import make_shard
from generators.scene_graphs.pipelines import Pipeline, import_spacy_alone
from generators.scene_graphs.record import GraphReceipt
from generators.scene_graphs.relations import SceneGraphParser
from manifests.errors import BuildFailed
from manifests.plan import PlannedShard
from shards.store import Store
from shards.worker_process import end_with_parent


def make_shards(
    root: str, content: str, shards: Sequence[PlannedShard], pipeline: Pipeline, workers: int
) -> Iterator[GraphReceipt]:
    """Make shards in this process or, with more than one worker, in as many others; receipts as they get ready.

    The first error ends it; shards that were done stay. Raises what `make_shard` and `SceneGraphParser` raise, and
    `BuildFailed` when a process dies.
    """
    if workers == 1 or len(shards) < 2:
        for shard in shards:
            yield make_one(root, content, shard, pipeline)
        return
    pool = ProcessPoolExecutor(min(workers, len(shards)), get_context("spawn"), _start, (os.getpid(), pipeline.torch))
    try:
        for done in as_completed([pool.submit(make_one, root, content, shard, pipeline) for shard in shards]):
            yield done.result()
    except BrokenProcessPool as error:
        raise BuildFailed(
            "a process that parsed captions died (was it killed, or memory short?); run the same command again, or "
            "with fewer --workers: finished shards stay"
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


@cache
def parser_of(pipeline: Pipeline) -> SceneGraphParser:
    """The parser with a pipeline, loaded once a process."""
    return SceneGraphParser(pipeline)


def make_one(root: str, content: str, shard: PlannedShard, pipeline: Pipeline) -> GraphReceipt:
    """Make a shard below a root, with this process's parser."""
    return make_shard(Store(root), content, shard, parser_of(pipeline))


def _start(parent: int, torch: bool) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent ends its workers
    end_with_parent(parent)
    if not torch:
        import_spacy_alone()
