"""All examples of a mixture: held in columns, made when they are asked for, read by offset."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from twinset.contracts.canonical import canonical_json
from twinset.contracts.errors import BuildFailed, TwinsetError, WrongUse
from twinset.shards.storage.store import Store
from twinset.shards.storage.tar_reader import BrokenTar
from twinset.training.examples.built import built_parts, fitting_subsets
from twinset.training.examples.columns import SHORT_DIGITS, UNKNOWN, Part
from twinset.training.examples.contracts import DataPlace, Example, Task, Twins, data_place
from twinset.training.examples.exported import exported_part, is_export
from twinset.training.examples.ordering import Integers, identities
from twinset.training.examples.tars import find_tars, tars_part

if TYPE_CHECKING:
    from PIL.Image import Image


TAR_INDEX = Path("tar-index")  # a folder beside OUT: runs that lie together share it


class ExampleSet:
    """The examples of one or more datasets, one after the other. Raises `IndexError`: from `[]`, for a number that is
    not from 0 to its length.
    """

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = tuple(parts)
        self._ends = np.cumsum([len(part) for part in self.parts])
        self._stores: dict[tuple[int, str], Store] = {}
        self.is_remote = any(part.origin.store.is_remote for part in self.parts)

    def __len__(self) -> int:
        return int(self._ends[-1])

    def __getitem__(self, number: int) -> Example:
        if not 0 <= number < len(self):
            raise IndexError(f"example {number} of {len(self)}")
        part = int(np.searchsorted(self._ends, number, side="right"))
        return self.parts[part].example(int(number - (self._ends[part] - len(self.parts[part]))))

    def read_image(self, example: Example, role: str) -> bytes:
        """The encoded image of a role. Raises `BrokenTar`: its file is absent or cut short, or holds other bytes than
        when its dataset was built.
        """
        place = example.images[role]
        where = f"{example.where}.{role}"
        try:
            content = self._store(example.dataset).read_part(place.tar, place.offset, place.size)
        except FileNotFoundError as error:
            raise BrokenTar(f"{where}: {place.tar} is absent") from error
        if len(content) != place.size:
            raise BrokenTar(f"{where}: {place.tar} is cut short")
        if place.sha256 != UNKNOWN and hashlib.sha256(content).hexdigest()[:SHORT_DIGITS] != place.sha256:
            raise BrokenTar(f"{where}: other bytes than its dataset was built with")
        return content

    def _store(self, root: str) -> Store:
        """Opened by each process itself: the clients of object stores do not survive a fork."""
        which = os.getpid(), root
        if which not in self._stores:
            self._stores[which] = Store(root)
        return self._stores[which]

    def open_image(self, example: Example, role: str) -> Image:
        """The image of a role as RGB, upright; raises `BrokenTar` as `read_image`, and where it cannot be decoded."""
        from twinset.shards.media.decode import decode

        return decode(self.read_image(example, role), f"{example.where}.{role}", upright=True)

    def require(self, roles: Sequence[str]) -> None:
        """Raise `WrongUse` where an example lacks one of some roles."""
        for part in self.parts:
            for role in roles:
                if (key := part.lacking(role)) is not None:
                    raise WrongUse(
                        f"{part.origin.title}: {key} has no {role}, which this training reads; leave this dataset out "
                        f"or choose an objective without it"
                    )

    @cached_property
    def same(self) -> Integers | None:
        return identities(self.parts)

    @property
    def distinct(self) -> int:
        """Number of different examples."""
        return len(self) if self.same is None else len(np.unique(self.same))

    def digest(self) -> str:
        """sha256 over the digests of all datasets, how often each is repeated and how it is seen."""
        seen: list[Any] = [[part.digest, part.copies, [side.suffix for side in part.sides]] for part in self.parts]
        if self.same is not None:
            seen.append("copies kept apart")  # runs of before put them into one batch
        return hashlib.sha256(canonical_json(seen)).hexdigest()

    def facts(self) -> list[dict[str, Any]]:
        """Each dataset for a model card: `Origin.facts`, its digest, and how many examples it gives."""
        return [
            {**part.origin.facts(), "digest": part.digest, "examples": len(part), "copies": part.copies}
            for part in self.parts
        ]

    def check_unchanged(self) -> None:
        """Raise `BuildFailed` where a dataset is not what it was when it was opened."""
        for part in self.parts:
            try:
                now = f"its digest is {part.origin.digest()}"
            except (TwinsetError, FileNotFoundError) as error:
                now = str(error)
            if now != f"its digest is {part.digest}":
                raise BuildFailed(
                    f"{part.origin.title}: rebuilt since this training began with the digest {part.digest}: {now}. "
                    "Checkpoints are of the former data: put that back and resume, or train again into a new --out"
                )


def open_examples(
    places: Sequence[str],
    task: Task,
    split: str | None = None,
    twins: Twins = "both",
    index: Path = TAR_INDEX,
) -> ExampleSet:
    """The examples of a mixture of places, in their order.

    Args:
        places: each ``DIR``, ``DIR:SUBSET`` or a URL, where twinset built or exported for open_clip; ``*N`` behind it
            repeats it N times. Without a subset, all that the task can read. Or ``tars:`` with a folder or pattern of
            WebDataset tars that others wrote.
        task: "pairs" of images and texts, or "triplets" of reference, target and condition.
        split: only samples of it; None for all.
        twins: whether a pair gives two examples, each side once as the positive, or its first side only.
        index: folder where indices of tars are written.

    Raises:
        WrongUse: a place holds nothing to train on, or is not finished or damaged.
    """
    if not places:
        raise WrongUse("no data to train on; name a dataset that twinset built, or tars:FOLDER")
    parts: list[Part] = []
    for text in places:
        place, store = check_place(text, task)
        if store is None:
            parts.append(tars_part(place, task, split, index))
        elif is_export(store):
            parts.append(exported_part(place, store, task, split, twins))
        else:
            parts += built_parts(place, store, task, split, twins)
    pa.default_memory_pool().release_unused()  # what joining columns needed: as much again as the columns
    return ExampleSet(parts)


def check_place(text: str, task: Task) -> tuple[DataPlace, Store | None]:
    """A place of `open_examples` whose samples were not read yet; None for tars. Raises `WrongUse` as that does."""
    place = data_place(text)
    if place.pattern:
        find_tars(place)
        return place, None
    store = Store(place.root)
    if not is_export(store):
        fitting_subsets(place, store, task)
    return place, store
