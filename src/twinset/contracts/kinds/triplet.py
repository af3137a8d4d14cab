"""Triplets: a reference and a target image that a condition leads to (GeneCIS, section 5.2), and a distractor."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from twinset.contracts.kinds.kind import ImageRecord, Record, Sample, SampleKind, SourcesRecord
from twinset.contracts.kinds.samples import Frame

PARTS = ("reference", "target", "distractor")


class TripletRecord(Record):
    """The JSON of a triplet. captions, image_ids: by part, "" for a distractor that there is not."""

    condition: str
    source: SourcesRecord
    images: dict[str, ImageRecord]
    captions: dict[str, str]
    image_ids: dict[str, str]


COLUMNS = (*(f"{part}_caption" for part in PARTS), *(f"{part}_id" for part in PARTS))
TRIPLET = SampleKind("triplet", TripletRecord, PARTS, ("condition",), COLUMNS, optional=frozenset({"distractor"}))


@dataclass(slots=True, kw_only=True)
class Triplet(Sample):
    """A triplet.

    reference, target, distractor: the last may be left out; all are None where only an index is made. The condition
    fits the distractor too. captions, image_ids: by part (`PARTS`), "" for what it lacks.
    """

    kind: ClassVar[SampleKind] = TRIPLET

    condition: str
    reference: Frame | None
    target: Frame | None
    distractor: Frame | None
    captions: Mapping[str, str]
    image_ids: Mapping[str, str]

    def described(self) -> dict[str, str]:
        words = [self.condition, *(of[part] for of in (self.captions, self.image_ids) for part in PARTS)]
        return dict(zip(self.kind.described, words, strict=True))

    def question(self, images: Mapping[str, str]) -> Any:
        """As `Sample.question`: with the same images and condition, captions and ids may differ."""
        return [self.kind.name, {"condition": self.condition} if images else self.described(), dict(images)]
