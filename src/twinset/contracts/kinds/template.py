"""Templates: questions of GeneCIS's tasks, a reference, a condition and a gallery of images of which one is right."""

from pydantic import JsonValue

from twinset.contracts.kinds.kind import ImageRecord, Record, SampleKind, SourcesRecord

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
