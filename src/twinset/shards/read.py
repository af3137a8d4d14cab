"""Reading samples back, with the suspicion that a file from elsewhere deserves."""

import io
import itertools
import tarfile
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, BinaryIO

import pyarrow as pa

from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.contracts.kinds.kind import SampleKind, Stored, plural
from twinset.contracts.licences.terms import TERMS
from twinset.contracts.recipe import Recipe, Subset, recipe_from_json
from twinset.shards.ledger import Receipts, read_receipts
from twinset.shards.plan import parquet_batches, parquet_columns
from twinset.shards.rows import KEPT, Row, read_rows, stored
from twinset.shards.storage import layout
from twinset.shards.storage.store import Store
from twinset.shards.storage.tar_reader import REMEDY, BrokenTar, member_places, read_members


class DamagedIndex(WrongUse):
    """``index.parquet`` is not what a build wrote, or of another kind of stage than is asked for."""


def read_settings(store: Store, home: str) -> tuple[Recipe, Subset]:
    """The recipe that a stage below OUT was last built with, and its own settings there.

    Raises `WrongUse` when there is no such recipe, or it names a source or filter that is not installed.
    """
    path = layout.recipe(home)
    try:
        recipe = recipe_from_json(store.read(path))
    except (FileNotFoundError, NotADirectoryError, ValueError, RecursionError) as error:
        raise WrongUse(f"{store.root}/{path}: cannot be used here ({error}); run the build of {home} again") from error
    for name, stage in recipe.all.items():
        if recipe.home(name) == home:
            return recipe, stage
    raise WrongUse(f"{store.root}/{path}: a recipe without {home}; run the build of {home} again")


def finished(store: Store, subset: str) -> Receipts:
    """Receipts of the finished shards, by number; numbers may be missing. Raises `BrokenTar` for what is no receipt."""
    receipts, unreadable = read_receipts(store, subset)
    if unreadable:
        raise BrokenTar(f"{store.root}/{layout.receipt(subset, unreadable[0])}: not a receipt; {REMEDY}")
    return receipts


def finished_tars(store: Store, subset: str) -> Iterator[tuple[str, int]]:
    """Tars of the finished shards in order, by path below OUT, each with the number of its samples."""
    for number, split, kept, tar_size in finished(store, subset).columns("split", "kept", "tar_size"):
        if tar_size:
            yield layout.tar(subset, split, number), kept


def index_columns(store: Store, subset: str) -> list[str]:
    """Names of the columns of ``index.parquet``; raises `DamagedIndex`."""
    with opened_index(store, subset) as stream:
        return parquet_columns(stream)


