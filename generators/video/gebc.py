"""EQ-GEBC: frames before one event boundary and after a later one of the same video (EqBen, 4.1 and B.2)."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from twinset.contracts.canonical import digest, sha256_of_file
from twinset.contracts.errors import WrongUse
from twinset.contracts.licences.names import UNKNOWN
from twinset.contracts.references import Reference, bibtex, reasons_beside
from twinset.generators.annotation_files import AnnotationFiles, read_json
from twinset.generators.record_fields import OptionalSeconds, OptionalText, Seconds, misfit
from twinset.generators.video.frame_pairs import FRAME_REASONS, FramePairCandidate, FramePairSource, as_sentence

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


_RECORD, _RECORDS = TypeAdapter(BoundaryRecord), TypeAdapter(list[Any])


@dataclass(frozen=True, slots=True)
class Boundary:
    """One moment of one video, with all that annotators said of it (``_3A``, ``_3B`` are two captions).

    previous, next: of the intervals on both sides, in seconds.
    """

    time: float
    previous: float
    next: float
    records: Sequence[BoundaryRecord]

    @property
    def ids(self) -> str:
        """Of its records, joined."""
        return ",".join(record.boundary_id for record in self.records if record.boundary_id)

    def captions(self, side: Literal["before", "after"]) -> list[str]:
        """A subject alone, or a flag in place of words, says nothing of what is to be seen, and is left out."""
        statuses = [(record.subject, getattr(record, f"status_{side}")) for record in self.records]
        worded = [both for both in statuses if all(map(as_sentence, both)) and both[1].strip() not in FLAGS]
        return list(dict.fromkeys(as_sentence(*both) for both in worded))


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
        moments = defaultdict[float, list[BoundaryRecord]](list)
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
            moments[record.timestamp].append(record)
        boundaries, times = [], sorted(moments)
        for earlier, time, later in zip([0.0, *times], times, [*times[1:], math.inf], strict=False):
            # Neighbours on the wrong side of the boundary are not believed.
            before = [one.prev_timestamp for one in moments[time] if one.prev_timestamp is not None]
            after = [one.next_timestamp for one in moments[time] if one.next_timestamp is not None]
            previous = max([earlier, *(stated for stated in before if stated < time)])
            following = min([later, *(stated for stated in after if stated > time)])
            boundaries.append(Boundary(time, previous, following, moments[time]))
        return boundaries

    def _pair(self, video: str, first: Boundary, second: Boundary, place: str) -> FramePairCandidate | None:
        captions = first.captions("before"), second.captions("after")
        times = f"{place} boundaries at {first.time:g} and {second.time:g} s"
        if not all(captions):
            self.excluded.add("pair-unsayable", times)
            return None
        at0 = first.previous + self.before * (first.time - first.previous)
        at1 = second.time + self.after * (second.next - second.time)
        if not at0 < at1 < math.inf:  # without an end, ``at1`` is infinite, or no number
            self.excluded.add("pair-without-interval", times)
            return None
        provenance = {
            "video": video,
            "boundaries0": first.ids,
            "boundaries1": second.ids,
            "timestamp0": first.time,
            "timestamp1": second.time,
        }
        return self.planned((video, first.time, second.time), captions, (at0, at1), "status", provenance)


_REMEDY = "source.annotations must be a GEBC file of {VIDEO: [{boundary_id, timestamp, ...}]}"
