"""Samples as they lie in tars: encoded images, captions, and the JSON of each kind, checked against its model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from manifests.errors import WrongUse
from shards.kinds.names import GALLERY, KINDS, PAIR, PARTS, TEMPLATE, TRIPLET, SampleKind
from shards.storage.tar_reader import BrokenTar

EXTENSIONS = ("jpg", "png", "webp")
MASKS = ("mask0.png", "mask1.png")
REMEDY = "build this shard again"


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


class _Record(_Described):
    """What the JSON of every kind has, as `shards.kinds.fields.fields_of` writes it."""

    schema_version: int
    kind: str
    split: str
    group: str
    scores: dict[str, float]
    provenance: dict[str, JsonValue]
    licence: str


class PairRecord(_Record):
    """The JSON of a pair."""

    change: str
    source: SourceRecord
    image0: ImageRecord
    image1: ImageRecord
    captions: CaptionsRecord


class SourcesRecord(_Described):
    """Where images come from, by role. dataset: kind of the source, such as ``genecis-triplets``."""

    dataset: str
    files: dict[str, SourceFile]


class TripletRecord(_Record):
    """The JSON of a triplet. captions, image_ids: by part, "" for a distractor that there is not."""

    condition: str
    source: SourcesRecord
    images: dict[str, ImageRecord]
    captions: dict[str, str]
    image_ids: dict[str, str]


class TemplateRecord(_Record):
    """The JSON of a template. entry: as GeneCIS's released evaluation reads it."""

    task: str
    condition: str
    source: SourcesRecord
    images: dict[str, ImageRecord]
    entry: dict[str, JsonValue]


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


@dataclass(frozen=True, slots=True)
class StoredTriplet:
    """One triplet as it lies in a tar. images: encoded, by role; extension: of all."""

    key: str
    images: Mapping[str, bytes]
    extension: str
    condition: str
    json: TripletRecord


@dataclass(frozen=True, slots=True)
class StoredTemplate:
    """One template as it lies in a tar. images: encoded, by role: the reference, the target, then the distractors."""

    key: str
    images: Mapping[str, bytes]
    extension: str
    condition: str
    json: TemplateRecord


Stored = StoredPair | StoredTriplet | StoredTemplate


def pairs(samples: Iterable[Stored], use: str) -> Iterator[StoredPair]:
    """Samples that must be pairs; raises `WrongUse` where one is not. use: what takes pairs only, for the message."""
    for sample in samples:
        if not isinstance(sample, StoredPair):
            raise WrongUse(
                f"{sample.key} is a {sample.json.kind}, and {use} takes pairs; name other subsets with --only"
            )
        yield sample


def stored(key: str, fields: Mapping[str, bytes], where: str) -> Stored:
    """The sample that the fields of a tar make, of whatever kind; raises `BrokenTar` when they make none."""
    extension = next((one for one in EXTENSIONS for kind in KINDS if f"{kind.images[0]}.{one}" in fields), "jpg")
    kind = PAIR
    if f"{TRIPLET.texts[0]}.txt" in fields:
        kind = TEMPLATE if f"{GALLERY[0]}.{extension}" in fields else TRIPLET
    _check_fields(key, kind, fields, extension, where)
    images = {role: fields[name] for role in kind.images if (name := f"{role}.{extension}") in fields}
    try:
        texts = [fields[f"{name}.txt"].decode("utf-8") for name in kind.texts]
        described = fields["json"]
        if kind is PAIR:
            masks = (fields[MASKS[0]], fields[MASKS[1]]) if MASKS[0] in fields else None
            pair = PairRecord.model_validate_json(described)
            return StoredPair(key, *images.values(), extension, *texts, pair, masks)  # type: ignore[call-arg, arg-type]
        if kind is TRIPLET:
            return StoredTriplet(key, images, extension, texts[0], TripletRecord.model_validate_json(described))
        return StoredTemplate(key, images, extension, texts[0], TemplateRecord.model_validate_json(described))
    except UnicodeDecodeError as error:
        raise BrokenTar(f"{where}: a caption of {key} is not UTF-8 ({error}); {REMEDY}") from error
    except ValidationError as error:
        first = error.errors()[0]
        problem = f"{'.'.join(map(str, first['loc']))} {first['msg']}"
        raise BrokenTar(f"{where}: {key}.json: {problem}; {REMEDY}") from error


def _check_fields(key: str, kind: SampleKind, fields: Mapping[str, bytes], extension: str, where: str) -> None:
    """Refuse fields that are too few or too many: optional images are absent from some on."""
    needed = [role for role in kind.images if role not in kind.optional or role in PARTS[:2]]
    there = [role for role in kind.images if f"{role}.{extension}" in fields]
    wanted = {f"{role}.{extension}" for role in {*needed, *there}} | {f"{name}.txt" for name in kind.texts} | {"json"}
    masks = set(MASKS) & set(fields) if kind is PAIR else set()
    if set(fields) - masks != wanted or len(masks) == 1 or tuple(there) != kind.images[: len(there)]:
        raise BrokenTar(f"{where}: {key} has {sorted(fields)} instead of {sorted(wanted)}; {REMEDY}")