def index_batches(store: Store, subset: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Columns of ``index.parquet``, a batch at a time; raises as `opened_index`."""
    with opened_index(store, subset, columns) as stream:
        for batch in parquet_batches(stream, columns):
            for name in {"key", "tar", *TERMS} & {*columns}:
                if batch[name].null_count or batch[name].type not in (pa.string(), pa.large_string()):
                    raise pa.ArrowInvalid(f"a {name} is absent or no text")
            yield batch


@contextmanager
def opened_index(
    store: Store, subset: str, columns: Sequence[str] = (), file: str = "index.parquet"
) -> Iterator[BinaryIO]:
    """The file; raises `DamagedIndex` for what is found damaged in it while it is open, and when it lacks a column."""
    path = layout.meta(subset, file)
    try:
        with store.open(path) as stream:
            there = parquet_columns(stream)
            if lacking := [name for name in columns if name not in there]:
                remedy = "name a stage of the right kind that this version built"
                raise DamagedIndex(f"{store.root}/{path}: has no column {lacking[0]!r}; {remedy}")
            yield stream
    except pa.ArrowMemoryError:
        raise
    except pa.ArrowException as error:
        remedy = f"remove {layout.meta(subset, 'index.json')} and run its build again"
        raise DamagedIndex(f"{store.root}/{path}: cannot be read ({error}); {remedy}") from error


def term_counts(store: Store, subset: str) -> dict[tuple[str, str], int]:
    """Rows of ``index.parquet`` by licence and credit; raises as `opened_index`."""
    columns, counts = ["licence", "credit"], Counter[tuple[str, str]]()
    for batch in index_batches(store, subset, columns):
        grouped = pa.Table.from_batches([batch]).group_by(columns, use_threads=False).aggregate([([], "count_all")])
        counts.update({(row["licence"], row["credit"]): row["count_all"] for row in grouped.to_pylist()})
    return dict(sorted(counts.items()))


def read_samples(store: Store, subset: str, limit: int | None = None) -> Iterator[Stored[Any]]:
    """Samples of all finished shards in plan order, at most ``limit``; holds one at a time.

    Raises `BrokenTar`, with tar and member, for a member that `shards.storage.tar_reader` would not have written.
    """
    samples = itertools.chain.from_iterable(read_tar(store, tar) for tar, _ in finished_tars(store, subset))
    return itertools.islice(samples, limit)


def of_kind(samples: Iterable[Stored[Any]], takes: Sequence[SampleKind], use: str) -> Iterator[Stored[Any]]:
    """Samples that must be of certain kinds, else `WrongUse`. use: what takes only these, for the message."""
    for sample in samples:
        if sample.kind not in takes:
            raise WrongUse(
                f"{sample.key} is a {sample.kind.name}, and {use} takes {plural(takes)}; name other subsets with --only"
            )
        yield sample


def kept_rows(store: Store, subset: str, number: int) -> Iterator[Row]:
    """The rows of the samples that a shard keeps, in plan order."""
    path = layout.rows(subset, number)
    where = f"{store.root}/{path}"
    try:
        with store.open(path) as stream:
            yield from (row for row in read_rows(stream, where) if row.verdict == KEPT)
    except FileNotFoundError as error:
        raise BuildFailed(f"{where}: absent, though its receipt is there; {REMEDY}") from error


def read_spread(store: Store, subset: str, count: int, images: bool = True) -> list[Any]:
    """``count`` samples that are evenly spread over a subset (all when it has fewer), in plan order.

    Sample k is the middle of the k-th of ``count`` equal parts, so that the same dataset shows the same.
    images: False for those without images, which lie in no tar: their `Row` is all there is of them.
    """
    columns = finished(store, subset).columns("split", "kept", "tar_size")
    shards = [(number, split, kept) for number, split, kept, size in columns if bool(size) == images]
    total, start, spread = sum(kept for *_, kept in shards), 0, list[Any]()
    count = min(count, total)
    wanted = {(2 * k + 1) * total // (2 * count) for k in range(count)}
    for number, split, kept in shards:
        if places := {place - start for place in wanted if start <= place < start + kept}:
            tar = layout.tar(subset, split, number)
            samples = read_tar(store, tar) if images else kept_rows(store, subset, number)
            upto = itertools.islice(samples, max(places) + 1)
            spread += [sample for place, sample in enumerate(upto) if place in places]
        start += kept
    return spread


def read_tar(store: Store, path: str) -> Iterator[Stored[Any]]:
    """The samples of one tar, in order. Nothing is extracted: members are read into memory, each within a limit."""
    where = f"{store.root}/{path}"
    try:
        with store.open(path) as stream:
            yield from _samples(stream, where)
    except FileNotFoundError as error:
        raise BrokenTar(f"{where}: named by its receipt, but absent; {REMEDY}") from error


def read_from_tar(store: Store, path: str, keys: Collection[str], version: str) -> Iterator[Stored[Any]]:
    """Some samples of a tar, found by the places of its members, which a process reads once.

    Args:
        store, path: of the tar.
        keys: of samples; one that the tar lacks is left out.
        version: tells the tar from a later one of the same path.

    Raises:
        BrokenTar: as `read_tar`.
    """
    where = f"{store.root}/{path}"
    try:
        places = _places(store.root, path, version)
        with store.open(path) as stream:
            for key in sorted({*keys} & places.keys(), key=lambda name: places[name]):
                start, end = places[key]
                stream.seek(start)
                yield from _samples(io.BytesIO(stream.read(end - start) + bytes(2 * tarfile.BLOCKSIZE)), where)
    except FileNotFoundError as error:
        raise BrokenTar(f"{where}: named by its receipt, but absent; {REMEDY}") from error


@lru_cache(maxsize=64)
def _places(root: str, path: str, _version: str) -> dict[str, tuple[int, int]]:
    """Where the members of each sample begin and end in a tar, by key."""
    spans: dict[str, tuple[int, int]] = {}
    with Store(root).open(path) as stream:
        for name, start, end in member_places(stream, f"{root}/{path}"):
            key = name.partition(".")[0]
            spans[key] = (spans[key][0] if key in spans else start, end)
    return spans


def _samples(stream: BinaryIO, where: str) -> Iterator[Stored[Any]]:
    members = read_members(stream, where)
    for key, group in itertools.groupby(members, key=lambda member: member[0].partition(".")[0]):
        fields: dict[str, bytes] = {}
        for name, content in group:
            field = name.partition(".")[2]
            if field in fields:
                raise BrokenTar(f"{where}: member {name!r} occurs twice; {REMEDY}")
            fields[field] = content
        yield stored(key, fields, where)
