"""Your own pairs: two images and two captions each, listed in one file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, Literal

from twinset.generators.annotation_files import Skipped, is_media_name, refuse_unusable
from twinset.generators.named_pairs import NamedPairCandidate, NamedPairGenerator, NamedPairSource
from twinset.generators.records import RECORD_REASONS, Record, read_records
from twinset.manifests.repeated_ids import Ids
from twinset.manifests.source import Reference, Settings
from twinset.shards.contracts import LeftOut


class Fields(Settings):
    """What the fields of a record are called.

    id: of its id. image0, image1: of the two images. caption0, caption1: of their captions.
    """

    id: str = "id"
    image0: str = "image0"
    image1: str = "image1"
    caption0: str = "caption0"
    caption1: str = "caption1"


class ImagePairs(NamedPairSource):
    """Pairs on disk.

    annotations: a JSON list of objects, JSON lines or Parquet. An image is a path below ``media``, or a name that is
    found there (`shards.media.image_folder.ImageFolder.find`). A caption is text, or a list of texts, best first.
    media: folder of the images, of folders of them, or of tars. fields: what the fields are called.
    """

    kind: Literal["image-pairs"]
    fields: Fields = Fields()

    generator = "twinset.generators.image_pairs:ImagePairGenerator"
    reference = Reference("a list of image pairs")
    reasons: ClassVar[Mapping[str, str]] = {
        **NamedPairSource.reasons,
        **RECORD_REASONS,
        "no-id": "records without an id, which is text or a whole number",
        "repeated-id": "records with an id that came before; the first counts",
        "no-image": "records that do not name two images",
        "no-caption": "records without a caption of each image",
    }


class ImagePairGenerator(NamedPairGenerator[ImagePairs]):
    """Plans a pair a record."""

    version = 1

    def plan(self) -> Iterator[NamedPairCandidate]:
        """Pairs in the order of the file, which is read twice: memory grows by 8 bytes a record."""
        self.excluded = LeftOut()
        suspects, usable = Ids(self._text(record, "id") for _, record in self._records()).suspects(), False
        for place, record in self._records():
            if problem := self._problem(record):
                self.excluded.add(problem, place)
            elif suspects.place_before(name := self._text(record, "id"), place):
                self.excluded.add("repeated-id", f"{place} (id {name[:100]})")
            else:
                usable = True
                images = self._text(record, "image0"), self._text(record, "image1")
                captions = self._captions(record, "caption0"), self._captions(record, "caption1")
                about = {"id": name, "image0": images[0], "image1": images[1]}
                yield self.planned((name,), images, captions, provenance=about)
        if not usable:
            refuse_unusable(self.source.annotations, self.excluded, "records need an id, two images and two captions")

    def _records(self) -> Iterator[tuple[str, Record]]:
        return read_records(self.source.annotations, tuple(self.source.fields.model_dump().values()))

    def _problem(self, record: Record) -> str:
        """Why a record cannot be used; empty when it can."""
        if isinstance(record, Skipped):
            return record.reason
        if not self._text(record, "id"):
            return "no-id"
        images = [self._text(record, "image0"), self._text(record, "image1")]
        if not all(images):
            return "no-image"
        if not all(map(is_media_name, images)):
            return "unsafe-path"
        return "" if self._captions(record, "caption0") and self._captions(record, "caption1") else "no-caption"

    def _text(self, record: Record, field: str) -> str:
        value = None if isinstance(record, Skipped) else record.get(getattr(self.source.fields, field))
        return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""

    def _captions(self, record: Record, field: str) -> list[str]:
        value = None if isinstance(record, Skipped) else record.get(getattr(self.source.fields, field))
        return [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, str) and one.strip()]
