"""Pairs: two images and two captions that differ in one thing."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import Field

from twinset.contracts.kinds.kind import Copy, Described, ImageRecord, JsonByRole, Record, Sample, SampleKind
from twinset.contracts.kinds.samples import Frame, MediaFile, Pixels, encode_mask

MOST_PIXELS = 1 << 20  # of a side, past what any format has


class PairSources(Described):
    """Where the two images come from. dataset: kind of the source, such as ``gebc``."""

    dataset: str
    image0: MediaFile
    image1: MediaFile


class PairCaptions(Described):
    """All captions that are true of each image, the sample's own first."""

    caption0: tuple[str, ...] = Field(min_length=1)
    caption1: tuple[str, ...] = Field(min_length=1)


class BoxAnswer(Described):
    """A question about what a box holds. caption: 0 or 1, which says yes. yes0, yes1: how likely each image does."""

    question: str
    caption: int
    yes0: float
    yes1: float


class DifferenceBox(Described):
    """Where the two images differ, in pixels. label0, label1: what each caption alone says is there; empty for none.

    difference: both in one text. answers: what was asked of the two crops; none where nobody was.
    """

    left: int = Field(ge=0, lt=MOST_PIXELS)
    top: int = Field(ge=0, lt=MOST_PIXELS)
    width: int = Field(gt=0, lt=MOST_PIXELS)
    height: int = Field(gt=0, lt=MOST_PIXELS)
    label0: str
    label1: str
    difference: str
    answers: tuple[BoxAnswer, ...]


class PairRecord(Record):
    """The JSON of a pair. boxes: where its images differ, the largest first; absent where no stage looked for them."""

    change: str
    source: PairSources
    image0: ImageRecord
    image1: ImageRecord
    captions: PairCaptions
    boxes: tuple[DifferenceBox, ...] = ()

    @property
    def category(self) -> str:
        """What differs: such as ``replace_obj`` where its provenance says so, as BiVLC's does, else the change."""
        kind, subtype = self.provenance.get("type"), self.provenance.get("subtype")
        return f"{kind}_{subtype}" if kind and subtype else self.change


PAIR = SampleKind(
    "pair", PairRecord, ("image0", "image1"), ("caption0", "caption1"), attachments=("mask0.png", "mask1.png")
)


@dataclass(slots=True, kw_only=True)
class Pair(Sample):
    """A pair.

    change: what differs (``relation``, ``status``, ``step`` ...).
    captions0, captions1: all captions that are true of an image, the sample's own first; never empty.
    masks: of both images, (height, width) uint8 numbers of what is seen; stored as ``mask0.png``, ``mask1.png``.
    """

    kind: ClassVar[SampleKind] = PAIR

    change: str
    image0: Frame
    image1: Frame
    captions0: tuple[str, ...]
    captions1: tuple[str, ...]
    masks: tuple[Pixels, Pixels] | None = None

    def pictures(self) -> dict[str, Frame]:
        return {"image0": self.image0, "image1": self.image1}

    def described(self) -> dict[str, str]:
        return {"caption0": self.captions0[0], "caption1": self.captions1[0]}

    def recorded(self, dataset: str, files: JsonByRole, images: JsonByRole) -> dict[str, Any]:
        return {
            "change": self.change,
            "source": {"dataset": dataset, **files},
            **images,
            "captions": {"caption0": list(self.captions0), "caption1": list(self.captions1)},
        }

    def question(self, images: Mapping[str, str]) -> Any:
        return _question(images, self.described())

    def attached(self) -> dict[str, bytes]:
        return dict(zip(PAIR.attachments, map(encode_mask, self.masks or ()), strict=False))


@dataclass(slots=True, kw_only=True)
class CopiedPair(Sample):
    """A pair that is copied from an earlier stage, byte by byte.

    record: its JSON there. captions: the pair's own two.
    """

    kind: ClassVar[SampleKind] = PAIR

    record: PairRecord
    captions: tuple[str, str]
    copy: Copy

    def pictures(self) -> dict[str, Frame]:
        return {}

    def copied(self) -> Copy:
        return self.copy

    def described(self) -> dict[str, str]:
        return dict(zip(PAIR.texts, self.captions, strict=True))

    def recorded(self, dataset: str, files: JsonByRole, images: JsonByRole) -> dict[str, Any]:
        return self.record.model_dump(mode="json", exclude={*Record.model_fields})

    def question(self, images: Mapping[str, str]) -> Any:
        return _question(images, self.described())


def _question(images: Mapping[str, str], captions: Mapping[str, str]) -> Any:
    """The two sides of a pair, in whichever order."""
    return sorted(zip(images.values(), captions.values(), strict=True))
