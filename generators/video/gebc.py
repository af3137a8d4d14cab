"""EQ-GEBC: frames before one event boundary and after a later one of the same video (EqBen, 4.1 and B.2)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from twinset.contracts.canonical import digest, sha256_of_file
from twinset.contracts.errors import WrongUse
from twinset.contracts.licences.names import UNKNOWN
from twinset.contracts.references import Reference, bibtex, reasons_beside
from twinset.generators.annotation_files import AnnotationFiles, read_json
from twinset.generators.record_fields import OptionalSeconds, OptionalText, Seconds, misfit
from twinset.generators.video.frame_pair import FramePairCandidate
from twinset.generators.video.frame_pairs import FRAME_REASONS, FramePairSource, as_sentence

# How the annotation says that a subject is absent or present: 913 of the 7,279 boundaries of val are a change of these.
FLAGS = ("/0", "/1")


class BoundaryRecord(BaseModel):
    """What one annotator says of a moment."""

    timestamp: Seconds
    prev_timestamp: OptionalSeconds = None
    next_timestamp: OptionalSeconds = None
    boundary_id: OptionalText = ""
    subject: OptionalText = ""
    status_before: OptionalText = ""
    status_after: OptionalText = ""

    def caption(self, status: str) -> str:
        """A subject alone, or a flag in place of words, says nothing of what is to be seen: then it is empty."""
        worded = as_sentence(self.subject) and as_sentence(status) and status.strip() not in FLAGS
        return as_sentence(self.subject, status) if worded else ""


_RECORD, _RECORDS = TypeAdapter(BoundaryRecord), TypeAdapter(list[Any])


@dataclass(slots=True)
class Boundary:
    """One moment of one video, in seconds, with all that annotators said of it (``_3A``, ``_3B`` are two captions)."""

    time: float
    previous: float = 0.0
    next: float = math.inf
    ids: list[str] = field(default_factory=list)
    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)

    def add(self, record: BoundaryRecord) -> None:
        """What one record says; neighbours on the wrong side of the boundary are not believed."""
        if record.prev_timestamp is not None and record.prev_timestamp < self.time:
            self.previous = max(self.previous, record.prev_timestamp)
        if record.next_timestamp is not None and record.next_timestamp > self.time:
            self.next = min(self.next, record.next_timestamp)
        if record.boundary_id:
            self.ids.append(record.boundary_id)
        for captions, status in ((self.before, record.status_before), (self.after, record.status_after)):
            if (caption := record.caption(status)) and caption not in captions:
                captions.append(caption)


class Gebc(FramePairSource):
    """Frames before one event boundary and after a later one of a video (EqBen, sections 4.1 and B.2).

    annotations: GEBC's file, or several; the paper took those of training and validation.
    skip: boundaries between the twins beyond the first (1: before boundary i and after boundary i + 1).
    before, after: where in the interval before boundary i, and after boundary i + skip, the frame is taken
    (0 its start, 1 its end).
    """

    kind: Literal["gebc"]
    annotations: AnnotationFiles  # type: ignore[assignment]  # several, where the base has one
    skip: int = Field(default=1, ge=0)
    before: float = Field(default=0.5, ge=0, le=1)
    after: float = Field(default=0.5, ge=0, le=1)
    licence: str = UNKNOWN

    reference = Reference(
        "Kinetics-GEB+ (GEBC)", "https://github.com/showlab/geb-plus", bibtex("wang2022gebplus", "kay2017kinetics")
    )
    reasons: ClassVar[Mapping[str, str]] = {**FRAME_REASONS, **reasons_beside(__file__, "gebc")}

    version = 3

    def inputs(self) -> str:
        hashed = [sha256_of_file(path)[0] for path in self.annotations]
        return hashed[0] if len(hashed) == 1 else digest(hashed)

    def plan(self) -> Iterator[FramePairCandidate]:
        """Pairs by video and time, whatever the order of the files and in them."""
        videos: dict[str, tuple[str, list[tuple[str, Any]]]] = {}
        for path in self.annotations:
            whole = read_json(path)
            if not isinstance(whole, dict):
                raise WrongUse(f"{path}: not a mapping of videos to boundaries; {_REMEDY}")
            for video, records, place in self.usable_videos(path, whole, _RECORDS, _REMEDY):
                placed = [(f"{place} boundary {number}", record) for number, record in enumerate(records, 1)]
                videos.setdefault(video, (place, []))[1].extend(placed)
        for video, (place, records) in sorted(videos.items()):
            boundaries = self._boundaries(records)
            for first, second in zip(boundaries, boundaries[self.skip :], strict=False):
                pair = self._pair(video, first, second, place)
                if pair is not None:
                    yield pair

    def media_urls(self) -> Mapping[str, str]:
        """Of the videos on YouTube that Kinetics' clips are cut from: a video's name is its id there."""
        videos = [video for path in self.annotations for video in read_json(path)]
        return {name: f"https://www.youtube.com/watch?v={name}" for name in videos if re.fullmatch(r"[\w-]{11}", name)}

    def _boundaries(self, records: list[tuple[str, Any]]) -> list[Boundary]:
        """Distinct moments in time order, each with the tightest interval that the annotation gives on either side."""
        boundaries: dict[float, Boundary] = {}
        ids: set[str] = set()
        for place, value in records:
            try:
                record = _RECORD.validate_python(value)
            except ValidationError as error:
                self.excluded.add("boundary-without-time" if misfit(error)[0] else "boundary-malformed", place)
                continue
            if record.boundary_id in ids:
                self.excluded.add("boundary-repeated", f"{place} ({record.boundary_id})")
                continue
            ids |= {record.boundary_id} - {""}
            boundaries.setdefault(record.timestamp, Boundary(record.timestamp)).add(record)
        ordered = [boundaries[time] for time in sorted(boundaries)]
        for earlier, later in pairwise(ordered):
            later.previous = max(later.previous, earlier.time)
            earlier.next = min(earlier.next, later.time)
        return ordered

    def _pair(self, video: str, first: Boundary, second: Boundary, place: str) -> FramePairCandidate | None:
        captions0, captions1 = tuple(first.before), tuple(second.after)
        times = f"{place} boundaries at {first.time:g} and {second.time:g} s"
        if not captions0 or not captions1:
            self.excluded.add("pair-unsayable", times)
            return None
        at0 = first.previous + self.before * (first.time - first.previous)
        at1 = second.time + self.after * (second.next - second.time)
        if not at0 < at1 < math.inf:  # without an end, ``at1`` is infinite, or no number
            self.excluded.add("pair-without-interval", times)
            return None
        provenance = {
            "video": video,
            "boundaries0": ",".join(first.ids),
            "boundaries1": ",".join(second.ids),
            "timestamp0": first.time,
            "timestamp1": second.time,
        }
        identity = (video, first.time, second.time)
        return self.planned(identity, (captions0, captions1), (at0, at1), "status", provenance)


_REMEDY = "source.annotations must be a GEBC file of {VIDEO: [{boundary_id, timestamp, ...}]}"
