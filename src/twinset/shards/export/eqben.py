"""Export to the files that EqBen's released loader reads (PyPI ``eqben`` 0.0.1, `eqben.eqben_utils`).

    DIR/image/eqbenag/…                                 `img_root` is DIR/image
    DIR/annotation/eq-ag.json                           `ann_root` of `EqBenAG`, `EqBenYoucook2`, `EqBenGEBC` …
    DIR/annotation/ann_json_finegrained_random.json     `ann_root` of `EqBenALL`: four (image, caption) rows a pair

The last has the name that the released example scripts ask for; its rows are in order here (image 0 with caption 0 and
1, image 1 with caption 0 and 1), so that scores need no private permutation.
"""

import hashlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.kind import Stored
from twinset.contracts.kinds.pair import PAIR, PairRecord
from twinset.shards.export.formats import Format
from twinset.shards.media.decode import decode
from twinset.shards.read import of_kind, read_samples
from twinset.shards.storage.store import Store
from twinset.shards.storage.whole_file import JsonArray, as_json

ALL = "ann_json_finegrained_random.json"

# Folder by kind of source; `EqBenALL` reads images under eqbenyoucook2 as arrays, all others as pictures.
FOLDERS = {"action-genome": "eqbenag", "gebc": "eqbengebc", "youcook2": "eqbenyoucook2"}
ARRAYS = "eqbenyoucook2"

Entry = dict[str, Any]
StoredPair = Stored[PairRecord]
Exported = Sequence[tuple[StoredPair, Entry]]


def export_eqben(store: Store, subsets: Sequence[str], folder: Path) -> int:
    """Write images and annotations of the subsets into ``folder``; returns the number of pairs.

    Action Genome: ``{video: {object: [pair]}}`` with lists of captions; YouCook2 and GEBC: ``{video: [pair]}``; other
    sources: ``[pair]``. A pair has its licence, credit and source URL too, which the loader does not read. Images that
    pairs share are written once, named by their sha256.
    """
    annotations, count = folder / "annotation", 0
    annotations.mkdir()
    with JsonArray(annotations / ALL) as flat:
        for subset in subsets:
            samples = of_kind(read_samples(store, subset), PAIR, "--format eqben")
            first = next(samples, None)
            kind = first.json.source.dataset if first is not None else ""
            exported = _exported(itertools.chain([first] if first else [], samples), folder / "image", subset, flat)
            path = annotations / f"{subset}.json"
            if kind in _BY_VIDEO:
                count += _write_groups(exported, path, _BY_VIDEO[kind])
                continue
            with JsonArray(path) as array:
                for _, entry in exported:
                    array.append(entry)
            count += array.length
    return count


def _exported(
    samples: Iterable[StoredPair], images: Path, subset: str, flat: JsonArray
) -> Iterator[tuple[StoredPair, Entry]]:
    """Samples with their annotation entries, once their images are written."""
    for sample in samples:
        folder = FOLDERS.get(sample.json.source.dataset, subset)
        paths = {role: _write_image(image, sample, images, folder) for role, image in sample.images.items()}
        for path, caption in itertools.product(paths.values(), sample.texts.values()):
            flat.append({"image": path, "caption": caption})
        yield sample, {**paths, **sample.texts, "key": sample.key, **sample.json.terms.columns}


def _write_image(content: bytes, sample: StoredPair, images: Path, folder: str) -> str:
    """Write an image unless it is there; returns its path relative to the image root."""
    # The digest is computed here: a name from the sample's own JSON could lead out of the folder.
    name = hashlib.sha256(content).hexdigest()
    suffix = "npy" if folder == ARRAYS else sample.extension
    relative = f"{folder}/{name[:2]}/{name}.{suffix}"
    path = images / relative
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        if suffix == "npy":
            rgb = np.asarray(decode(content, sample.key), dtype=np.uint8)
            np.save(path, np.ascontiguousarray(rgb[:, :, ::-1]), allow_pickle=False)  # BGR, as EqBen stores YouCook2
        else:
            path.write_bytes(content)
    return relative


def _entries(pairs: Exported) -> list[Entry]:
    """``[pair]``"""
    return [entry for _, entry in pairs]


def _by_object(pairs: Exported) -> dict[str, list[Entry]]:
    """``{object: [pair]}``, with all captions of each image."""
    objects: dict[str, list[Entry]] = {}
    for sample, entry in pairs:
        name = sample.json.provenance.get("object")
        if not isinstance(name, str):
            raise WrongUse(f"{sample.key}: its provenance names no object; only Action Genome pairs fit EqBenAG")
        captions = sample.json.captions
        entry = {**entry, "caption0": list(captions.caption0), "caption1": list(captions.caption1)}
        objects.setdefault(name, []).append(entry)
    return objects


def _write_groups(exported: Iterator[tuple[StoredPair, Entry]], path: Path, describe: Callable[[Exported], Any]) -> int:
    """A JSON object with a key a video, written video by video: a plan never splits a group."""
    written, separator = 0, ""
    with path.open("w", encoding="ascii") as stream:
        stream.write("{")
        for video, group in itertools.groupby(exported, key=lambda pair: pair[0].json.group):
            pairs = list(group)
            stream.write(f"{separator}\n{as_json(video)}: {as_json(describe(pairs))}")
            written, separator = written + len(pairs), ","
        stream.write("\n}\n")
    return written


_BY_VIDEO: dict[str, Callable[[Exported], Any]] = {"action-genome": _by_object, "gebc": _entries, "youcook2": _entries}


EQBEN_FORMAT = Format(PAIR, export_eqben)
