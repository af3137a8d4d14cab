"""CIRR's training split (Liu et al. 2021) as triplets: GeneCIS's "Combiner (CIRR)" is trained on it (Tables 2, 4)."""

import hashlib
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from twinset.contracts.canonical import canonical_json
from twinset.contracts.errors import WrongUse
from twinset.evaluation.benchmarks.composed_retrieval import GLOBAL, SUBSET, Cirr
from twinset.evaluation.benchmarks.reader import MISSING
from twinset.evaluation.examples import LeftOut, Picture, Query
from twinset.shards.storage.store import Store
from twinset.shards.storage.tar_reader import MEMBER_LIMIT
from twinset.training.combiner.settings import CIRR
from twinset.training.examples.columns import SHORT_DIGITS, Columns, Part, Side, Slices
from twinset.training.examples.contracts import data_place

SIDE = Side("", {"reference": "reference", "target": "target"}, {"condition": "condition"})
UNUSABLE = f"an image that is empty or over {MEMBER_LIMIT >> 20} MB"
PARALLEL = 8  # files that are hashed at once
_LOG = logging.getLogger("twinset")


class Training(Cirr):
    """The training split, in the form of the validation split."""

    title = "CIRR (2021), training"
    expects = "captions/cap.rc2.train.json, image_splits/split.rc2.train.json, and the images train-….png in a folder"
    files: ClassVar = dict.fromkeys((GLOBAL, SUBSET), "cap.rc2.train.json")
    listing = "split.rc2.train.json"


@dataclass(frozen=True, slots=True)
class CirrFiles:
    """The files of the split: annotations first, then images. Each is hashed when it is opened, and when it changes."""

    store: Store
    names: Sequence[str]
    annotations: int
    left_out: Mapping[str, int]
    _hashed: dict[str, tuple[str, str]] = field(default_factory=dict)  # stamp and sha256 by name

    @property
    def title(self) -> str:
        return f"{CIRR}{self.store.root}"

    def digest(self) -> str:
        """As `Origin.digest`: of all files."""
        return hashlib.sha256(canonical_json(self.sha256s())).hexdigest()

    def facts(self) -> dict[str, Any]:
        found = self.sha256s()
        shards = [{"tar": name, "sha256": found[name]} for name in self.names[: self.annotations]]
        about = {"images": len(self.names) - self.annotations, "left_out": dict(self.left_out)}
        return {"dataset": self.title, "subset": None, "split": "train", "shards": shards, **about}

    def sha256s(self) -> dict[str, str]:
        """sha256 of each file as it lies there now. Raises `WrongUse` where one is absent."""
        folders = {name.rpartition("/")[0] for name in self.names}
        listed = ((one, self.store.listing(one).items()) for one in folders)
        there = {f"{one}/{name}".lstrip("/"): entry for one, entries in listed for name, entry in entries}
        if absent := next((name for name in self.names if name not in there), None):
            raise WrongUse(f"{self.store.root}/{absent}: absent; fetch it again")
        changed = [name for name in self.names if self._hashed.get(name, ("",))[0] != there[name].stamp]
        with ThreadPoolExecutor(PARALLEL) as pool:
            for name, (sha256, _) in zip(changed, pool.map(self.store.sha256, changed), strict=True):
                self._hashed[name] = there[name].stamp, sha256
        return {name: self._hashed[name][1] for name in self.names}


def cirr_part(text: str) -> Part:
    """The triplets of ``cirr=DIR``, whose target is ``target_hard``; the group is CIRR's set of six images.

    Raises `WrongUse`: DIR does not hold the split, a record is damaged, or no triplet has both images.
    """
    place = data_place(text.removeprefix(CIRR))
    reader = Training(":".join(filter(None, (place.root, place.subset))), (GLOBAL,))
    left_out, used, sizes, first = Counter[str](), list[tuple[Query, Mapping[str, str]]](), dict[str, int](), ""
    for item in reader.examples():
        where, reason = "", ""
        if isinstance(item, Query):
            pictures = {"reference": item.image, "target": item.gallery[min(item.targets)]}
            files = {role: _file(reader, picture) for role, picture in pictures.items()}
            sizes |= {name: (reader.data / name).stat().st_size for name in files.values()}
            if all(0 < sizes[name] <= MEMBER_LIMIT for name in files.values()):
                used.append((item, files))
            else:
                where, reason = f"{text} {item.key}", UNUSABLE
        elif isinstance(item, LeftOut) and item.reason == MISSING:  # not an image that no triplet shows
            where, reason = item.where, MISSING
        if reason:
            first = first or where
            left_out[reason] += 1
    if left_out:
        counted = ", ".join(f"{count:,} with {reason}" for reason, count in left_out.items())
        _LOG.warning("%s: triplets left out of training: %s", text, f"{counted} (first {first})")
    if not used:
        raise WrongUse(f"{text}: no triplet is left; fetch its images again")
    annotations = [reader.relative(path) for path in reader.annotations()]
    names = [*annotations, *sorted({name for _, files in used for name in files.values()})]
    origin = CirrFiles(Store(reader.place), names, len(annotations), left_out)
    numbers, sha256s = {name: number for number, name in enumerate(names)}, origin.sha256s()

    def slices(role: str) -> Slices:
        shown = [files[role] for _, files in used]
        return Slices(
            offsets=np.zeros(len(shown), np.int64),
            sizes=np.array([sizes[name] for name in shown], np.int32),
            hashes=np.array([int(sha256s[name][:SHORT_DIGITS], 16) for name in shown], np.uint64),
            tar=np.array([numbers[name] for name in shown], np.int32),
        )

    columns = Columns(
        tars=names,
        tar=np.zeros(len(used), np.int32),  # messages name the file of the captions
        keys=pa.array([one.key.replace(f"{GLOBAL}/", "cirr-") for one, _ in used], pa.large_string()),
        groups=pa.array([f"cirr-{one.group}" for one, _ in used], pa.large_string()).dictionary_encode(),
        images={role: slices(role) for role in SIDE.images},
        texts={"condition": pa.array([one.text for one, _ in used], pa.large_string())},
    )
    return Part(origin, columns, (SIDE,), origin.digest(), place.copies)


def _file(reader: Training, picture: Picture | str | None) -> str:
    """The file of an image below the folder; raises `WrongUse` for a member of a tar."""
    assert isinstance(picture, Picture)
    path = Path(picture.where)
    if not path.is_file():
        raise WrongUse(f"{path}: training reads files, and this is a member of a tar; unpack it there")
    return reader.relative(path)
