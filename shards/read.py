"""Reading samples back, with the suspicion that a file from elsewhere deserves."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from manifests.receipt import Receipt, parse_receipt
from shards import layout
from shards.progress import PARALLEL_READS
from shards.store import Store
from shards.tar_reader import BrokenTar, read_members

EXTENSIONS = ("jpg", "png", "webp")
MASKS = ("mask0.png", "mask1.png")
REMEDY = "build this shard again"
RECEIPT_NAME = re.compile(r"\d{5,}\.json")


class _Described(BaseModel):
    model_config = ConfigDict(frozen=True)


class ImageRecord(_Described):
    """sha256 of the encoded image; size: (width, height) in pixels; pts: seconds, -1.0 where a picture has none."""

    sha256: str
    size: tuple[int, int]
    pts: float


class SourceFile(_Described):
    """A media file: path relative to the media folder, size in bytes, sha256."""

    path: str
    size: int
    sha256: str


class SourceRecord(_Described):
    """Where the two images come from. dataset: kind of the source, such as ``gebc``."""

    dataset: str
    image0: SourceFile
    image1: SourceFile


class CaptionsRecord(_Described):
    """All captions that hold of each image, the sample's own first."""

    caption0: tuple[str, ...] = Field(min_length=1)
    caption1: tuple[str, ...] = Field(min_length=1)


class PairRecord(_Described):
    """The JSON of a pair, as `shards.encode.pair_fields` writes it."""

    schema_version: int
    kind: str
    split: str
    group: str
    change: str
    source: SourceRecord
    image0: ImageRecord
    image1: ImageRecord
    captions: CaptionsRecord
    scores: dict[str, float]
    provenance: dict[str, JsonValue]
    licence: str


@dataclass(frozen=True, slots=True)
class StoredPair:
    """One pair as it lies in a tar.

    image0, image1: encoded; extension: of both, ``jpg``, ``png`` or ``webp``. masks: of both, as PNG, where stored.
    """

    key: str
    image0: bytes
    image1: bytes
    extension: str
    caption0: str
    caption1: str
    json: PairRecord
    masks: tuple[bytes, bytes] | None = None


def read_receipts(store: Store, subset: str) -> list[Receipt]:
    """Receipts of the finished shards, by number; numbers may be missing."""
    names = [name for name in store.names(layout.meta(subset, "receipts")) if RECEIPT_NAME.fullmatch(name)]
    found = []
    with ThreadPoolExecutor(PARALLEL_READS) as pool:
        contents = pool.map(lambda name: store.read(layout.meta(subset, f"receipts/{name}")), names)
        for name, content in zip(names, contents, strict=True):
            receipt = parse_receipt(content)
            if receipt is None or f"{receipt.shard:05d}.json" != name:
                raise BrokenTar(f"{store.root}/{subset}/_meta/receipts/{name}: not a receipt; {REMEDY}")
            found.append(receipt)
    return sorted(found, key=lambda receipt: receipt.shard)


def read_samples(store: Store, subset: str, limit: int | None = None) -> Iterator[StoredPair]:
    """Pairs of all finished shards in plan order, at most ``limit``; holds one pair at a time.

    Raises BrokenTar, naming tar and member, for anything that `shards.tar_writer` would not have written.
    """
    tars = (layout.tar(subset, one.split, one.shard) for one in read_receipts(store, subset) if one.tar_size)
    return itertools.islice(itertools.chain.from_iterable(read_tar(store, tar) for tar in tars), limit)


def read_spread(store: Store, subset: str, count: int) -> list[StoredPair]:
    """``count`` pairs evenly spread over a subset (all of them when it has fewer), in plan order.

    Position k of n is the middle of the k-th of ``count`` equal parts, so that the same dataset shows the same pairs.
    """
    receipts = [receipt for receipt in read_receipts(store, subset) if receipt.tar_size]
    total = sum(receipt.kept for receipt in receipts)
    count = min(count, total)
    wanted = {(2 * k + 1) * total // (2 * count) for k in range(count)}
    found: list[StoredPair] = []
    start = 0
    for receipt in receipts:
        here = {place - start for place in wanted if start <= place < start + receipt.kept}
        if here:
            for place, sample in enumerate(read_tar(store, layout.tar(subset, receipt.split, receipt.shard))):
                if place in here:
                    found.append(sample)
                if place >= max(here):
                    break
        start += receipt.kept
    return found


def read_tar(store: Store, path: str) -> Iterator[StoredPair]:
    """The pairs of one tar, in order. Nothing is extracted: members are read into memory, each within a limit."""
    where = f"{store.root}/{path}"
    try:
        with store.open(path) as stream:
            key, fields = "", dict[str, bytes]()
            for name, content in read_members(stream, where):
                here, _, field = name.partition(".")
                if here != key and fields:
                    yield _pair(key, fields, where)
                    fields = {}
                key = here
                if field in fields:
                    raise BrokenTar(f"{where}: member {name!r} occurs twice; {REMEDY}")
                fields[field] = content
            if fields:
                yield _pair(key, fields, where)
    except FileNotFoundError as error:
        raise BrokenTar(f"{where}: named by its receipt, but absent; {REMEDY}") from error


def _pair(key: str, fields: dict[str, bytes], where: str) -> StoredPair:
    extension = next((one for one in EXTENSIONS if f"image0.{one}" in fields), EXTENSIONS[0])
    wanted = {f"image0.{extension}", f"image1.{extension}", "caption0.txt", "caption1.txt", "json"}
    if set(fields) - set(MASKS) != wanted or 0 < len(set(MASKS) & set(fields)) < len(MASKS):
        raise BrokenTar(f"{where}: {key} has {sorted(fields)} instead of {sorted(wanted)}; {REMEDY}")
    try:
        return StoredPair(
            key,
            fields[f"image0.{extension}"],
            fields[f"image1.{extension}"],
            extension,
            fields["caption0.txt"].decode("utf-8"),
            fields["caption1.txt"].decode("utf-8"),
            PairRecord.model_validate_json(fields["json"]),
            (fields[MASKS[0]], fields[MASKS[1]]) if MASKS[0] in fields else None,
        )
    except UnicodeDecodeError as error:
        raise BrokenTar(f"{where}: a caption of {key} is not UTF-8 ({error}); {REMEDY}") from error
    except ValidationError as error:
        first = error.errors()[0]
        problem = f"{'.'.join(map(str, first['loc']))} {first['msg']}"
        raise BrokenTar(f"{where}: {key}.json: {problem}; {REMEDY}") from error
