"""Captions as they come from files: one record each, and what could not be read, with its place."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from manifests.errors import WrongUse

LONGEST_LINE = 1 << 20  # bytes; what is longer is no line of captions and is not held
LONGEST_CAPTION = 10_000  # characters: some thousand words, where a caption has ten
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

# Names that columns and fields go by; the first that is there counts.
CAPTION = ("caption", "text", "sentence")
CAPTION_ID = ("caption_id", "id")
IMAGE_ID = ("image_id", "key", "image", "file_name", "filename", "url")
IMAGE = ("image", "path", "file_name", "filename", "url", "image_url")


@dataclass(frozen=True, slots=True)
class Caption:
    """A caption of an image.

    caption_id: different for every caption of a source. image_id: the same for captions of one image. image: where the
    image is, as the source says it: a URL, a file name, or TAR/MEMBER; may be empty. place: where the caption stands.
    """

    caption_id: str
    image_id: str
    caption: str
    image: str
    place: str


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What a source holds and cannot be used. place: such as ``line 12``; reason: one of a few words."""

    place: str
    reason: str


Read = Caption | LeftOut


def checked(caption: Caption) -> Read:
    """The caption, unless something in it is empty or too long."""
    if not caption.caption.strip():
        return LeftOut(caption.place, "empty-caption")
    if len(caption.caption) > LONGEST_CAPTION:
        return LeftOut(caption.place, "too-long")
    if not caption.image_id:
        return LeftOut(caption.place, "no-image-id")
    return caption


def from_fields(fields: Mapping[str, Any], place: str, default_id: str) -> Read:
    """A caption of named fields (a JSON object, a row); ``default_id`` where it has no id of its own."""
    values = {
        name: _text(fields, names) for name, names in (("caption", CAPTION), ("image_id", IMAGE_ID), ("image", IMAGE))
    }
    if values["caption"] is None:
        return LeftOut(place, "empty-caption")
    caption_id = _text(fields, CAPTION_ID)
    return checked(
        Caption(caption_id or default_id, values["image_id"] or "", values["caption"], values["image"] or "", place)
    )


def _text(fields: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    for name in names:
        value = fields.get(name)
        if isinstance(value, str | int) and not isinstance(value, bool):
            return str(value)
    return None


def lines(path: Path) -> Iterator[tuple[int, str | LeftOut]]:
    """Numbers (from 1) and texts of the lines of a file, ``.gz`` too, without their ends; empty lines are left out.

    Lines end with a line feed only: captions hold other separators. Raises `WrongUse` when the file cannot be read on.
    """
    try:
        with _open(path) as stream:
            number = 0
            while line := stream.readline(LONGEST_LINE):
                number += 1
                if not line.endswith(b"\n") and len(line) == LONGEST_LINE:
                    while (rest := stream.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
                        pass
                    yield number, LeftOut(f"line {number}", "too-long")
                    continue
                if number == 1:
                    line = line.removeprefix(BYTE_ORDER_MARK)
                if not (line := line.rstrip(b"\r\n")).strip():
                    continue
                try:
                    yield number, line.decode("utf-8")
                except UnicodeDecodeError:
                    yield number, LeftOut(f"line {number}", "not-utf-8")
    except (OSError, EOFError, zlib.error) as error:
        raise WrongUse(f"{path}: cannot be read to its end ({error}); fetch the file again") from error


def _open(path: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.open(path, "rb")) if path.suffix == ".gz" else path.open("rb")
