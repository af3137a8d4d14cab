"""All examples of a mixture: one Arrow table, whose images are read by offset from the tars that hold them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from twinset.contracts.canonical import canonical_json
from twinset.contracts.errors import BuildFailed, TwinsetError, WrongUse
from twinset.shards.storage.store import Store
from twinset.shards.storage.tar_reader import BrokenTar
from twinset.training.examples.built import built_datasets, fitting_subsets
from twinset.training.examples.contracts import DataPlace, Example, Place, Task, Twins, data_place
from twinset.training.examples.ordering import Integers
from twinset.training.examples.table import SHORT_DIGITS, Dataset
from twinset.training.examples.tars import find_tars, tars_dataset

if TYPE_CHECKING:
    from PIL.Image import Image

TAR_INDEX = Path("tar-index")  # a folder beside OUT: runs that lie together share it
VERSION = 2  # raised where the same data give other batches


class ExampleSet:
    """The examples of one or more datasets, one after the other.

    Attributes:
        table: a row an example: what the tables of the datasets have, null where one lacks it, and ``dataset``, its
            number in `datasets`.
    """

    def __init__(self, datasets: Sequence[Dataset]) -> None:
        self.datasets = tuple(datasets)
        numbers = [pa.array(np.full(len(dataset.table), place, np.int32)) for place, dataset in enumerate(datasets)]
        tables = [dataset.table.append_column("dataset", numbers[place]) for place, dataset in enumerate(datasets)]
        self.table = pa.concat_tables(tables, promote_options="default")
        self._columns = {name: self.table[name] for name in self.table.column_names}
        self.image_roles = tuple(field.name for field in self.table.schema if pa.types.is_struct(field.type))
        beside = ("key", "group", "dataset", *self.image_roles)
        self.text_roles = tuple(name for name in self.table.column_names if name not in beside)

    def __len__(self) -> int:
        return len(self.table)

    def __getitem__(self, number: int) -> Example:
        row = {name: column[number].as_py() for name, column in self._columns.items()}
        return Example(
            key=row["key"],
            group=row["group"],
            images={role: Place(**row[role]) for role in self.image_roles if row[role] is not None},
            texts={role: row[role] for role in self.text_roles if row[role] is not None},
            dataset=self.datasets[row["dataset"]].origin.store.root,
        )

    def column(self, name: str) -> pa.ChunkedArray:
        """A column of the table, or with ``ROLE.FIELD`` one field of an image."""
        role, _, field = name.partition(".")
        return pc.struct_field(self.table[role], field) if field else self.table[role]

    def read_image(self, example: Example, role: str) -> bytes:
        """The encoded image of a role. Raises `BrokenTar`: its file is absent or cut short, or holds other bytes than
        when its dataset was built.
        """
        place = example.images[role]
        where = f"{example.where}.{role}"
        try:
            content = _store(example.dataset, os.getpid()).read_part(place.tar, place.offset, place.size)
        except FileNotFoundError as error:
            raise BrokenTar(f"{where}: {place.tar} is absent") from error
        if len(content) != place.size:
            raise BrokenTar(f"{where}: {place.tar} is cut short")
        if place.sha256 and hashlib.sha256(content).hexdigest()[:SHORT_DIGITS] != place.sha256:
            raise BrokenTar(f"{where}: other bytes than its dataset was built with")
        return content

    def open_image(self, example: Example, role: str) -> Image:
        """The image of a role as RGB, upright; raises `BrokenTar` as `read_image`, and where it cannot be decoded."""
        from twinset.shards.media.decode import decode

        return decode(self.read_image(example, role), f"{example.where}.{role}", upright=True)

    @contextmanager
    def needed(self) -> Iterator[None]:
        """`BuildFailed` for the `BrokenTar` of an image that a run cannot do without."""
        try:
            yield
        except BrokenTar as error:
            self.check_unchanged()  # a rebuilt dataset seems broken: say what it is
            raise BuildFailed(f"{error}. Fetch this tar again or run its build again, then resume") from error

    def lacking(self, role: str) -> int | None:
        """Number of the first example without a role; None where all have it."""
        if role not in self.table.column_names:
            return 0
        first = pc.index(pc.is_null(self.table[role]), True).as_py()
        return None if first < 0 else int(first)

    def require(self, roles: Sequence[str]) -> None:
        """Raise `WrongUse` where an example lacks one of some roles."""
        for role in roles:
            if (number := self.lacking(role)) is not None:
                title = self.datasets[self.table["dataset"][number].as_py()].origin.title
                raise WrongUse(
                    f"{title}: {self[number].key} has no {role}, which this training reads; leave this dataset out, or "
                    "choose an objective without it"
                )

    def image_numbers(self) -> Integers:
        """Number of the role ``image`` of each example, from 0, (n,): equal for equal bytes. Images of tars of others,
        which nobody hashed, are told apart by their places.
        """
        where = (self.column("dataset"), self.column("image.tar"), self.column("image.offset"))
        places = pc.binary_join_element_wise(*(column.cast(pa.string()) for column in where), ":")
        starts = self.column("image.sha256")
        names = pc.if_else(pc.equal(starts, ""), places, starts).combine_chunks()
        return np.asarray(names.dictionary_encode().indices, np.int64)

    def groups(self) -> set[str]:
        """Groups, which no other dataset of a run may have; of tars of others the tars."""
        return set(pc.unique(self.table["group"]).to_pylist())

    def hashes(self) -> set[str]:
        """Starts of the sha256 of all images that were hashed."""
        starts = (pc.unique(self.column(f"{role}.sha256")).to_pylist() for role in self.image_roles)
        return {start for of_role in starts for start in of_role if start}

    def digest(self) -> str:
        """sha256 over the digests of all datasets, and how many examples each gives."""
        seen = [[dataset.digest, len(dataset.table)] for dataset in self.datasets]
        return hashlib.sha256(canonical_json([VERSION, seen])).hexdigest()

    def facts(self) -> list[dict[str, Any]]:
        """Each dataset for a model card: `Origin.facts`, its digest, and how many examples it gives."""
        return [{**data.origin.facts(), "digest": data.digest, "examples": len(data.table)} for data in self.datasets]

    def check_unchanged(self) -> None:
        """Raise `BuildFailed` where a dataset is not what it was when it was opened."""
        for dataset in self.datasets:
            try:
                now = dataset.origin.digest()
            except (TwinsetError, FileNotFoundError) as error:
                now = str(error)
            if now != dataset.digest:
                raise BuildFailed(
                    f"{dataset.origin.title}: rebuilt since this training began: {now} instead of {dataset.digest}. "
                    "Checkpoints are of the former data: put that back and resume, or train again into a new --out"
                )


@cache
def _store(root: str, _process: int) -> Store:
    """Opened by each process itself: the clients of object stores do not survive a fork."""
    return Store(root)


def open_examples(
    places: Sequence[str], task: Task, split: str | None = None, twins: Twins = "both", index: Path = TAR_INDEX
) -> ExampleSet:
    """The examples of a mixture of places, in their order.

    Args:
        places: each ``DIR``, ``DIR:SUBSET`` or a URL, where twinset built; without a subset, all that the task can
            read. Or ``tars:`` with a folder or pattern of WebDataset tars that others wrote.
        split: only samples of it; None for all.
        twins: whether a pair gives two examples, each side once as the positive, or its first side only.
        index: folder where indices of tars are written.

    Raises:
        WrongUse: a place holds nothing to train on, is not finished or damaged, or is named twice.
    """
    datasets: list[Dataset] = []
    for text in places:
        place, store = check_place(text, task)
        if store is None:
            datasets.append(tars_dataset(place, task, split, index))
        else:
            datasets += built_datasets(place, store, task, split, twins)
    titles = [dataset.origin.title for dataset in datasets]
    if len(set(titles)) < len(titles):
        raise WrongUse(f"data: {max(titles, key=titles.count)} is named twice; leave it out once")
    return ExampleSet(datasets)


def check_place(text: str, task: Task) -> tuple[DataPlace, Store | None]:
    """A place of `open_examples` whose samples were not read yet; None for tars. Raises `WrongUse` as that does."""
    place = data_place(text)
    if place.pattern:
        find_tars(place)
        return place, None
    store = Store(place.root)
    fitting_subsets(place, store, task)
    return place, store
