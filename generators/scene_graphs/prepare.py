"""The plan of a parse: captions cut into shards and recorded, once they have all been read and nothing refused."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from generators.scene_graphs import relations
from generators.scene_graphs.caption_plan import write_captions
from generators.scene_graphs.caption_sources import CaptionSources
from generators.scene_graphs.pipelines import LIBRARIES, Pipeline
from generators.scene_graphs.progress import holds_graphs, read_plan
from generators.scene_graphs.record import (
    BEGUN,
    INDEX,
    RECORD,
    SCHEMA_VERSION,
    SHARDS,
    Place,
    PlanRecord,
    captions_file,
    relations_file,
)
from manifests.canonical import digest
from manifests.errors import WrongUse
from manifests.plan import PlannedShard
from manifests.stage import runtime_class
from shards.storage.store import Store


def prepare(
    store: Store, sources: CaptionSources, pipeline: Pipeline, shard_size: int, check: Callable[[], None]
) -> tuple[PlanRecord, list[PlannedShard]]:
    """The plan below a store: that which is there when it is of the same captions and settings, else a new one.

    check: called before a new one, to raise what would keep its shards from being made. Nothing below the store is
    changed until the new plan is whole in the spool.
    """
    facts = _facts(sources, pipeline, shard_size)
    try:
        record, planned = read_plan(store)
    except WrongUse:
        pass
    else:
        if record.facts == facts and _captions_are_there(store, planned):
            return record, planned
    _refuse_foreign(store)
    check()
    with store.spool() as spool:
        plan = write_captions(sources, spool, shard_size)
        log = {"host": socket.gethostname(), "pid": os.getpid(), "began": time.time()}
        store.write(BEGUN, json.dumps(log).encode())
        for path in (INDEX, RECORD):
            store.remove(path)
        for shard in plan.shards:
            store.move_in(spool / captions_file(shard.shard), captions_file(shard.shard))
        store.move_in(spool / SHARDS, SHARDS)
    record = PlanRecord(
        facts=facts,
        content=digest(facts),
        plan=plan.digest,
        captions=sum(shard.planned for shard in plan.shards),
        shards=len(plan.shards),
        left_out=plan.left_out,
        examples=[Place(place=one.place, reason=one.reason) for one in plan.examples],
    )
    store.write(RECORD, record.to_bytes())
    return record, list(plan.shards)


def _captions_are_there(store: Store, planned: list[PlannedShard]) -> bool:
    folder = captions_file(0).rpartition("/")[0]
    return {captions_file(shard.shard) for shard in planned} <= {f"{folder}/{name}" for name in store.names(folder)}


def _refuse_foreign(store: Store) -> None:
    """Raise `WrongUse` where files that twinset parse did not write stand in the way of those that it would."""
    if holds_graphs(store):
        return
    for path in (captions_file(0), relations_file(0), RECORD):
        if store.names(folder := path.rpartition("/")[0]):
            raise WrongUse(
                f"{store.root}/{folder} holds files that twinset parse did not write, and would replace; name another "
                "--to"
            )


def _facts(sources: CaptionSources, pipeline: Pipeline, shard_size: int) -> dict[str, Any]:
    try:
        libraries = {name: version(name) for name in LIBRARIES}
    except PackageNotFoundError as error:
        raise WrongUse(
            f"{error.name} is not installed; captions are parsed with it: pip install 'twinset[text]'"
        ) from error
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "scene-graphs",
        "version": relations.VERSION,
        "batch": relations.BATCH,
        "inputs": sources.digest(),
        "pipeline": pipeline.digest,
        "libraries": libraries,
        "runtime": runtime_class(neural=True, micro_batch=relations.BATCH),
        "shard_size": shard_size,
    }
