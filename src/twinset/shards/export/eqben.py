"""Export to the files that EqBen's released loader reads (PyPI ``eqben`` 0.0.1, `eqben.eqben_utils`).

    DIR/image/eqbenag/…                                 `img_root` is DIR/image
    DIR/annotation/eq-ag.json                           `ann_root` of `EqBenAG`, `EqBenYoucook2`, `EqBenGEBC` …
    DIR/annotation/ann_json_finegrained_random.json     `ann_root` of `EqBenALL`: four (image, caption) rows a pair

The last has the name that the released example scripts ask for; its rows are in order here (image 0 with caption 0 and
1, image 1 with caption 0 and 1), so that scores need no private permutation.
"""

import io
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.kind import Stored
from twinset.contracts.kinds.pair import PAIR, PairRecord
from twinset.shards.export.captioned import JsonItems, write_image
from twinset.shards.export.formats import Format, Shard
from twinset.shards.media.decode import decode

ALL = "ann_json_finegrained_random.json"

# Folder by kind of source; `EqBenALL` reads images under eqbenyoucook2 as arrays, all others as pictures.
FOLDERS = {"action-genome": "eqbenag", "gebc": "eqbengebc", "youcook2": "eqbenyoucook2"}
ARRAYS = "eqbenyoucook2"

Entry = dict[str, Any]
Exported = Sequence[tuple[Stored[PairRecord], Entry]]


def write_eqben(shards: Iterator[Shard], folder: Path) -> None:
    """Write images and annotations of the subsets.

    Action Genome: ``{video: {object: [pair]}}`` with lists of captions; YouCook2 and GEBC: ``{video: [pair]}``; other
    sources: ``[pair]``. A pair has its licence, credit and source URL too, which the loader does not read. Images that
    pairs share are written once, named by their sha256.
    """
    annotations = folder / "annotation"
    annotations.mkdir()
    with JsonItems(annotations / ALL) as flat:
        for subset, of_subset in itertools.groupby(shards, key=lambda shard: shard.subset):
            samples = itertools.chain.from_iterable(shard.samples for shard in of_subset)
            exported = _exported(samples, folder / "image", subset, flat)
            first = next(exported)
            exported = itertools.chain([first], exported)
            describe = _BY_VIDEO.get(first[0].json.source.dataset)
            with JsonItems(annotations / f"{subset}.json", "[]" if describe is None else "{}") as file:
                if describe is None:
                    for _, entry in exported:
                        file.append(entry)
                    continue
                for video, pairs in itertools.groupby(exported, key=lambda pair: pair[0].json.group):
                    file.append(describe(list(pairs)), video)


def _exported(
    samples: Iterable[Stored[PairRecord]], images: Path, subset: str, flat: JsonItems
) -> Iterator[tuple[Stored[PairRecord], Entry]]:
    """Samples with their annotation entries, once their images are written."""
    for sample in samples:
        folder = FOLDERS.get(sample.json.source.dataset, subset)
        paths = {role: _write_image(image, sample, images, folder) for role, image in sample.images.items()}
        for path, caption in itertools.product(paths.values(), sample.texts.values()):
            flat.append({"image": path, "caption": caption})
        yield sample, {**paths, **sample.texts, "key": sample.key, **sample.json.terms._asdict()}


def _write_image(content: bytes, sample: Stored[PairRecord], images: Path, folder: str) -> str:
    """Write an image, as a picture or as an array; returns its path relative to the image root."""
    if folder != ARRAYS:
        return write_image(content, images, sample.extension, folder)
    rgb, stream = np.asarray(decode(content, sample.key), dtype=np.uint8), io.BytesIO()
    np.save(stream, np.ascontiguousarray(rgb[:, :, ::-1]), allow_pickle=False)  # BGR, as EqBen stores YouCook2
    return write_image(stream.getvalue(), images, "npy", folder)


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


#: What a key of the file, a video, has; a plan never splits a group.
_BY_VIDEO: dict[str, Callable[[Exported], Any]] = {"action-genome": _by_object, "gebc": _entries, "youcook2": _entries}

EQBEN_FORMAT = Format((PAIR,), write_eqben)
