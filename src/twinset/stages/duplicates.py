"""Duplicates among finished subsets: one of all samples with the same images and captions stays."""

import itertools
from collections import defaultdict
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from twinset.contracts.plan import read_parquet
from twinset.contracts.receipt import Made, Receipt
from twinset.shards.rows import DUPLICATE, REJECTED, read_rows, write_rows
from twinset.shards.storage import layout
from twinset.shards.storage.member_headers import read_members
from twinset.shards.storage.store import Store
from twinset.shards.storage.tar_reader import TarWriter
from twinset.stages.making.make import finish_shard
from twinset.stages.status import StageState

_COMPARED = ["content", "identity", "key"]


def drop_duplicates(store: Store, states: Mapping[str, StageState]) -> tuple[set[str], dict[str, list[int]]]:
    """Keep one of all samples, of any subset, with the same images and captions: that of the smallest source identity.

    The choice depends on the samples alone: not on the order in which they were made, nor on the names of subsets,
    unless two subsets hold the very same record of the same kind of source. Tars with a duplicate are written again
    without it.

    Args:
        states: of stages whose index is current (`stages.index.is_indexed`).

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
        # The index has the rows that were kept, shard after shard: reading it costs no look at each shard.
        with store.open(layout.meta(home, "index.parquet")) as stream:
            rows = read_parquet(stream, _COMPARED)
        shards = np.repeat(np.array(list(state.done), np.int64), state.done.column("kept"))
        found_in = [rows.append_column("shard", pa.array(shards))]
        for number, duplicates in state.done.columns("duplicates"):
            if duplicates != "{}":
                with store.open(layout.rows(home, number)) as stream:
                    rows = read_parquet(stream, [*_COMPARED, "reason"])
                rows = rows.filter(pc.equal(rows["reason"], DUPLICATE)).select(_COMPARED)
                found_in.append(rows.append_column("shard", pa.repeat(number, len(rows))))
        for rows in found_in:
            tables.append(rows.append_column("source", pa.repeat(source, len(rows))))
            tables[-1] = tables[-1].append_column("home", pa.repeat(home, len(rows)))
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
    place = layout.rows(home, receipt.shard)
    with store.open(place) as stream:
        rows = read_rows(stream, f"{store.root}/{place}")
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
        finish_shard(store, home, [(row.verdict, row.reason) for row in rows], spool, receipt, Made(**known))
