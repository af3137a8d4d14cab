"""Reading samples back, with the suspicion that a file from elsewhere deserves."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from manifests.errors import WrongUse
from manifests.parquet import parquet_rows
from manifests.receipt import Receipt, parse_receipt
from manifests.recipe import Recipe, Subset, recipe_from_json
from shards.kinds.fields import REMEDY, stored
from shards.kinds.kind import SampleKind, Stored
from shards.rows import KEPT, Row, read_rows
from shards.storage import layout
from shards.storage.store import Store
from shards.storage.tar_reader import BrokenTar, read_members

PARALLEL_READS = 16  # receipts are small: on an object store their latency is what costs


def read_settings(store: Store, subset: str) -> tuple[Recipe, Subset]:
    """The recipe that a subset was planned from, and its own settings there.

    Raises `WrongUse` when there is no such recipe, or it names a source or filter that is not installed.
    """
    path = layout.meta(subset, "recipe.json")
    try:
        recipe = recipe_from_json(store.read(path))
        return recipe, recipe[subset.rpartition("/")[2]]
    except (FileNotFoundError, NotADirectoryError, KeyError, ValueError, RecursionError) as error:
        raise WrongUse(f"{store.root}/{path}: not the recipe of {subset} ({error}); run its build again") from error


def read_receipts(store: Store, subset: str) -> list[Receipt]:
    """Receipts of the finished shards, by number; numbers may be missing."""
    names = [name for name in store.names(layout.meta(subset, "receipts")) if layout.shard_number(name, "json") >= 0]
    found = []
    with ThreadPoolExecutor(PARALLEL_READS) as pool:
        contents = pool.map(lambda name: store.read(layout.meta(subset, f"receipts/{name}")), names)
        for name, content in zip(names, contents, strict=True):
            receipt = parse_receipt(content)
            if receipt is None or f"{receipt.shard:05d}.json" != name:
                raise BrokenTar(f"{store.root}/{subset}/_meta/receipts/{name}: not a receipt; {REMEDY}")
            found.append(receipt)
    return sorted(found, key=lambda receipt: receipt.shard)


def index_rows(store: Store, subset: str, columns: Sequence[str]) -> Iterator[dict[str, str]]:
    """Columns of ``index.parquet``, row by row as a stream."""
    with store.open(layout.meta(subset, "index.parquet")) as stream:
        yield from parquet_rows(stream, list(columns))


def read_samples(store: Store, subset: str, limit: int | None = None) -> Iterator[Stored[Any]]:
    """Samples of all finished shards in plan order, at most ``limit``; holds one at a time.

    Raises `BrokenTar`, with tar and member, for a member that `shards.storage.tar_writer` would not have written.
    """
    tars = (layout.tar(subset, one.split, one.shard) for one in read_receipts(store, subset) if one.tar_size)
    return itertools.islice(itertools.chain.from_iterable(read_tar(store, tar) for tar in tars), limit)


def of_kind(samples: Iterable[Stored[Any]], kind: SampleKind, use: str) -> Iterator[Stored[Any]]:
    """Samples that must be of one kind, else `WrongUse`. use: what takes only these, for the message."""
    for sample in samples:
        if sample.kind is not kind:
            raise WrongUse(
                f"{sample.key} is a {sample.kind.name}, and {use} takes {kind.name}s; name other subsets with --only"
            )
        yield sample


def _spread(receipts: Sequence[Receipt], count: int) -> Iterator[tuple[Receipt, set[int]]]:
    """Receipts of ``count`` samples that are evenly spread (all when there are fewer), with their places in the shard.

    Sample k is the middle of the k-th of ``count`` equal parts, so that the same dataset shows the same.
    """
    start, total = 0, sum(receipt.kept for receipt in receipts)
    count = min(count, total)
    wanted = {(2 * k + 1) * total // (2 * count) for k in range(count)}
    for receipt in receipts:
        if places := {place - start for place in wanted if start <= place < start + receipt.kept}:
            yield receipt, places
        start += receipt.kept


def read_spread(store: Store, subset: str, count: int) -> list[Stored[Any]]:
    """``count`` samples with images evenly spread over a subset (all when it has fewer), in plan order."""
    found: list[Stored[Any]] = []
    for receipt, places in _spread([one for one in read_receipts(store, subset) if one.tar_size], count):
        samples = read_tar(store, layout.tar(subset, receipt.split, receipt.shard))
        upto = itertools.islice(samples, max(places) + 1)
        found += [sample for place, sample in enumerate(upto) if place in places]
    return found


def read_spread_rows(store: Store, subset: str, count: int) -> list[Row]:
    """As `read_spread`, but the rows of samples without images, which lie in no tar."""
    found: list[Row] = []
    for receipt, places in _spread([one for one in read_receipts(store, subset) if not one.tar_size], count):
        with store.open(layout.rows(subset, receipt.shard)) as stream:
            kept = [row for row in read_rows(stream) if row.verdict == KEPT]
        found += [row for place, row in enumerate(kept) if place in places]
    return found


def read_tar(store: Store, path: str) -> Iterator[Stored[Any]]:
    """The samples of one tar, in order. Nothing is extracted: members are read into memory, each within a limit."""
    where = f"{store.root}/{path}"
    try:
        with store.open(path) as stream:
            members = read_members(stream, where)
            for key, group in itertools.groupby(members, key=lambda member: member[0].partition(".")[0]):
                fields: dict[str, bytes] = {}
                for name, content in group:
                    field = name.partition(".")[2]
                    if field in fields:
                        raise BrokenTar(f"{where}: member {name!r} occurs twice; {REMEDY}")
                    fields[field] = content
                yield stored(key, fields, where)
    except FileNotFoundError as error:
        raise BrokenTar(f"{where}: named by its receipt, but absent; {REMEDY}") from error
