"""Pictures and captions of mistakes, kept in the run's folder: a page can be made again without the benchmark."""

from __future__ import annotations

import io
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cards.sheet import thumbnail
from evaluation.examples import Benchmark, Grounding, LeftOut, Matching, Picture, Query
from evaluation.whole_files import written_whole
from manifests.errors import TwinsetError

PIXELS = (480, 480)
QUALITY = 85
_SCHEMA = pa.schema(
    [
        ("key", pa.string()),
        ("images", pa.list_(pa.struct([("label", pa.string()), ("jpeg", pa.binary())]))),
        ("texts", pa.list_(pa.struct([("label", pa.string()), ("text", pa.string())]))),
    ]
)
_DIGEST = b"data_digest"


@dataclass(frozen=True, slots=True)
class Shown:
    """An example as it is shown. images: label and JPEG, None where it cannot be read. texts: label and text."""

    images: Sequence[tuple[str, bytes | None]]
    texts: Sequence[tuple[str, str]]


def kept_file(out: Path, benchmark: str) -> Path:
    """Where the pictures of a benchmark's mistakes lie."""
    return out / "mistakes" / f"{benchmark}.parquet"


def keep(path: Path, benchmark: Benchmark, keys: Collection[str], data_digest: str) -> dict[str, Shown]:
    """Read the examples of ``keys`` from a benchmark and keep them; returns them with those that were kept before."""
    found = kept(path, data_digest)
    wanted = set(keys) - set(found)
    if not wanted:
        return found
    for example in benchmark.examples():
        if not isinstance(example, LeftOut) and example.key in wanted:
            found[example.key] = _shown(example)
            wanted.discard(example.key)
            if not wanted:
                break
    rows = [
        {
            "key": key,
            "images": [{"label": label, "jpeg": jpeg} for label, jpeg in found[key].images],
            "texts": [{"label": label, "text": text} for label, text in found[key].texts],
        }
        for key in sorted(found)
    ]
    table = pa.Table.from_pylist(rows, _SCHEMA.with_metadata({_DIGEST: data_digest.encode()}))
    with written_whole(path) as beside:
        pq.write_table(table, beside)
    return found


def kept(path: Path, data_digest: str) -> dict[str, Shown]:
    """The examples that were kept of a benchmark with this digest, by key.

    None of another state of its files, and none from a damaged file: they can be read from the benchmark again.
    """
    if not path.is_file():
        return {}
    try:
        table = pq.read_table(path, partitioning=None)
    except (pa.ArrowException, OSError):
        return {}
    if not table.schema.equals(_SCHEMA) or (table.schema.metadata or {}).get(_DIGEST) != data_digest.encode():
        return {}
    return {
        row["key"]: Shown(
            [(image["label"], image["jpeg"]) for image in row["images"]],
            [(text["label"], text["text"]) for text in row["texts"]],
        )
        for row in table.to_pylist()
    }


def _shown(example: Matching | Query | Grounding) -> Shown:
    if isinstance(example, Matching):
        images: Mapping[str, Picture] = {f"image {place}": image for place, image in enumerate(example.images)}
        texts = {f"caption {place}": text for place, text in enumerate(example.captions)}
    elif isinstance(example, Query):
        images, texts = _query(example)
    else:
        # The two frames between which the boundary lies.
        after = int(np.clip(np.searchsorted(example.times, example.boundary), 1, max(len(example.times) - 1, 1)))
        places = [place for place in (after - 1, after) if place < len(example.frames)]
        images = {f"{example.times[place]:.2f} s": example.frames[place] for place in places}
        texts = {"before": example.captions[0], "after": example.captions[1]}
    return Shown([(label, _jpeg(image, example.key)) for label, image in images.items()], list(texts.items()))


def _query(example: Query) -> tuple[dict[str, Picture], dict[str, str]]:
    images = {} if example.image is None else {"query": example.image}
    texts = {} if example.text is None else {"query": example.text}
    if example.targets:
        target = example.gallery[min(example.targets)]
        if isinstance(target, Picture):
            images["target"] = target
        else:
            texts["target"] = target
    return images, texts


def _jpeg(picture: Picture, key: str) -> bytes | None:
    try:
        image = thumbnail(picture.read(), key, PIXELS)
    except (TwinsetError, OSError):
        return None  # it could be read when it was scored; the page says that it cannot any more
    stream = io.BytesIO()
    image.convert("RGB").save(stream, "JPEG", quality=QUALITY)
    return stream.getvalue()
