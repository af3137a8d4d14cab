"""Templates: questions of GeneCIS's tasks, a reference, a condition and a gallery of images of which one is right."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from pydantic import JsonValue

from twinset.contracts.kinds.kind import ImageRecord, Record, Sample, SampleKind, SourcesRecord
from twinset.contracts.kinds.samples import Frame, Json

#: Distractors of the largest gallery; a template of 10 images has 9 of them and its target (GeneCIS, Table 1).
GALLERY = tuple(f"gallery{number:02d}" for number in range(14))


class TemplateRecord(Record):
    """The JSON of a template. entry: as GeneCIS's released evaluation reads it."""

    task: str
    condition: str
    source: SourcesRecord
    images: dict[str, ImageRecord]
    entry: dict[str, JsonValue]


ROLES, LAST = ("reference", "target", *GALLERY), frozenset(GALLERY[1:])
TEMPLATE = SampleKind("template", TemplateRecord, ROLES, ("condition",), ("task",), optional=LAST)


@dataclass(slots=True, kw_only=True)
class Template(Sample):
    """A template: which image of a gallery is most like the reference, given the condition.

    task: ``focus-attribute``, ``change-attribute``, ``focus-object`` or ``change-object``.
    gallery: the distractors, without the target, which is the right answer. entry: as in `TemplateRecord`.
    """

    kind: ClassVar[SampleKind] = TEMPLATE

    task: str
    condition: str
    reference: Frame
    target: Frame
    gallery: tuple[Frame, ...]
    entry: Mapping[str, Json]

    def pictures(self) -> dict[str, Frame]:
        return dict(zip(ROLES, (self.reference, self.target, *self.gallery), strict=False))
