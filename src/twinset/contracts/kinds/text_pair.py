"""Text pairs: an image, a caption of it, and a negative caption that is wrong of it in one thing (TROHN-Text)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from twinset.contracts.kinds.kind import ImageRecord, Record, Sample, SampleKind, SourcesRecord
from twinset.contracts.kinds.samples import Frame


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


@dataclass(slots=True, kw_only=True)
class TextPair(Sample):
    """A text pair. image: None where only an index is made. type, subtype, image_id: as in `TextPairRecord`."""

    kind: ClassVar[SampleKind] = TEXT_PAIR

    image: Frame | None
    caption: str
    negative_caption: str
    type: str = ""
    subtype: str = ""
    image_id: str = ""

    def question(self, images: Mapping[str, str]) -> Any:
        """As `Sample.question`; without images, of the same image id."""
        return [self.kind.name, [self.caption, self.negative_caption], dict(images) or self.image_id]
