"""Pairs: two images and two captions that differ in one thing."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, Field, JsonValue

from twinset.contracts.kinds.kind import ImageRecord, JsonByRole, Record, Sample, SampleKind
from twinset.contracts.kinds.samples import Frame, MediaFile


class PairSources(BaseModel):
    """Where the two images come from. dataset: kind of the source, such as ``gebc``."""

    dataset: str
    image0: MediaFile
    image1: MediaFile


class PairCaptions(BaseModel):
    """All captions that are true of each image, the sample's own first."""

    caption0: tuple[str, ...] = Field(min_length=1)
    caption1: tuple[str, ...] = Field(min_length=1)


Place = Annotated[int, Field(ge=0, lt=1 << 20)]  # in pixels, less than any format has
Side = Annotated[int, Field(gt=0, lt=1 << 20)]


class DifferenceBox(BaseModel):
    """Where the two images differ, in pixels. label0, label1: what each caption alone says is there; empty for none.

    difference: both in one text. answers: what was asked of the two crops; none where nobody was.
    """

    left: Place
    top: Place
    width: Side
    height: Side
    label0: str
    label1: str
    difference: str
    answers: tuple[dict[str, JsonValue], ...]


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


PAIR = SampleKind("pair", PairRecord, ("image0", "image1"), ("caption0", "caption1"))


@dataclass(slots=True, kw_only=True)
class Pair(Sample):
    """A pair.

    change: what differs (``relation``, ``status``, ``step`` ...).
    captions0, captions1: all captions that are true of an image, the sample's own first; never empty.
    """

    kind: ClassVar[SampleKind] = PAIR

    change: str
    image0: Frame
    image1: Frame
    captions0: tuple[str, ...]
    captions1: tuple[str, ...]

    def described(self) -> dict[str, str]:
        return {"caption0": self.captions0[0], "caption1": self.captions1[0]}

    def recorded(self, dataset: str, files: JsonByRole, images: JsonByRole) -> dict[str, Any]:
        captions = {"caption0": self.captions0, "caption1": self.captions1}
        return {"change": self.change, "source": {"dataset": dataset, **files}, **images, "captions": captions}

    def question(self, images: Mapping[str, str]) -> Any:
        """As `Sample.question`: the two sides, in whichever order."""
        return sorted(zip(images.values(), self.described().values(), strict=True))
