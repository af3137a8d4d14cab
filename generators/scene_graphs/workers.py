"""Processes that parse whole shards: spaCy holds the interpreter's lock, and documents are too large to send about."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import cache
from multiprocessing import active_children, get_context
from typing import Self

from generators.scene_graphs.make import make_shard
from generators.scene_graphs.pipelines import Pipeline, import_spacy_alone
from generators.scene_graphs.record import GraphReceipt
from generators.scene_graphs.relations import SceneGraphParser
from manifests.errors import BuildFailed
from manifests.plan import PlannedShard
from shards.storage.store import Store
from stages.end_with_parent import end_with_parent


class Parsers:
    """Makes shards in this process or, with more than one worker, in as many others, which end with the context."""

    def __init__(self, pipeline: Pipeline, workers: int) -> None:
        self._pipeline = pipeline
        self._pool: ProcessPoolExecutor | None = None
        self._others = set(active_children())
        if workers > 1:
            start = (os.getpid(), pipeline.torch)
            self._pool = ProcessPoolExecutor(workers, get_context("spawn"), _start, start)  # they start when needed

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._pool is None:
            return
        if kind is not None:
            # Waiting for what is being parsed takes so long that people interrupt again, and the pool then hangs.
            for child in set(active_children()) - self._others:
                child.kill()
        self._pool.shutdown(cancel_futures=True)

    def load(self) -> None:
        """Load the pipeline where shards will be made; raises what `SceneGraphParser` raises."""
        if self._pool is None:
            parser_of(self._pipeline)
            return
        with _deaths_told():
            self._pool.submit(load, self._pipeline).result()

    def make_shards(self, root: str, content: str, shards: Sequence[PlannedShard]) -> Iterator[GraphReceipt]:
        """Make shards below a root; receipts as they get ready. The first error ends it; shards that were done stay.

        Raises what `make_shard` and `SceneGraphParser` raise, and `BuildFailed` when a process dies.
        """
        if self._pool is None:
            for shard in shards:
                yield make_one(root, content, shard, self._pipeline)
            return
        with _deaths_told():
            made = [self._pool.submit(make_one, root, content, shard, self._pipeline) for shard in shards]
            for done in as_completed(made):
                yield done.result()


@cache
def parser_of(pipeline: Pipeline) -> SceneGraphParser:
    """The parser with a pipeline, loaded once a process."""
    return SceneGraphParser(pipeline)


def make_one(root: str, content: str, shard: PlannedShard, pipeline: Pipeline) -> GraphReceipt:
    """Make a shard below a root, with this process's parser."""
    return make_shard(Store(root), content, shard, parser_of(pipeline))


def load(pipeline: Pipeline) -> None:
    """Have this process load its parser."""
    parser_of(pipeline)


@contextmanager
def _deaths_told() -> Iterator[None]:
    try:
        yield
    except BrokenProcessPool as error:
        raise BuildFailed(
            "a process that parsed captions died (was it killed, or memory short?); run the same command again, or "
            "with fewer --workers: finished shards stay"
        ) from error


def _start(parent: int, torch: bool) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent ends its workers
    end_with_parent(parent)
    if not torch:
        import_spacy_alone()
