"""Duplicates among finished subsets: one of all samples with the same images and captions stays."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from manifests.parquet import compact, read_parquet
from manifests.receipt import Made, Receipt
from shards.rows import DUPLICATE, KEPT, REJECTED, read_rows, write_rows
from shards.storage import layout
from shards.storage.store import Store
from shards.storage.tar_reader import read_members
from shards.storage.tar_writer import TarWriter
from stages.making.make import finish_shard
from stages.status import StageState


def drop_duplicates(store: Store, states: Mapping[str, StageState]) -> tuple[set[str], dict[str, list[int]]]:
    """Keep one of all samples, of any subset, with the same images and captions: that of the smallest source identity.

    The choice depends on the samples alone: not on the order in which they were made, nor on the names of subsets,
    unless two subsets hold the very same record of the same kind of source. Tars with a duplicate are written again
    without it.

    Returns:
        Subsets of which a shard changed; and by subset the shards to be made again, because their tar lacks a sample
        that an earlier run took for a duplicate of one that is now gone.
    """
    expected = _duplicates(store, states)
    changed: set[str] = set()
    again: dict[str, list[int]] = {}
    for home, state in states.items():
        here = expected[home]
        suspects = here.keys() | {n for n, found in state.done.columns("duplicates") if found != "{}"}
        for number in sorted(suspects):
            receipt, drop = state.done[number], here.get(number, {})
            if drop == receipt.duplicates:
                continue
            if drop.keys() >= receipt.duplicates.keys():
                _without(store, home, receipt, drop)
                changed.add(home)
            else:
                again.setdefault(home, []).append(number)
    return changed, again


def _duplicates(store: Store, states: Mapping[str, StageState]) -> dict[str, dict[int, dict[str, str]]]:
    """Home -> shard -> key of a duplicate -> key of the sample that stays."""
    drop: dict[str, dict[int, dict[str, str]]] = {home: defaultdict(dict) for home in states}
    tables = []
    for home, state in states.items():
        source = state.stage.facts["generator"]["kind"]
        for number, kept, duplicates in state.done.columns("kept", "duplicates"):
            if not kept and duplicates == "{}":
                continue
            with store.open(layout.rows(home, number)) as stream:
                rows = read_parquet(stream, ["key", "identity", "reason", "verdict", "content"])
            rows = rows.filter(pc.or_(pc.equal(rows["verdict"], KEPT), pc.equal(rows["reason"], DUPLICATE)))
            rows = rows.select(["content", "identity", "key"])
            for name, value in (("source", source), ("home", home), ("shard", number)):
                rows = rows.append_column(name, pa.repeat(value, len(rows)))
            tables.append(rows)
            compact(tables)
    if not tables:
        return drop
    table = pa.concat_tables(tables)
    counted = table.group_by("content", use_threads=False).aggregate([("key", "count")])
    repeated = counted.filter(pc.greater(counted["key_count"], 1))["content"]
    found = table.filter(pc.is_in(table["content"], repeated.combine_chunks()))
    order = [(name, "ascending") for name in ("content", "source", "identity", "home", "key")]
    for _, same in itertools.groupby(found.sort_by(order).to_pylist(), key=lambda row: row["content"]):
        first, *others = same
        for row in others:
            drop[row["home"]][row["shard"]][row["key"]] = first["key"]
    return drop


def _without(store: Store, home: str, receipt: Receipt, drop: Mapping[str, str]) -> None:
    """Write a shard again without some of its samples."""
    with store.open(layout.rows(home, receipt.shard)) as stream:
        rows = read_rows(stream)
    for row in rows:
        if row.key in drop:
            row.verdict, row.filter, row.reason = REJECTED, "duplicates", DUPLICATE
            row.detail = f"same as {drop[row.key]}"
    path = layout.tar(home, receipt.split, receipt.shard)
    with store.spool() as spool:
        write_rows(rows, spool / "rows")
        with TarWriter(spool / "tar") as tar:
            # Without a tar all were dropped before, and only the names of their twins change.
            if receipt.tar_size:
                with store.open(path) as stream:
                    for name, content in read_members(stream, path):
                        if name.partition(".")[0] not in drop:
                            tar.add(name, content)
        known = receipt.model_dump(include={*Made.model_fields})
        known |= {"tar_sha256": tar.sha256, "tar_size": tar.size, "duplicates": dict(drop)}
        finish_shard(store, home, [(row.verdict, row.reason) for row in rows], spool, Made(**known))
