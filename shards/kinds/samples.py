"""What flows through a build once it is planned: frames and samples (made), rejections and verdicts (judged)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shards.kinds.names import GALLERY, PAIR, PARTS, TEMPLATE, TRIPLET, SampleKind

Pixels = NDArray[np.uint8]

#: Anything that JSON can hold, so long as every sample of a generator has the same keys with the same types.
Json = str | int | float | bool | Sequence["Json"] | Mapping[str, "Json"]


@dataclass(frozen=True, slots=True)
class Source:
    """A media file that pixels came from: path relative to the media folder ('/' separators), bytes, sha256."""

    path: str
    size: int
    sha256: str


@dataclass(eq=False, slots=True)
class Frame:
    """One picture, shared by all samples that show it, so that it is decoded, judged and encoded once.

    id: unique within a subset, e.g. ``VIDEO#12.500``.
    pixels: (height, width, 3) uint8 RGB.
    pts: presentation time in seconds, -1.0 where a picture has none.
    """

    id: str
    pixels: Pixels
    pts: float
    source: Source


@dataclass(slots=True, kw_only=True)
class Pair:
    """Two images and two captions that differ in one thing.

    change: what differs (``relation``, ``status``, ``step`` ...).
    captions0, captions1: all captions that hold, the sample's own first; never empty.
    provenance: the same keys with the same JSON types for every sample of a generator.
    sources: files besides the two frames' own that pixels came from.
    masks: of both images, (height, width) uint8 numbers of what is seen; stored as ``mask0.png``, ``mask1.png``.
    """

    kind: ClassVar[SampleKind] = PAIR

    key: str
    group: str
    split: str
    change: str
    image0: Frame
    image1: Frame
    captions0: tuple[str, ...]
    captions1: tuple[str, ...]
    provenance: Mapping[str, Json]
    scores: dict[str, float] = field(default_factory=dict)
    sources: tuple[Source, ...] = ()
    masks: tuple[Pixels, Pixels] | None = None

    def pictures(self) -> dict[str, Frame]:
        """Images by role, in the order of the tar."""
        return {"image0": self.image0, "image1": self.image1}

    def described(self) -> dict[str, str]:
        """The words of a row, by column."""
        return {"caption0": self.captions0[0], "caption1": self.captions1[0]}


@dataclass(slots=True, kw_only=True)
class Triplet:
    """A reference and a target image that a condition leads to (GeneCIS, section 5.2), and a distractor it fits too.

    reference, target, distractor: the last may be left out; all are None where only an index is made.
    captions, images: caption and image id by part (`shards.kinds.names.PARTS`), "" for what it lacks.
    provenance: the same keys with the same JSON types for every sample of a generator.
    """

    kind: ClassVar[SampleKind] = TRIPLET

    key: str
    group: str
    split: str
    condition: str
    reference: Frame | None
    target: Frame | None
    distractor: Frame | None
    captions: Mapping[str, str]
    images: Mapping[str, str]
    provenance: Mapping[str, Json]
    scores: dict[str, float] = field(default_factory=dict)
    sources: tuple[Source, ...] = ()

    def pictures(self) -> dict[str, Frame]:
        """As `Pair.pictures`; nothing for a row of an index."""
        frames = zip(PARTS, (self.reference, self.target, self.distractor), strict=True)
        return {part: frame for part, frame in frames if frame is not None}

    def described(self) -> dict[str, str]:
        """As `Pair.described`."""
        captions = {f"{part}_caption": self.captions[part] for part in PARTS}
        return {"condition": self.condition, **captions, **{f"{part}_id": self.images[part] for part in PARTS}}


@dataclass(slots=True, kw_only=True)
class Template:
    """A question of a GeneCIS task: which image of a gallery is most like the reference, given the condition.

    task: ``focus-attribute``, ``change-attribute``, ``focus-object`` or ``change-object``.
    gallery: the distractors, without the target, which is the right answer. entry: the template as GeneCIS's released
    evaluation reads it.
    provenance: the same keys with the same JSON types for every sample of a generator.
    """

    kind: ClassVar[SampleKind] = TEMPLATE

    key: str
    group: str
    split: str
    task: str
    condition: str
    reference: Frame
    target: Frame
    gallery: tuple[Frame, ...]
    entry: Mapping[str, Json]
    provenance: Mapping[str, Json]
    scores: dict[str, float] = field(default_factory=dict)
    sources: tuple[Source, ...] = ()

    def pictures(self) -> dict[str, Frame]:
        """As `Pair.pictures`."""
        gallery = dict(zip(GALLERY[: len(self.gallery)], self.gallery, strict=True))
        return {"reference": self.reference, "target": self.target, **gallery}

    def described(self) -> dict[str, str]:
        """As `Pair.described`."""
        return {"condition": self.condition, "task": self.task}


@dataclass(frozen=True, slots=True)
class Rejected:
    """A candidate that could not be made.

    reason: short, countable (``missing-media``, ``broken-media``). detail: for people.
    media: name of the media file to look for again (`shards.media.source_media.Media.size`) where the reason is a
    missing or unreadable input; the rejection goes stale once that file is there or has another size than `media_size`
    (None: it was absent).
    """

    key: str
    reason: str
    detail: str = ""
    media: str | None = None
    media_size: int | None = None


Sample = Pair | Triplet | Template


@dataclass(frozen=True, slots=True)
class TableRows:
    """What a candidate of a table stage gives: one row or several, each with the columns that its generator names."""

    key: str
    rows: Sequence[Mapping[str, str | int | float | bool | None]]


@dataclass(frozen=True, slots=True)
class Keep:
    """Nothing speaks against it."""


@dataclass(frozen=True, slots=True)
class Drop:
    """Reject, for a short countable reason; score is the number that decided, if any."""

    reason: str
    score: float | None = None


@dataclass(frozen=True, slots=True)
class Score:
    """Keep, and record a number under a name in the sample's JSON; who scores must score all that is kept."""

    name: str
    value: float


Verdict = Keep | Drop | Score
