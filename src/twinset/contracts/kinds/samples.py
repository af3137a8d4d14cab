"""What flows through a build once it is planned: frames, rejections, rows of tables, verdicts, encoded images."""

import hashlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twinset.contracts.recipe import Encoding

Pixels = NDArray[np.uint8]

#: Anything that JSON can hold, so long as every sample of a source has the same keys with the same types.
Json = str | int | float | bool | Sequence["Json"] | Mapping[str, "Json"]

EXTENSIONS = ("jpg", "png", "webp")
LONGEST_SIDE = 16_383  # pixels of WebP, the least of all formats


@dataclass(frozen=True, slots=True)
class MediaFile:
    """A media file that pixels came from: path relative to the media folder ('/' separators), bytes, sha256."""

    path: str
    size: int
    sha256: str


@dataclass(eq=False, slots=True)
class Frame:
    """One picture, shared by all samples that show it, so that it is decoded, judged and encoded once.

    id: unique within a subset, e.g. ``VIDEO#12.500``. pixels: (height, width, 3) uint8 RGB.
    pts: presentation time in seconds, -1.0 where a picture has none.
    """

    id: str
    pixels: Pixels
    pts: float
    source: MediaFile


@dataclass(frozen=True, slots=True)
class Rejected:
    """A candidate that could not be made.

    reason: short, countable (``missing-media``, ``broken-media``). detail: for people.
    media: name of a missing or unreadable file (`shards.media.media_folder.Media.size`); the rejection goes stale once
    it has another size than `media_size` (None: it was absent).
    """

    key: str
    reason: str
    detail: str = ""
    media: str | None = None
    media_size: int | None = None


@dataclass(frozen=True, slots=True)
class TableRows:
    """What a candidate of a table stage gives: a row or several, each with the columns of ``row_schema``."""

    key: str
    rows: Sequence[Mapping[str, str | int | float | bool | Sequence[float] | None]]


@dataclass(frozen=True, slots=True)
class Keep:
    """Nothing speaks against it."""


@dataclass(frozen=True, slots=True)
class Drop:
    """Reject, for a short countable reason; score is the number that decided, if any."""

    reason: str
    score: float | None = None


@dataclass(frozen=True, slots=True)
class Score:
    """Keep, and record a number under a name in the sample's JSON; who scores must score all that is kept."""

    name: str
    value: float


Verdict = Keep | Drop | Score


@dataclass(frozen=True, slots=True)
class EncodedImage:
    """An encoded picture. size: (width, height) in pixels. pts: seconds, -1.0 where a picture has none."""

    content: bytes
    sha256: str
    size: tuple[int, int]
    pts: float
    source: MediaFile


def encodable(frame: Frame) -> bool:
    """Whether every encoding can hold a frame of this size."""
    return bool(max(frame.pixels.shape[:2]) <= LONGEST_SIDE)


def encode_image(frame: Frame, encoding: Encoding) -> EncodedImage:
    """Encode one frame. JPEG keeps full colour resolution: attributes such as colour are what is asked about."""
    from PIL import Image  # not needed by what reads a recipe

    picture, stream = Image.fromarray(frame.pixels), io.BytesIO()
    options = {"jpg": {"quality": encoding.quality, "subsampling": 0}, "webp": {"quality": encoding.quality}, "png": {}}
    picture.save(stream, "JPEG" if encoding.format == "jpg" else encoding.format, **options[encoding.format])
    content = stream.getvalue()
    return EncodedImage(content, hashlib.sha256(content).hexdigest(), picture.size, frame.pts, frame.source)
