"""Photographs with what people said of them: an image and one caption or several, as CLIP is trained on."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from twinset.contracts.kinds.kind import ImageRecord, Record, Sample, SampleKind, SourcesRecord
from twinset.contracts.kinds.samples import Frame


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


@dataclass(slots=True, kw_only=True)
class ImageText(Sample):
    """An image with captions. image: None in an index. captions: one at least; the first is its text."""

    kind: ClassVar[SampleKind] = IMAGE_TEXT

    image: Frame | None
    captions: tuple[str, ...]
    image_id: str

    @property
    def caption(self) -> str:
        """The first."""
        return self.captions[0]

    def question(self, images: Mapping[str, str]) -> Any:
        """As `Sample.question`; without images, of the same image id."""
        return [self.kind.name, list(self.captions), dict(images) or self.image_id]
