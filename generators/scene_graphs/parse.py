"""Captions to relations: plan once, make the shards that are not done, and write the index when all are."""

from __future__ import annotations

import json
import logging
import os
import re
import socket
import time
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from generators.scene_graphs import relations
from generators.scene_graphs.caption_plan import write_captions
from generators.scene_graphs.caption_sources import CaptionSources, caption_sources
from generators.scene_graphs.make import receipt_of
from generators.scene_graphs.pipelines import EMBEDDED, LIBRARIES, Pipeline, find_pipeline
from generators.scene_graphs.record import (
    INDEX,
    RECORD,
    SCHEMA_VERSION,
    SHARDS,
    Index,
    Place,
    PlanRecord,
    captions_file,
    receipt_file,
    relations_file,
)
from generators.scene_graphs.workers import make_shards
from manifests.canonical import digest
from manifests.errors import WrongUse
from manifests.plan import PlannedShard, plan_digest, read_shards
from manifests.receipt import parsed
from manifests.stage import runtime_class
from shards.store import Store

SHARD_SIZE = 2048  # captions: two or three seconds of one core
BEGUN = "_meta/log/plan.json"

logger = logging.getLogger("twinset")


def parse_captions(
    captions: Sequence[Path], to: str, pipeline: str = EMBEDDED, workers: int = 1, shard_size: int = SHARD_SIZE
) -> Index:
    """Write the relations of all captions below ``to`` (a folder or fsspec URL), or go on with what was begun there.

    captions: files and folders, read in this order (`generators.scene_graphs.caption_sources`). pipeline: `EMBEDDED`,
    an installed package or a folder. workers: processes. The files are the same on any number of them and after any
    interruption: ``captions/NNNNN.parquet``, ``relations/NNNNN.parquet``, receipts and an index, which is written last.
    Raises `WrongUse` for captions or a pipeline that cannot be used, `BuildFailed` and OSError for what went wrong on
    the way; the same call resumes.
    """
    found = find_pipeline(pipeline)
    store = Store(to)
    store.sweep()
    record, planned = prepare(store, caption_sources(captions), found, shard_size)
    receipts = {shard.shard: receipt_of(store, record.content, shard) for shard in planned}
    todo = [shard for shard in planned if receipts[shard.shard] is None]
    if todo:
        store.remove(INDEX)
    for done, receipt in enumerate(make_shards(store.root, record.content, todo, found, workers), 1):
        receipts[receipt.shard] = receipt
        logger.info("shard %05d: %d relations, %d of %d", receipt.shard, receipt.relations, done, len(todo))
    _remove_others(store, len(planned))
    made = [receipt for _, receipt in sorted(receipts.items()) if receipt is not None]
    index = Index(
        digest=digest([receipt.model_dump(mode="json") for receipt in made]),
        content=record.content,
        captions=record.captions,
        without=sum(receipt.without for receipt in made),
        relations=sum(receipt.relations for receipt in made),
        shards=len(made),
        left_out=record.left_out,
        examples=record.examples,
    )
    if store.size(INDEX) is None or store.read(INDEX) != index.to_bytes():
        store.write(INDEX, index.to_bytes())
    return index


def prepare(
    store: Store, sources: CaptionSources, pipeline: Pipeline, shard_size: int
) -> tuple[PlanRecord, list[PlannedShard]]:
    """The plan below a store: that which is there when it is of the same captions and settings, else a new one."""
    facts = _facts(sources, pipeline, shard_size)
    record = parsed(PlanRecord, store.read(RECORD)) if store.size(RECORD) is not None else None
    if record is not None and record.facts == facts and (planned := _planned(store, record)) is not None:
        return record, planned
    _refuse_foreign(store)
    log = {"host": socket.gethostname(), "pid": os.getpid(), "began": time.time()}
    store.write(BEGUN, json.dumps(log).encode())
    for path in (INDEX, RECORD):
        store.remove(path)
    plan = write_captions(sources, store, shard_size)
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


def _planned(store: Store, record: PlanRecord) -> list[PlannedShard] | None:
    """The shards of a recorded plan, or None when some of it is gone."""
    if store.size(SHARDS) is None:
        return None
    with store.open(SHARDS) as stream:
        planned = read_shards(stream)
    there = set(store.names(_folder(captions_file)))
    whole = {_name(captions_file, shard.shard) for shard in planned} <= there and plan_digest(planned) == record.plan
    return planned if whole else None


def _refuse_foreign(store: Store) -> None:
    """Raise `WrongUse` where files that twinset did not write stand in the way of those that it would."""
    if store.size(BEGUN) is not None:
        return
    for path_of in (captions_file, relations_file):
        if store.names(folder := _folder(path_of)):
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


def _remove_others(store: Store, shards: int) -> None:
    """Remove shards of an earlier, longer plan: who reads the folder of relations reads all that lies in it."""
    for path_of in (receipt_file, relations_file, captions_file):
        for name in store.names(folder := _folder(path_of)):
            found = re.fullmatch(r"(\d{5,})\.\w+", name)
            if found and int(found[1]) >= shards and name == _name(path_of, int(found[1])):
                store.remove(f"{folder}/{name}")


def _folder(path_of: Callable[[int], str]) -> str:
    return path_of(0).rpartition("/")[0]


def _name(path_of: Callable[[int], str], shard: int) -> str:
    return path_of(shard).rpartition("/")[2]
