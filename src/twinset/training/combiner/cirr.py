"""CIRR's training split (Liu et al. 2021) as triplets: GeneCIS's "Combiner (CIRR)" is trained on it (Tables 2, 4)."""

import hashlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from twinset.contracts.canonical import canonical_json
from twinset.contracts.errors import WrongUse
from twinset.evaluation.benchmarks.composed_retrieval import GLOBAL, SUBSET, Cirr
from twinset.evaluation.benchmarks.reader import MISSING
from twinset.evaluation.examples import LeftOut, Query
from twinset.models.files import sha256_once
from twinset.shards.storage.store import Store
from twinset.training.combiner.settings import CIRR
from twinset.training.examples.table import Dataset, image_column

_LOG = logging.getLogger("twinset")


class Training(Cirr):
    """The training split, in the form of the validation split."""

    title = "CIRR (2021), training"
    expects = "captions/cap.rc2.train.json, image_splits/split.rc2.train.json, and the images train-….png in a folder"
    files: ClassVar = dict.fromkeys((GLOBAL, SUBSET), "cap.rc2.train.json")
    listing = "split.rc2.train.json"


@dataclass(frozen=True, slots=True)
class CirrFiles:
    """The files of the split below its folder. left_out: triplets that lack an image."""

    store: Store
    annotations: Sequence[str]
    images: Sequence[str]
    left_out: int

    @property
    def title(self) -> str:
        return f"{CIRR}{self.store.root}"

    def digest(self) -> str:
        """As `Origin.digest`: of all files."""
        return hashlib.sha256(canonical_json(self.sha256s([*self.annotations, *self.images]))).hexdigest()

    def facts(self) -> dict[str, Any]:
        shards = [{"tar": name, "sha256": sha256} for name, sha256 in self.sha256s(self.annotations).items()]
        about = {"images": len(self.images), "left_out": self.left_out}
        return {"dataset": self.title, "subset": None, "split": "train", "shards": shards, **about}

    def sha256s(self, names: Sequence[str]) -> dict[str, str]:
        """sha256 of files as they lie there now."""
        return {name: sha256_once(Path(self.store.root, name)) for name in names}


def cirr_triplets(text: str) -> Dataset:
    """The triplets of ``cirr=DIR``, whose target is ``target_hard``; the group is CIRR's set of six images.

    Raises `WrongUse`: DIR does not hold the split, a record is damaged, an image is empty, or all images are missing.
    """
    reader = Training(text.removeprefix(CIRR), (GLOBAL,))
    items = [*reader.examples()]
    # Not images of the gallery that no triplet shows.
    lacking = [item for item in items if isinstance(item, LeftOut) and item.reason == MISSING]
    if lacking:
        _LOG.warning("%s: %d triplets left out: %s (first %s)", text, len(lacking), MISSING, lacking[0].where)
    queries = [item for item in items if isinstance(item, Query)]
    references = [_file(reader, query.image) for query in queries]
    targets = [_file(reader, query.gallery[min(query.targets)]) for query in queries]
    annotations = [reader.relative(path) for path in reader.annotations()]
    origin = CirrFiles(Store(reader.place), annotations, sorted({*references, *targets}), len(lacking))
    sizes = {name: (reader.data / name).stat().st_size for name in origin.images}
    sha256s = origin.sha256s(origin.images)

    def column(names: Sequence[str]) -> pa.Array:
        return image_column(names, [0] * len(names), [sizes[name] for name in names], [sha256s[name] for name in names])

    table = pa.table(
        {
            "key": [query.key.replace(f"{GLOBAL}/", "cirr-") for query in queries],
            "group": [f"cirr-{query.group}" for query in queries],
            "reference": column(references),
            "target": column(targets),
            "condition": pa.array([query.text for query in queries], pa.large_string()),
        }
    )
    return Dataset(origin, table, origin.digest())


def _file(reader: Training, picture: Any) -> str:
    """The file of an image below the folder; raises `WrongUse` for a member of a tar, and for an empty file."""
    path = Path(picture.where)
    if not path.is_file() or not path.stat().st_size:
        raise WrongUse(
            f"{path}: training reads files, and this is a member of a tar, or empty; unpack or fetch it there"
        )
    return reader.relative(path)
