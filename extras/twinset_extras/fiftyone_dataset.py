"""Export to a dataset of FiftyOne, the viewer in which people filter, search and tag images.

    DIR/samples.json  metadata.json  images/        `fiftyone.types.LegacyFiftyOneDataset`

``fiftyone.Dataset.from_dir(DIR, dataset_type=fiftyone.types.LegacyFiftyOneDataset)`` opens it. A sample is a group of
FiftyOne, its images are the group's slices, and each slice has all fields: ``key``, ``subset``, ``kind``, captions,
terms, ``scores`` and ``provenance``.
"""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from twinset.contracts.kinds import KINDS
from twinset.contracts.kinds.kind import Stored
from twinset.shards.export.captioned import write_image
from twinset.shards.export.formats import Format, Shard

Fields = dict[str, Any]
_OF_FIFTYONE = {"group": "source_group"}  # "group" is the field of the slice


def write_fiftyone(shards: Iterator[Shard], folder: Path) -> None:
    """Write ``samples.json``, ``metadata.json`` and ``images/``; an image that samples share is written once."""
    slices = list[Fields]()
    for shard in shards:
        for sample in shard.samples:
            slices += _slices(sample, shard, folder)
    (folder / "samples.json").write_text(json.dumps({"samples": slices}), encoding="ascii")
    (folder / "metadata.json").write_text(json.dumps({"media_type": "group"}), encoding="ascii")


def _slices(sample: Stored[Any], shard: Shard, folder: Path) -> Iterator[Fields]:
    """The images of a sample, each with all fields of it."""
    number = {"$oid": hashlib.sha256(f"{shard.subset}/{sample.key}".encode()).hexdigest()[:24]}
    fields: Fields = {"key": sample.key, "subset": shard.subset, "tags": [shard.split], **sample.texts}
    for name, value in sample.json.model_dump().items():
        if isinstance(value, str):
            fields.setdefault(_OF_FIFTYONE.get(name, name), value)
    fields |= {name: _plain(getattr(sample.json, name)) for name in ("scores", "provenance")}
    for role, content in sample.images.items():
        path = write_image(content, folder, sample.extension)
        group = {"_id": number, "_cls": "Group", "name": role}
        yield {"filepath": path, "_media_type": "image", "group": group, **fields}


def _plain(values: dict[str, Any]) -> Fields:
    """Numbers and texts as they are; what is nested as JSON, since fields of a database have one type each."""
    return {
        name: value if isinstance(value, str | int | float) else json.dumps(value) for name, value in values.items()
    }


FIFTYONE_FORMAT = Format(list(KINDS.values()), write_fiftyone)
