"""Which shards of a subset are done. The receipts say so; nothing else is remembered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from manifests.errors import WrongUse
from manifests.plan import PlannedShard, read_shards
from manifests.receipt import Receipt, parse_receipt
from manifests.recipe import SUBSET_NAME
from manifests.stage import Stage, parse_stage
from shards.media.source_media import Media
from shards.storage import layout
from shards.storage.store import Store

PARALLEL_READS = 16  # receipts are small: on an object store their latency is what costs


@dataclass(slots=True)
class Progress:
    """A subset's shards by state. stale: shard number -> why its receipt no longer holds."""

    stage: Stage
    planned: list[PlannedShard]
    done: dict[int, Receipt] = field(default_factory=dict)
    missing: list[int] = field(default_factory=list)
    stale: dict[int, str] = field(default_factory=dict)

    @property
    def todo(self) -> list[int]:
        """Shards to make, in order."""
        return sorted([*self.missing, *self.stale])

    def counts(self) -> dict[str, Any]:
        """planned, kept, rejected by reason, shards: the numbers that `--json` prints."""
        rejected: Counter[str] = Counter()
        for receipt in self.done.values():
            rejected.update(receipt.rejected)
        return {
            "planned": self.stage.planned,
            "kept": sum(receipt.kept for receipt in self.done.values()),
            "rejected": dict(sorted(rejected.items())),
            "shards": len(self.planned),
        }


def subsets_in(store: Store) -> list[str]:
    """Names of the subsets that have been planned below OUT."""
    return [name for name in store.names("") if store.size(layout.meta(name, "stage.json")) is not None]


def unplanned_in(store: Store) -> dict[str, str]:
    """Subsets below OUT whose stage record is gone or was never written, each with what to do about it."""
    found = {}
    for name in store.names(""):
        record = layout.meta(name, "stage.json")
        if SUBSET_NAME.fullmatch(name) and store.size(record) is None and store.names(f"{name}/{layout.META}"):
            found[name] = f"{record}: absent, so that nothing vouches for {name}; run the same build again"
    return found


def read_stage(store: Store, subset: str) -> Stage | None:
    """A subset's stage record, or None when it was never planned; raises `WrongUse` when it is of another subset."""
    path = layout.meta(subset, "stage.json")
    try:
        stage = parse_stage(f"{store.root}/{path}", store.read(path))
    except (FileNotFoundError, NotADirectoryError):
        return None
    # The name becomes part of paths that are written and removed, and the file may come from a stranger.
    if stage.name != subset or not SUBSET_NAME.fullmatch(subset):
        raise WrongUse(f"{store.root}/{path}: a record of {stage.name!r}, not of {subset!r}; build into a new --out")
    return stage


def read_planned(store: Store, subset: str) -> list[PlannedShard]:
    """The shards of a subset's plan, in order."""
    with store.open(layout.plan(subset, "shards.parquet")) as stream:
        return read_shards(stream)


def progress(
    store: Store,
    stage: Stage,
    planned: list[PlannedShard],
    media: Media | None = None,
    numbers: Iterable[int] | None = None,
) -> Progress:
    """State of all shards, or of those with the given numbers.

    media: where inputs are looked for, to notice rejections that went stale; None leaves that out.
    """
    wanted = planned if numbers is None else [planned[number] for number in numbers]
    names = set(store.names(layout.meta(stage.name, "receipts")))
    state = Progress(stage, planned)

    def look(shard: PlannedShard) -> tuple[PlannedShard, Receipt | None, str]:
        path = layout.receipt(stage.name, shard.shard)
        if path.rsplit("/", 1)[-1] not in names:
            return shard, None, ""
        try:
            receipt = parse_receipt(store.read(path))
        except FileNotFoundError:
            return shard, None, ""
        return shard, receipt, why_stale(store, stage, shard, receipt, media)

    with ThreadPoolExecutor(PARALLEL_READS) as pool:
        for shard, receipt, why in pool.map(look, wanted):
            if why:
                state.stale[shard.shard] = why
            elif receipt is None:
                state.missing.append(shard.shard)
            else:
                state.done[shard.shard] = receipt
    return state


def why_stale(store: Store, stage: Stage, planned: PlannedShard, receipt: Receipt | None, media: Media | None) -> str:
    """Why a receipt (None: one that cannot be read) does not vouch for a planned shard; empty when it does."""
    if receipt is None:
        return "its receipt cannot be read"
    if receipt.shard != planned.shard or receipt.split != planned.split:
        return "its receipt is of another shard"
    if receipt.content != stage.content or receipt.slice != planned.slice:
        return "the recipe, its inputs or a version changed"
    if receipt.tar_size and store.size(layout.tar(stage.name, receipt.split, receipt.shard)) != receipt.tar_size:
        return "its tar is missing or has another size"
    if store.size(layout.rows(stage.name, receipt.shard)) != receipt.rows_size:
        return "its rows are missing or have another size"
    if media is not None:
        for name, size in receipt.missing.items():
            if media.size(name) != size:
                return f"{name} was {'absent' if size is None else 'unreadable'} and has changed"
    return ""
