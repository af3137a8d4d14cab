"""Pictures and captions of mistakes, kept in the run's folder: a page can be made again without the benchmark."""

import io
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from twinset.cards.sheet import thumbnail
from twinset.evaluation.examples import Benchmark, Grounding, LeftOut, Matching, Picture, Query
from twinset.manifests.errors import TwinsetError
from twinset.shards.storage.whole_file import whole_file

PIXELS = (480, 480)
QUERY_ROLES = ("query", "target", "best wrong entry")  # labels of what is shown of a query
QUALITY = 85
_SCHEMA = pa.schema(
    [
        ("key", pa.string()),
        ("best_wrong", pa.int32()),
        ("images", pa.list_(pa.struct([("label", pa.string()), ("jpeg", pa.binary())]))),
        ("texts", pa.list_(pa.struct([("label", pa.string()), ("text", pa.string())]))),
    ]
)
_DIGEST = b"data_digest"
#: Key of an example, and of a query the place in the gallery of the wrong entry that is shown too.
Name = tuple[str, int | None]


@dataclass(frozen=True, slots=True)
class Shown:
    """An example as it is shown. images: label and JPEG, None where it cannot be read. texts: label and text."""

    images: Sequence[tuple[str, bytes | None]]
    texts: Sequence[tuple[str, str]]


def kept_file(out: Path, benchmark: str) -> Path:
    """Where the pictures of a benchmark's mistakes lie."""
    return out / "mistakes" / f"{benchmark}.parquet"


def keep(path: Path, benchmark: Benchmark, names: Collection[Name], data_digest: str) -> dict[Name, Shown]:
    """Read examples from a benchmark and keep them; returns them with those that were kept before."""
    found = kept(path, data_digest)
    wanted: dict[str, list[int | None]] = {}
    for key, wrong in sorted(set(names) - set(found), key=str):
        wanted.setdefault(key, []).append(wrong)
    if not wanted:
        return found
    for example in benchmark.examples():
        if not isinstance(example, LeftOut) and example.key in wanted:
            for wrong in wanted.pop(example.key):
                found[example.key, wrong] = _shown(example, wrong)
            if not wanted:
                break
    rows = [
        {
            "key": key,
            "best_wrong": wrong,
            "images": [{"label": label, "jpeg": jpeg} for label, jpeg in shown.images],
            "texts": [{"label": label, "text": text} for label, text in shown.texts],
        }
        for (key, wrong), shown in sorted(found.items(), key=lambda item: str(item[0]))
    ]
    table = pa.Table.from_pylist(rows, _SCHEMA.with_metadata({_DIGEST: data_digest.encode()}))
    with whole_file(path) as beside:
        pq.write_table(table, beside)
    return found


def kept(path: Path, data_digest: str) -> dict[Name, Shown]:
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
        (row["key"], row.get("best_wrong")): Shown(
            [(image["label"], image["jpeg"]) for image in row["images"]],
            [(text["label"], text["text"]) for text in row["texts"]],
        )
        for row in table.to_pylist()
    }


def _shown(example: Matching | Query | Grounding, wrong: int | None) -> Shown:
    if isinstance(example, Matching):
        images: Mapping[str, Picture] = {f"image {place}": image for place, image in enumerate(example.images)}
        texts = {f"caption {place}": text for place, text in enumerate(example.captions)}
    elif isinstance(example, Query):
        images, texts = _query(example, wrong)
    else:
        # The two frames between which the boundary lies.
        after = int(np.clip(np.searchsorted(example.times, example.boundary), 1, max(len(example.times) - 1, 1)))
        places = [place for place in (after - 1, after) if place < len(example.frames)]
        images = {f"{example.times[place]:.2f} s": example.frames[place] for place in places}
        texts = {"before": example.captions[0], "after": example.captions[1]}
    return Shown([(label, _jpeg(image, example.key)) for label, image in images.items()], list(texts.items()))


def _query(example: Query, wrong: int | None) -> tuple[dict[str, Picture], dict[str, str]]:
    """What is asked, the first target, and the wrong entry that scores highest: the role of each is its label."""
    images = {} if example.image is None else {QUERY_ROLES[0]: example.image}
    texts = {} if example.text is None else {QUERY_ROLES[0]: example.text}
    for role, place in zip(QUERY_ROLES[1:], (min(example.targets, default=None), wrong), strict=True):
        if place is None or not place < len(example.gallery):
            continue
        entry = example.gallery[place]
        if isinstance(entry, Picture):
            images[role] = entry
        else:
            texts[role] = entry
    return images, texts


def _jpeg(picture: Picture, key: str) -> bytes | None:
    try:
        image = thumbnail(picture.read(), key, PIXELS)
    except (TwinsetError, OSError):
        return None  # it could be read when it was scored; the page says that it cannot any more
    stream = io.BytesIO()
    image.convert("RGB").save(stream, "JPEG", quality=QUALITY)
    return stream.getvalue()
