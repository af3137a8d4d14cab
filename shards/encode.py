"""Samples as the fields of a WebDataset row: encoded images, caption files and one JSON with every key always there."""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass
from typing import Any

from PIL import Image

from manifests.canonical import canonical_json
from manifests.recipe import Encoding
from manifests.stage import SCHEMA_VERSION
from shards.samples import Frame, Pair, Pixels, Source

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


def pair_fields(
    pair: Pair, image0: EncodedImage, image1: EncodedImage, dataset: str, licence: str, extension: str
) -> list[tuple[str, bytes]]:
    """The tar fields of a pair, in the order that they are written. dataset: kind of the source."""
    described: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "kind": "pair",
        "split": pair.split,
        "group": pair.group,
        "change": pair.change,
        "source": {"dataset": dataset, "image0": _source(image0.source), "image1": _source(image1.source)},
        "image0": _image(image0),
        "image1": _image(image1),
        "captions": {"caption0": list(pair.captions0), "caption1": list(pair.captions1)},
        "scores": pair.scores,
        "provenance": dict(pair.provenance),
        "licence": licence,
    }
    masks = [(f"mask{number}.png", _png(mask)) for number, mask in enumerate(pair.masks or ())]
    return [
        (f"image0.{extension}", image0.content),
        (f"image1.{extension}", image1.content),
        ("caption0.txt", pair.captions0[0].encode("utf-8")),
        ("caption1.txt", pair.captions1[0].encode("utf-8")),
        *masks,
        ("json", canonical_json(described)),
    ]


def _png(mask: Pixels) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(mask).save(stream, "PNG")
    return stream.getvalue()


def _source(source: Source) -> dict[str, Any]:
    return {"path": source.path, "size": source.size, "sha256": source.sha256}


def _image(image: EncodedImage) -> dict[str, Any]:
    return {"sha256": image.sha256, "size": list(image.size), "pts": image.pts}
