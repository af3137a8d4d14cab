"""Encoded images, as they are stored."""

import hashlib
import io
from dataclasses import dataclass

from twinset.manifests.recipe import Encoding
from twinset.shards.kinds.samples import Frame, MediaFile, Pixels

EXTENSIONS = ("jpg", "png", "webp")
LONGEST_SIDE = 16_383  # pixels


@dataclass(frozen=True, slots=True)
class EncodedImage:
    """An encoded picture. size: (width, height) in pixels. pts: seconds, -1.0 where a picture has none."""

    content: bytes
    sha256: str
    size: tuple[int, int]
    pts: float
    source: MediaFile


def encodable(frame: Frame) -> bool:
    """Whether every encoding can hold a frame of this size: WebP's limit is the lowest."""
    height, width = frame.pixels.shape[:2]
    return bool(max(height, width) <= LONGEST_SIDE)


def encode_image(frame: Frame, encoding: Encoding) -> EncodedImage:
    """Encode one frame. JPEG keeps full colour resolution: attributes such as colour are what is asked about."""
    from PIL import Image  # not needed by what reads a recipe

    picture, stream = Image.fromarray(frame.pixels), io.BytesIO()
    if encoding.format == "jpg":
        picture.save(stream, "JPEG", quality=encoding.quality, subsampling=0)
    elif encoding.format == "webp":
        picture.save(stream, "WEBP", quality=encoding.quality)
    else:
        picture.save(stream, "PNG")
    content = stream.getvalue()
    return EncodedImage(content, hashlib.sha256(content).hexdigest(), picture.size, frame.pts, frame.source)


def encode_mask(mask: Pixels) -> bytes:
    """A mask of numbers as PNG."""
    from PIL import Image

    stream = io.BytesIO()
    Image.fromarray(mask).save(stream, "PNG")
    return stream.getvalue()
