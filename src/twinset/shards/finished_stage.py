"""A finished stage as a later one reads it: its index, in columns."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.kind import Stored
from twinset.contracts.receipt import IndexRecord
from twinset.contracts.recipe import Recipe
from twinset.contracts.stage import parse_stage
from twinset.shards.plan import read_parquet
from twinset.shards.read import index_batches, index_columns, opened_index, read_from_tar
from twinset.shards.records import read_index_record
from twinset.shards.storage import layout
from twinset.shards.storage.store import Store
from twinset.shards.storage.tar_reader import REMEDY, BrokenTar

if TYPE_CHECKING:
    import polars as pl


class FinishedStage:
    """The index of a finished stage.

    Raises `WrongUse` when the stage is not finished, or was planned again since its index was written.
    """

    def __init__(self, store: Store, home: str) -> None:
        self.store, self.home = store, home
        self.where = f"{store.root}/{home}" if home else store.root
        path = layout.meta(home, "stage.json")
        try:
            self.stage = parse_stage(f"{store.root}/{path}", store.read(path))
        except (FileNotFoundError, NotADirectoryError) as error:
            raise WrongUse(f"{self.where}: holds no stage (no {path}); build it first") from error
        self.record = self._record()

    @property
    def digest(self) -> str:
        """What a stage that is planned from this one is bound to."""
        return self.record.digest

    def check_whole(self) -> None:
        """Raise `WrongUse` where index or rejections are not the bytes that were written."""
        for name in ("index.parquet", "rejections.parquet"):
            path = layout.meta(self.home, name)
            if self.store.size(path) is None or self.store.sha256(path) != self.record.files.get(name):
                record = layout.meta(self.home, "index.json")
                raise WrongUse(
                    f"{self.store.root}/{path}: not the one of {record}, it was damaged or replaced since; remove "
                    f"{record} and run the same build again"
                )

    def read(self, columns: Sequence[str]) -> pa.Table:
        """Columns of all rows that were kept, in plan order; raises `WrongUse` for a column that it lacks."""
        with opened_index(self.store, self.home, columns) as stream:
            return read_parquet(stream, columns)

    def rejected(self, columns: Sequence[str]) -> pa.Table:
        """Columns of all candidates that were rejected, in plan order: ``identity``, ``reason``, ``detail`` …"""
        with self.store.open(layout.meta(self.home, "rejections.parquet")) as stream:
            return read_parquet(stream, columns)

    def columns(self) -> list[str]:
        """Names of the columns that its index has."""
        return index_columns(self.store, self.home)

    def batches(self, columns: Sequence[str], chosen: NDArray[np.bool_] | None = None) -> Iterator[pa.RecordBatch]:
        """As `read`, a row group at a time, for an index that memory does not hold; no batch is empty.

        chosen: whether each row is read, all when absent.
        """
        start = 0
        for batch in index_batches(self.store, self.home, columns):
            if chosen is not None:
                here = chosen[start : start + len(batch)]
                start += len(batch)
                batch = batch.filter(pa.array(here)) if here.any() else batch.slice(0, 0)
            if len(batch):
                yield batch

    def frame(self, folder: Path) -> pl.LazyFrame:
        """The index as a frame, in plan order. folder: of a copy of one in an object store, to outlive the frame."""
        import polars as pl

        self.columns()  # refuses what is damaged
        return pl.scan_parquet(self.store.local_copy(layout.meta(self.home, "index.parquet"), folder))

    def pictured_rows(self, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Columns of each row, a row group at a time, with ``key`` and ``tar``; raises `WrongUse` without images."""
        for batch in self.batches(columns):
            for row in batch.to_pylist():
                if not row["tar"]:
                    raise WrongUse(f"{self.where}: {row['key']} has no image; name a stage with images")
                yield row

    def samples(self, places: Iterable[tuple[str, str]]) -> dict[str, Stored[Any]]:
        """Samples by key; each tar is opened once, and where its members lie is read once in a process.

        Args:
            places: of each sample, its tar as the column ``tar`` of the index names it, and its key.

        Raises:
            BrokenTar: a tar is absent, broken, or lacks one of the keys.
        """
        wanted, samples = dict[str, set[str]](), dict[str, Stored[Any]]()
        for tar, key in places:
            wanted.setdefault(tar, set()).add(key)
        for tar, keys in wanted.items():
            place = f"{self.home}/{tar}" if self.home else tar
            samples |= {sample.key: sample for sample in read_from_tar(self.store, place, keys, self.digest)}
            if lacking := sorted(keys - samples.keys()):
                raise BrokenTar(f"{self.store.root}/{place}: lacks {lacking[0]}, which its index names; {REMEDY}")
        return samples

    def check_images(self, tar: str, stored: Stored[Any], sha256s: Mapping[str, str]) -> None:
        """Raise `BrokenTar` where images of a sample are not those that were planned from. sha256s: by role."""
        for role, sha256 in sha256s.items():
            if hashlib.sha256(stored.images[role]).hexdigest() != sha256:
                where = f"{self.where}/{tar}: the {role} of {stored.key}"
                raise BrokenTar(f"{where} is not the one that was planned from; run the build again")

    def _record(self) -> IndexRecord:
        path, record = layout.meta(self.home, "index.json"), read_index_record(self.store, self.home)
        if record is None or (record.content, record.plan) != (self.stage.content, self.stage.plan):
            raise WrongUse(f"{self.where}: not finished; run its build again to the end")
        if self.store.size(layout.meta(self.home, "index.parquet")) != record.files["index.parquet"][1]:
            raise WrongUse(f"{self.where}: index.parquet is not the one of {path}; run its build again")
        return record


def earlier_stage(store: Store, recipe: Recipe, name: str) -> FinishedStage:
    """A finished stage that a source reads: of its recipe by name, or below another OUT by folder or URL."""
    if "/" not in name:
        return FinishedStage(store, recipe.home(name))
    root, _, home = name.rstrip("/").rpartition("/")
    if "\0" in name or root.endswith(":/"):
        raise WrongUse(f"{name!r} names no stage; write its folder or URL, as in ./out/_stages/scene-graphs")
    return FinishedStage(Store(root or "/"), home)
