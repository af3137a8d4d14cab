"""Triplets: a reference and a target image that a condition leads to (GeneCIS, section 5.2), and a distractor."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from twinset.contracts.kinds.kind import ImageRecord, JsonByRole, Record, Sample, SampleKind, SourcesRecord
from twinset.contracts.kinds.samples import Frame

PARTS = ("reference", "target", "distractor")


class TripletRecord(Record):
    """The JSON of a triplet. captions, image_ids: by part, "" for a distractor that there is not."""

    condition: str
    source: SourcesRecord
    images: dict[str, ImageRecord]
    captions: dict[str, str]
    image_ids: dict[str, str]


TRIPLET = SampleKind(
    "triplet",
    TripletRecord,
    PARTS,
    ("condition",),
    (*(f"{part}_caption" for part in PARTS), *(f"{part}_id" for part in PARTS)),
    optional=frozenset({"distractor"}),
)


@dataclass(slots=True, kw_only=True)
class Triplet(Sample):
    """A triplet.

    reference, target, distractor: the last may be left out; all are None where only an index is made. The condition
    fits the distractor too.
    captions, images: caption and image id by part (`PARTS`), "" for what it lacks.
    """

    kind: ClassVar[SampleKind] = TRIPLET

    condition: str
    reference: Frame | None
    target: Frame | None
    distractor: Frame | None
    captions: Mapping[str, str]
    images: Mapping[str, str]

    def pictures(self) -> dict[str, Frame]:
        frames = zip(PARTS, (self.reference, self.target, self.distractor), strict=True)
        return {part: frame for part, frame in frames if frame is not None}

    def described(self) -> dict[str, str]:
        captions = {f"{part}_caption": self.captions[part] for part in PARTS}
        return {"condition": self.condition, **captions, **{f"{part}_id": self.images[part] for part in PARTS}}

    def recorded(self, dataset: str, files: JsonByRole, images: JsonByRole) -> dict[str, Any]:
        return {
            "condition": self.condition,
            "source": {"dataset": dataset, "files": files},
            "images": images,
            "captions": dict(self.captions),
            "image_ids": dict(self.images),
        }

    def question(self, images: Mapping[str, str]) -> Any:
        """As `Sample.question`: with the same images and condition, captions and ids may differ."""
        return [self.kind.name, {"condition": self.condition} if images else self.described(), dict(images)]
