"""Triplets: a reference and a target image that a condition leads to (GeneCIS, section 5.2), and a distractor."""

from twinset.contracts.kinds.kind import ImageRecord, Record, SampleKind, SourcesRecord

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
