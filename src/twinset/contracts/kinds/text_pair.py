"""Text pairs: an image, a caption of it, and a negative caption that is wrong of it in one thing (TROHN-Text)."""

from twinset.contracts.kinds.kind import ImageRecord, Record, SampleKind, SourcesRecord


class TextPairRecord(Record):
    """The JSON of a text pair.

    type, subtype: such as ``replace`` and ``obj``, or "". image_id: as the captions' source calls it.
    """

    type: str
    subtype: str
    image_id: str
    source: SourcesRecord
    image: ImageRecord


#: Scores that every text pair has a column of (`generators.caption_scores`); those of further scorers follow.
TEXT_SCORES = ("vera_caption", "vera_negative", "cola_caption", "cola_negative", "similarity")

TEXTS, COLUMNS = ("caption", "negative_caption"), ("type", "subtype", "image_id")
TEXT_PAIR = SampleKind("text-pair", TextPairRecord, ("image",), TEXTS, COLUMNS, TEXT_SCORES)
