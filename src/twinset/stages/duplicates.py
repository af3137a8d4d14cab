"""Duplicates among finished subsets: one of all samples with the same images and captions stays."""

from collections import defaultdict
from collections.abc import Mapping
from typing import cast

import numpy as np
import polars as pl

from twinset.contracts.receipt import Made, Receipt
from twinset.shards.plan import read_parquet
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

    states: of stages whose index is current (`stages.index.is_indexed`). Returns the subsets of which a shard changed;
    and by subset the shards to be made again, because their tar lacks a sample that an earlier run took for a duplicate
    of one that is now gone.
    """
    expected = _duplicates(store, states)
    changed, again = set[str](), dict[str, list[int]]()
    for home, state in states.items():
        before = {number for number, duplicates in state.done.columns("duplicates") if duplicates != "{}"}
        for number in sorted(before | {shard for of, shard in expected if of == home}):
            receipt, drop = state.done[number], expected.get((home, number), {})
            if drop == receipt.duplicates:
                continue
            if drop.keys() >= receipt.duplicates.keys():
                _without(store, home, receipt, drop)
                changed.add(home)
            else:
                again.setdefault(home, []).append(number)
    return changed, again


def _duplicates(store: Store, states: Mapping[str, StageState]) -> dict[tuple[str, int], dict[str, str]]:
    """By home and shard: key of each duplicate, and key of the sample that stays."""
    tables = list[pl.DataFrame]()
    for home, state in states.items():
        # The index has the rows that were kept, shard after shard: reading it costs no look at each shard.
        kept = _read(store, layout.meta(home, "index.parquet"), _COMPARED)
        rows = [kept.with_columns(shard=np.repeat(np.array([*state.done], np.int64), state.done.column("kept")))]
        for number, duplicates in state.done.columns("duplicates"):
            if duplicates != "{}":
                judged = _read(store, layout.rows(home, number), [*_COMPARED, "reason"])
                dropped = judged.filter(pl.col("reason") == DUPLICATE).select(_COMPARED)
                rows.append(dropped.with_columns(shard=pl.lit(number, pl.Int64)))
        source = pl.lit(state.stage.facts["generator"]["kind"])
        tables.append(pl.concat(rows).with_columns(home=pl.lit(home), source=source))
    drop = defaultdict[tuple[str, int], dict[str, str]](dict)
    if tables:
        same = pl.concat(tables).filter(pl.col("content").is_duplicated())
        same = same.sort("content", "source", "identity", "home", "key")
        same = same.with_columns(stays=pl.col("key").first().over("content"))
        for row in same.filter(~pl.col("content").is_first_distinct()).iter_rows(named=True):
            drop[row["home"], row["shard"]][row["key"]] = row["stays"]
    return drop


def _read(store: Store, path: str, columns: list[str]) -> pl.DataFrame:
    with store.open(path) as stream:
        return cast(pl.DataFrame, pl.from_arrow(read_parquet(stream, columns)))


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
