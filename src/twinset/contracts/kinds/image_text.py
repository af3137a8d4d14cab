"""Photographs with what people said of them: an image and one caption or several, as CLIP is trained on."""

from twinset.contracts.kinds.kind import ImageRecord, Record, SampleKind, SourcesRecord


class ImageTextRecord(Record):
    """The JSON of an image with captions. captions: all, at least one. image_id: as the captions' source calls it."""

    captions: tuple[str, ...]
    image_id: str
    source: SourcesRecord
    image: ImageRecord


#: Fields are ``jpg`` and ``txt``, which open_clip reads too; the column ``captions`` holds a JSON list.
IMAGE_TEXT = SampleKind(
    "image-text", ImageTextRecord, ("image",), ("caption",), ("captions", "image_id"), bare_fields=True
)
