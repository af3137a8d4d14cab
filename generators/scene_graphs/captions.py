"""Captions as they come from files: one record each, and what could not be read, with its place."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from twinset.generators.annotation_files import LINE_REASONS, Skipped

LONGEST_CAPTION = 10_000  # characters: some thousand words, where a caption has ten

#: Why a line or row of captions is left out.
CAPTION_REASONS = {
    **LINE_REASONS,
    "empty-caption": "captions without a word",
    "no-image-id": "captions that do not say which image they belong to",
    "wrong-columns": "lines of a TSV with another number of columns",
    "no-url": "lines of a TSV without the address of an image",
    "no-tab": "lines of a token file without a tab",
    "no-object": "lines that are not JSON objects",
    "no-caption-id": "annotations of COCO without an id",
    "unknown-image": "annotations of COCO whose image is not among its images",
    "unfinished-shard": "shards of img2dataset of which the tar or the table is absent",
    "broken-tar": "tars of img2dataset whose headers cannot be read",
    "not-downloaded": "images that img2dataset could not download",
    "no-image": "captions whose image is not in the tar",
}

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


Read = Caption | Skipped


def from_fields(fields: Mapping[str, Any], place: str, default_id: str) -> Read:
    """A caption of named fields (a JSON object, a row), unless something in it is empty or too long.

    default_id: where it has no id of its own.
    """
    caption, image_id, image = (_text(fields, names) for names in (CAPTION, IMAGE_ID, IMAGE))
    if not caption.strip():
        return Skipped(place, "empty-caption")
    if len(caption) > LONGEST_CAPTION:
        return Skipped(place, "too-long")
    if not image_id:
        return Skipped(place, "no-image-id")
    return Caption(_text(fields, CAPTION_ID) or default_id, image_id, caption, image, place)


def _text(fields: Mapping[str, Any], names: tuple[str, ...]) -> str:
    """The first of the fields that holds text or a whole number; empty where none does."""
    for name in names:
        value = fields.get(name)
        if isinstance(value, str | int) and not isinstance(value, bool):
            return str(value)
    return ""
