"""All examples of a mixture: held in columns, made when they are asked for, read by offset."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from twinset.manifests.canonical import canonical_json
from twinset.manifests.errors import BuildFailed, TwinsetError, WrongUse
from twinset.shards.kinds.samples import EXTENSIONS
from twinset.shards.storage.store import Store
from twinset.shards.storage.tar_members import member_slices
from twinset.shards.storage.tar_reader import BrokenTar
from twinset.training.examples.built import built_parts, fitting_subsets
from twinset.training.examples.columns import SHORT_DIGITS, Part
from twinset.training.examples.contracts import IMAGES, TEXTS, Example, Task, Twins
from twinset.training.examples.exported import exported_part, is_export
from twinset.training.examples.places import DataPlace, data_place
from twinset.training.examples.repeats import Integers, identities

if TYPE_CHECKING:
    from PIL.Image import Image

SIZES = "sizes.json"
EXPORT = "run `twinset export --format openclip` again"
SIDE = Side("", {"image": "image"}, {"text": "text"})


def is_export(store: Store) -> bool:
    """Whether a folder holds what the export for open_clip wrote."""
    return SIZES in store.names("")


@dataclass(slots=True)
class Export:
    """The tars of an export. They have no receipts: each is hashed when it is opened, and again when it changes."""

    store: Store
    tars: Mapping[str, int]
    _hashed: dict[str, tuple[str, str]] = field(default_factory=dict)  # stamp and sha256 by tar

    @property
    def title(self) -> str:
        return self.store.root

    def digest(self) -> str:
        """As `Origin.digest`: of all tars."""
        return hashlib.sha256(canonical_json(self._sha256s())).hexdigest()

    def facts(self) -> dict[str, Any]:
        shards = [{"tar": tar, "samples": self.tars[tar], "sha256": found} for tar, found in self._sha256s().items()]
        return {"dataset": self.store.root, "subset": None, "split": None, "shards": shards}

    def _sha256s(self) -> dict[str, str]:
        listing, found = self.store.listing(""), {}
        for tar in self.tars:
            if tar not in listing:
                raise WrongUse(f"{self.store.root}/{tar}: absent, though {SIZES} names it; {EXPORT}")
            stamp, known = listing[tar].stamp, self._hashed.get(tar)
            if known is None or known[0] != stamp or not stamp:
                known = self._hashed[tar] = (stamp, self.store.sha256(tar)[0])
            found[tar] = known[1]
        return found


def exported_part(place: DataPlace, store: Store, task: Task, split: str | None, twins: Twins) -> Part:
    """The rows of an export. A place that names a subset means its tars, ``SUBSET-00000.tar`` and so on.

    Raises:
        WrongUse: it is asked for what an export does not hold, or a file is damaged.
    """
    if task != "pairs" or split is not None:
        lacks = f"split {split!r}: it keeps none" if task == "pairs" else f"{task}: it holds pairs"
        raise WrongUse(f"{place.root}: an export for open_clip has no {lacks}; name the dataset that was exported")
    tars = _sizes(store)
    if place.subset:
        tars = {tar: rows for tar, rows in tars.items() if tar.rpartition("-")[0] == place.subset}
    if not any(tars.values()):
        raise WrongUse(f"{place.root}: {SIZES} names no tar of {place.subset or 'any subset'}; {EXPORT}")
    origin, gathered = Export(store, tars), Gathered(("image",), ("text",))
    try:
        for tar, rows in tars.items():
            _gather(gathered, store, tar, rows, twins)
    except (BrokenTar, FileNotFoundError) as error:
        raise WrongUse(f"{error}; {EXPORT}") from error
    return Part(origin, gathered.columns(), (SIDE,), origin.digest(), place.copies)


def _sizes(store: Store) -> dict[str, int]:
    try:
        said = json.loads(store.read(SIZES))
        return {str(tar): int(rows) for tar, rows in said.items() if "/" not in tar}
    except (ValueError, AttributeError, TypeError) as error:
        raise WrongUse(f"{store.root}/{SIZES}: not the sizes of an export ({error}); {EXPORT}") from error


def _gather(gathered: Gathered, store: Store, tar: str, rows: int, twins: Twins) -> None:
    """Read the texts of a tar and hash its images: in one pass, since nothing else vouches for them."""
    where = f"{store.root}/{tar}"
    images: dict[str, tuple[int, int, int]] = {}
    texts: dict[str, str] = {}
    with store.open(tar) as stream:
        for name, offset, size in member_slices(stream, where):
            key, _, extension = name.partition(".")
            stream.seek(offset)
            content = stream.read(size)
            if extension in EXTENSIONS:
                if not size:
                    raise BrokenTar(f"{where}: {name} is empty")
                sha256 = hashlib.sha256(content).hexdigest()
                images[key] = (offset, size, int(sha256[:SHORT_DIGITS], 16))
            elif extension == "txt":
                texts[key] = content.decode("utf-8", "replace")
    if images.keys() != texts.keys() or len(images) != rows:
        raise BrokenTar(f"{where}: {len(images)} images and {len(texts)} texts instead of {rows} of each")
    keys = [key for key in images if twins == "both" or not key.endswith("-1")]
    gathered.add(
        tar,
        pa.array(keys, pa.string()),
        pa.array([key.rpartition("-")[0] for key in keys], pa.string()),
        {"text": pa.array([texts[key] for key in keys], pa.string())},
        {"image": np.array([images[key] for key in keys], np.uint64).reshape(-1, 3)},
    )


class ExampleSet:
    """The examples of one or more datasets, one after the other.

    Raises:
        IndexError: from `[]`, for a number that is not from 0 to its length.
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
        """The encoded image of a role.

        Raises:
            BrokenTar: its tar is absent, cut short, or holds other bytes than when its dataset was built.
        """
        place = example.images[role]
        where = f"{example.where}.{role}"
        try:
            content = self._store(example.dataset).read_part(place.tar, place.offset, place.size)
        except FileNotFoundError as error:
            raise BrokenTar(f"{where}: its tar is absent") from error
        if len(content) != place.size:
            raise BrokenTar(f"{where}: its tar is cut short")
        if hashlib.sha256(content).hexdigest()[:SHORT_DIGITS] != place.sha256:
            raise BrokenTar(f"{where}: other bytes than its dataset was built with")
        return content

    def _store(self, root: str) -> Store:
        """Opened by each process itself: the clients of object stores do not survive a fork."""
        which = os.getpid(), root
        if which not in self._stores:
            self._stores[which] = Store(root)
        return self._stores[which]

    def open_image(self, example: Example, role: str) -> Image:
        """The image of a role as RGB; raises `BrokenTar` as `read_image`, and where it cannot be decoded."""
        from twinset.shards.media.decode import decode

        return decode(self.read_image(example, role), f"{example.where}.{role}")

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


