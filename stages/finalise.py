"""The end of a build: every tar re-hashed, duplicates taken out across subsets, leftovers of older plans removed."""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.compute as pc

from manifests.parquet import read_parquet
from manifests.plan import plan_file
from manifests.receipt import Receipt, parse_receipt
from shards.rows import DUPLICATE, KEPT, REJECTED, read_rows
from shards.storage import layout
from shards.storage.store import Store
from shards.storage.tar_reader import read_members
from shards.storage.tar_writer import TarWriter
from stages.receipts import publish_shard
from stages.status import Progress

PARALLEL_HASHES = 4


def disagreeing(store: Store, state: Progress) -> list[int]:
    """Shards whose tar or rows are not what their receipt says; all are read whole."""

    def wrong(receipt: Receipt) -> int | None:
        expected = [(layout.rows(state.stage.name, receipt.shard), receipt.rows_sha256)]
        if receipt.tar_size:
            expected.append((layout.tar(state.stage.name, receipt.split, receipt.shard), receipt.tar_sha256))
        for path, sha256 in expected:
            try:
                if store.sha256(path)[0] != sha256:
                    return receipt.shard
            except FileNotFoundError:
                return receipt.shard
        return None

    with ThreadPoolExecutor(PARALLEL_HASHES) as pool:
        return [number for number in pool.map(wrong, state.done.values()) if number is not None]


def forget(store: Store, subset: str, numbers: Iterable[int]) -> None:
    """Take back receipts, so that their shards are made again."""
    for number in numbers:
        store.remove(layout.receipt(subset, number))


def remove_leftovers(store: Store, state: Progress) -> list[str]:
    """Remove tars, rows, receipts, logs and plan files that the present plan does not know; returns their paths.

    Tars are looked for in the folders of splits that the plan or a receipt names: other folders are somebody else's.
    """
    name, removed = state.stage.name, []
    known = {layout.tar(name, done.split, done.shard) for done in state.done.values() if done.tar_size}
    for shard in state.planned:
        known |= {path(name, shard.shard) for path in (layout.rows, layout.receipt, layout.log)}
        known.add(layout.plan(name, plan_file(shard.shard)[0]))
    splits = {shard.split for shard in state.planned}
    for file in store.names(layout.meta(name, "receipts")):
        if (path := layout.meta(name, f"receipts/{file}")) not in known:
            receipt = parse_receipt(store.read(path))
            splits |= {receipt.split} if receipt is not None else set()
    folders = {f"{name}/{split}": "tar" for split in sorted(splits)}
    folders |= {layout.meta(name, "rows"): "parquet", layout.meta(name, "plan"): "parquet"}
    # Receipts go last: should this be interrupted, they still name the splits of what is left.
    folders |= {layout.meta(name, "log"): "json", layout.meta(name, "receipts"): "json"}
    for folder, suffix in folders.items():
        for file in store.names(folder):
            path = f"{folder}/{file}"
            if path not in known and re.fullmatch(rf"\d{{5,}}\.{suffix}", file):
                store.remove(path)
                removed.append(path)
    return removed


def drop_duplicates(store: Store, states: Mapping[str, Progress]) -> dict[str, list[int]]:
    """Keep one of all samples, of any subset, with the same images and captions: that with the smallest (subset, key).

    The choice depends on the set of samples alone, not on the order in which they were made. Tars that hold a
    duplicate are written anew without it. Returns, by subset, shards to be made again: their tar lacks a sample that
    an earlier run took for a duplicate of one that is now gone.
    """
    expected = _duplicates(store, states)
    again: dict[str, list[int]] = {}
    for subset, state in states.items():
        for number, receipt in state.done.items():
            drop = expected.get((subset, number), {})
            if drop == receipt.duplicates:
                continue
            if drop.keys() >= receipt.duplicates.keys():
                state.done[number] = _without(store, subset, receipt, drop)
            else:
                again.setdefault(subset, []).append(number)
    return again


def _duplicates(store: Store, states: Mapping[str, Progress]) -> dict[tuple[str, int], dict[str, str]]:
    """(subset, shard) -> key of a duplicate -> key of the sample that stays."""
    tables = []
    for subset, state in states.items():
        for number, receipt in state.done.items():
            if not receipt.kept and not receipt.duplicates:
                continue
            with store.open(layout.rows(subset, number)) as stream:
                rows = read_parquet(stream, ["key", "reason", "verdict", "content"])
            rows = rows.filter(pc.or_(pc.equal(rows["verdict"], KEPT), pc.equal(rows["reason"], DUPLICATE)))
            rows = rows.select(["content", "key"])
            rows = rows.append_column("subset", pa.array([subset] * len(rows), pa.string()))
            tables.append(rows.append_column("shard", pa.array([number] * len(rows), pa.int64())))
    if not tables:
        return {}
    table = pa.concat_tables(tables)
    counted = table.group_by("content", use_threads=False).aggregate([("key", "count")])
    repeated = counted.filter(pc.greater(counted["key_count"], 1))["content"]
    found = table.filter(pc.is_in(table["content"], repeated.combine_chunks()))
    ordered = found.sort_by([("content", "ascending"), ("subset", "ascending"), ("key", "ascending")]).to_pylist()
    drop: dict[tuple[str, int], dict[str, str]] = defaultdict(dict)
    for _, same in itertools.groupby(ordered, key=lambda row: row["content"]):
        first, *others = same
        for row in others:
            drop[row["subset"], row["shard"]][row["key"]] = first["key"]
    return drop


def _without(store: Store, subset: str, receipt: Receipt, drop: Mapping[str, str]) -> Receipt:
    """Publish a shard anew without some of its samples."""
    with store.open(layout.rows(subset, receipt.shard)) as stream:
        rows = read_rows(stream)
    for row in rows:
        if row.key in drop:
            row.verdict, row.filter, row.reason = REJECTED, "duplicates", DUPLICATE
            row.detail = f"same as {drop[row.key]}"
    path = layout.tar(subset, receipt.split, receipt.shard)
    with store.spool() as spool:
        with TarWriter(spool / "tar") as tar:
            # Without a tar all were dropped before, and only the names of their twins change.
            if receipt.tar_size:
                with store.open(path) as stream:
                    for name, content in read_members(stream, path):
                        if name.partition(".")[0] not in drop:
                            tar.add(name, content)
        draft = receipt.model_copy(update={"tar_sha256": tar.sha256, "tar_size": tar.size, "duplicates": dict(drop)})
        return publish_shard(store, subset, draft, rows, spool)
