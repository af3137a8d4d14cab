"""Which shards of captions are parsed. The receipts say so; nothing else is remembered."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from generators.scene_graphs.record import (
    BEGUN,
    RECORD,
    SHARDS,
    GraphReceipt,
    Index,
    PlanRecord,
    receipt_file,
    relations_file,
)
from manifests.canonical import digest
from manifests.errors import WrongUse
from manifests.plan import PlannedShard, plan_digest, read_shards
from manifests.receipt import parsed
from shards.storage.store import Store
from stages.status import PARALLEL_READS

AGAIN = "run the same twinset parse again"


@dataclass(slots=True)
class GraphProgress:
    """Shards of captions by state. stale: shard number -> why its receipt does not hold."""

    record: PlanRecord
    planned: Sequence[PlannedShard]
    done: dict[int, GraphReceipt] = field(default_factory=dict)
    missing: list[int] = field(default_factory=list)
    stale: dict[int, str] = field(default_factory=dict)

    @property
    def todo(self) -> list[PlannedShard]:
        """Shards to make, in order."""
        return [shard for shard in self.planned if shard.shard not in self.done]

    def index(self) -> Index:
        """What is written when every shard is done."""
        receipts = [receipt for _, receipt in sorted(self.done.items())]
        return Index(
            digest=digest([receipt.model_dump(mode="json") for receipt in receipts]),
            content=self.record.content,
            captions=self.record.captions,
            without=sum(receipt.without for receipt in receipts),
            relations=sum(receipt.relations for receipt in receipts),
            shards=len(receipts),
            left_out=self.record.left_out,
            examples=self.record.examples,
        )

    def counts(self) -> dict[str, Any]:
        """The numbers that `twinset status --json` prints. planned, parsed, without: captions."""
        return {
            "planned": self.record.captions,
            "parsed": sum(receipt.captions for receipt in self.done.values()),
            "relations": sum(receipt.relations for receipt in self.done.values()),
            "without": sum(receipt.without for receipt in self.done.values()),
            "left_out": self.record.left_out,
            "shards": len(self.planned),
            "done": len(self.done),
            "missing": len(self.missing),
            "stale": {f"{number:05d}": why for number, why in sorted(self.stale.items())},
        }


def holds_graphs(store: Store) -> bool:
    """Whether `twinset parse` has begun below a root."""
    return store.size(BEGUN) is not None


def read_plan(store: Store) -> tuple[PlanRecord, list[PlannedShard]]:
    """The plan below a root; raises `WrongUse` when it is not whole."""
    record = parsed(PlanRecord, store.read(RECORD)) if store.size(RECORD) is not None else None
    if record is None:
        raise WrongUse(f"{RECORD}: absent, or not a record of this version of twinset; {AGAIN}")
    try:
        with store.open(SHARDS) as stream:
            planned = read_shards(stream)
    except (FileNotFoundError, WrongUse) as error:
        raise WrongUse(f"{SHARDS}: absent, or not a list of shards; {AGAIN}") from error
    if plan_digest(planned) != record.plan:
        raise WrongUse(f"{SHARDS}: not the shards that {RECORD} was written for; {AGAIN}")
    return record, planned


def graph_progress(
    store: Store, record: PlanRecord, planned: Sequence[PlannedShard], hashed: bool = True
) -> GraphProgress:
    """State of all shards. hashed: whether relations are hashed again, or only their sizes looked at."""
    state = GraphProgress(record, planned)

    def look(shard: PlannedShard) -> tuple[GraphReceipt | None, str]:
        try:
            receipt = parsed(GraphReceipt, store.read(receipt_file(shard.shard)))
        except FileNotFoundError:
            return None, ""
        return receipt, _why_stale(store, record, shard, receipt, hashed)

    with ThreadPoolExecutor(PARALLEL_READS) as pool:
        for shard, (receipt, why) in zip(planned, pool.map(look, planned), strict=True):
            if why:
                state.stale[shard.shard] = why
            elif receipt is None:
                state.missing.append(shard.shard)
            else:
                state.done[shard.shard] = receipt
    return state


def _why_stale(
    store: Store, record: PlanRecord, planned: PlannedShard, receipt: GraphReceipt | None, hashed: bool
) -> str:
    """Why a receipt (None: one that cannot be read) does not vouch for a planned shard; empty when it does."""
    if receipt is None:
        return f"{receipt_file(planned.shard)} cannot be read"
    if receipt.shard != planned.shard:
        return f"{receipt_file(planned.shard)} is of another shard"
    if (receipt.content, receipt.slice) != (record.content, planned.slice):
        return "the captions, the pipeline or a version changed"
    path = relations_file(planned.shard)
    size = store.size(path)
    if size is None:
        return f"{path} is absent"
    if size != receipt.size:
        return f"{path} has {size} bytes, its receipt says {receipt.size}"
    if hashed and (sha256 := store.sha256(path)[0]) != receipt.sha256:
        return f"{path} has sha256 {sha256}, its receipt says {receipt.sha256}"
    return ""
