"""Samples as the fields of a WebDataset row: encoded images, caption files and one JSON with every key always there."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from PIL import Image

from manifests.canonical import canonical_json
from manifests.recipe import Encoding
from manifests.stage import SCHEMA_VERSION
from shards.kinds.samples import Frame, Pair, Pixels, Sample, Source, Template, Triplet

LONGEST_SIDE = 16_383  # pixels


@dataclass(frozen=True, slots=True)
class EncodedImage:
    """An encoded picture. size: (width, height) in pixels. pts: seconds, -1.0 where a picture has none."""

    content: bytes
    sha256: str
    size: tuple[int, int]
    pts: float
    source: Source


def encodable(frame: Frame) -> bool:
    """Whether every encoding can hold a frame of this size: WebP's limit is the lowest."""
    height, width = frame.pixels.shape[:2]
    return bool(max(height, width) <= LONGEST_SIDE)


def encode_image(frame: Frame, encoding: Encoding) -> EncodedImage:
    """Encode one frame. JPEG keeps full colour resolution: attributes such as colour are what is asked about."""
    picture, stream = Image.fromarray(frame.pixels), io.BytesIO()
    if encoding.format == "jpg":
        picture.save(stream, "JPEG", quality=encoding.quality, subsampling=0)
    elif encoding.format == "webp":
        picture.save(stream, "WEBP", quality=encoding.quality)
    else:
        picture.save(stream, "PNG")
    content = stream.getvalue()
    return EncodedImage(content, hashlib.sha256(content).hexdigest(), picture.size, frame.pts, frame.source)


def fields_of(
    sample: Sample, images: Mapping[str, EncodedImage], dataset: str, licence: str, extension: str
) -> list[tuple[str, bytes]]:
    """The tar fields of a sample, in the order that they are written. images: by role. dataset: kind of the source."""
    described = {
        "schema_version": SCHEMA_VERSION,
        "kind": sample.kind.name,
        "split": sample.split,
        "group": sample.group,
        **(_of_pair(sample, images, dataset) if isinstance(sample, Pair) else _of_others(sample, images, dataset)),
        "scores": sample.scores,
        "provenance": dict(sample.provenance),
        "licence": licence,
    }
    masks = sample.masks or () if isinstance(sample, Pair) else ()
    words = sample.described()
    return [
        *((f"{role}.{extension}", image.content) for role, image in images.items()),
        *((f"{name}.txt", words[name].encode("utf-8")) for name in sample.kind.texts),
        *((f"mask{number}.png", _png(mask)) for number, mask in enumerate(masks)),
        ("json", canonical_json(described)),
    ]


def _of_pair(pair: Pair, images: Mapping[str, EncodedImage], dataset: str) -> dict[str, Any]:
    return {
        "change": pair.change,
        "source": {"dataset": dataset, **{role: _source(image.source) for role, image in images.items()}},
        **{role: _image(image) for role, image in images.items()},
        "captions": {"caption0": list(pair.captions0), "caption1": list(pair.captions1)},
    }


def _of_others(sample: Triplet | Template, images: Mapping[str, EncodedImage], dataset: str) -> dict[str, Any]:
    own: dict[str, Any]
    if isinstance(sample, Triplet):
        own = {"captions": dict(sample.captions), "image_ids": dict(sample.images)}
    else:
        own = {"task": sample.task, "entry": dict(sample.entry)}
    return {
        "condition": sample.condition,
        "source": {"dataset": dataset, "files": {role: _source(image.source) for role, image in images.items()}},
        "images": {role: _image(image) for role, image in images.items()},
        **own,
    }


def _png(mask: Pixels) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(mask).save(stream, "PNG")
    return stream.getvalue()


def _source(source: Source) -> dict[str, Any]:
    return {"path": source.path, "size": source.size, "sha256": source.sha256}


def _image(image: EncodedImage) -> dict[str, Any]:
    return {"sha256": image.sha256, "size": list(image.size), "pts": image.pts}
