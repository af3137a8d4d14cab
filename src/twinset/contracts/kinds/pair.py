"""Pairs: two images and two captions that differ in one thing."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import BaseModel, Field

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


class PairRecord(Record):
    """The JSON of a pair."""

    change: str
    source: PairSources
    image0: ImageRecord
    image1: ImageRecord
    captions: PairCaptions


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
