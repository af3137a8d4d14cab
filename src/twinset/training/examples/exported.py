"""Examples of a folder of `export --format openclip`: rows ``KEY-0``, ``KEY-1`` … of one image and one text each."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from twinset.contracts.canonical import canonical_json
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.samples import EXTENSIONS
from twinset.shards.storage.store import Store
from twinset.shards.storage.tar_reader import BrokenTar, member_slices
from twinset.training.examples.columns import SHORT_DIGITS, Gathered, Part, Side
from twinset.training.examples.contracts import DataPlace, Task, Twins

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
    """The rows of an export. A place that names a subset means its tars, ``SUBSET-00000.tar`` and so on. Raises
    `WrongUse`: it is asked for what an export does not hold, or a file is damaged.
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
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
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
    # The second row of a pair has another image than the first; that of an image with captions has the same.
    first = {key: images.get(f"{key.rpartition('-')[0]}-0", (0, 0, 0))[2] for key in images if key.endswith("-1")}
    keys = [key for key in images if twins == "both" or first.get(key, images[key][2]) == images[key][2]]
    gathered.add(
        tar,
        pa.array(keys, pa.string()),
        pa.array([key.rpartition("-")[0] for key in keys], pa.string()),
        {"text": pa.array([texts[key] for key in keys], pa.string())},
        {"image": np.array([images[key] for key in keys], np.uint64).reshape(-1, 3)},
    )