def open_examples(places: Sequence[str], task: Task, split: str | None = None, twins: Twins = "both") -> ExampleSet:
    """The examples of a mixture of places, in their order.

    Args:
        places: each ``DIR``, ``DIR:SUBSET`` or a URL, where twinset built or exported for open_clip; ``*N`` behind it
            repeats it N times. Without a subset, all that the task can read.
        task: "pairs" of images and texts, or "triplets" of reference, target and condition.
        split: only samples of it; None for all.
        twins: whether a pair gives two examples, each side once as the positive, or its first side only.

    Raises:
        WrongUse: a place holds nothing to train on, or is not finished or damaged.
    """
    if task not in IMAGES or task not in TEXTS:
        raise WrongUse(f"task {task!r}: it is {' or '.join(IMAGES)}")
    if not places:
        raise WrongUse("no data to train on; name a dataset that twinset built")
    parts: list[Part] = []
    for text in places:
        place, store = check_place(text, task)
        if is_export(store):
            parts.append(exported_part(place, store, task, split, twins))
        else:
            parts += built_parts(place, store, task, split, twins)
    pa.default_memory_pool().release_unused()  # what joining columns needed: as much again as the columns
    return ExampleSet(parts)


def check_place(text: str, task: Task) -> tuple[DataPlace, Store]:
    """A place of `open_examples` whose samples were not read yet; raises `WrongUse` as that does."""
    place = data_place(text)
    store = Store(place.root)
    if not is_export(store):
        fitting_subsets(place, store, task)
    return place, store
