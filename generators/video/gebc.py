"""EQ-GEBC: frames before one event boundary and after a later one of the same video (EqBen, 4.1 and B.2)."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from twinset.contracts.canonical import digest, sha256_of_file
from twinset.contracts.licences.names import UNKNOWN
from twinset.contracts.references import Reference, bibtex
from twinset.generators.annotation_files import AnnotationFiles
from twinset.generators.reasons import reasons_beside
from twinset.generators.record_fields import OptionalSeconds, OptionalText, Seconds
from twinset.generators.video.frame_pairs import FramePairCandidate, FramePairSource, as_sentence, read_form

# How the annotation says that a subject is absent or present: 913 of the 7,279 boundaries of val are a change of these.
FLAGS = ("/0", "/1")

_FILE = TypeAdapter(Mapping[str, list[Any]])
_REMEDY = "source.annotations must be a GEBC file of {VIDEO: [{boundary_id, timestamp, ...}]}"


class BoundaryRecord(BaseModel):
    """What one annotator says of a moment."""

    timestamp: Seconds
    next_timestamp: OptionalSeconds = None
    boundary_id: OptionalText = ""
    subject: OptionalText = ""
    status_before: OptionalText = ""
    status_after: OptionalText = ""


@dataclass(frozen=True, slots=True)
class Boundary:
    """One moment of one video, with all that annotators said of it (``_3A``, ``_3B`` are two captions).

    before, after: the middles of the intervals on both sides, in seconds.
    """

    time: float
    before: float
    after: float
    records: Sequence[BoundaryRecord]

    @property
    def ids(self) -> str:
        """Of its records, joined."""
        return ",".join(dict.fromkeys(record.boundary_id for record in self.records if record.boundary_id))

    def captions(self, side: Literal["before", "after"]) -> list[str]:
        """A subject alone, or a flag in place of words, says nothing of what is to be seen, and is left out."""
        statuses = [(record.subject, getattr(record, f"status_{side}")) for record in self.records]
        worded = [phrases for phrases in statuses if all(map(as_sentence, phrases)) and phrases[1].strip() not in FLAGS]
        return list(dict.fromkeys(as_sentence(*phrases) for phrases in worded))


class Gebc(FramePairSource):
    """Frames before one event boundary and after a later one of a video (EqBen, sections 4.1 and B.2).

    annotations: GEBC's file, or several; the paper took those of training and validation.
    skip: boundaries between the twins beyond the first (1: before boundary i and after boundary i + 1).
    """

    kind: Literal["gebc"]
    annotations: AnnotationFiles  # type: ignore[assignment]  # several, where the base has one
    skip: int = Field(default=1, ge=0)
    licence: str = UNKNOWN

    reference = Reference(
        "Kinetics-GEB+ (GEBC)", "https://github.com/showlab/geb-plus", bibtex("wang2022gebplus", "kay2017kinetics")
    )
    reasons = FramePairSource.reasons | reasons_beside(__file__, "gebc")

    version = 4

    def inputs(self) -> str:
        return digest([sha256_of_file(path)[0] for path in self.annotations])

    def plan(self) -> Iterator[FramePairCandidate]:
        """Pairs by video and time, whatever the order of the files and in them."""
        for video, moments in sorted(self._moments().items()):
            boundaries = _boundaries(moments)
            for first, second in zip(boundaries, boundaries[self.skip :], strict=False):
                captions = first.captions("before"), second.captions("after")
                if all(captions) and second.after < math.inf:
                    provenance: dict[str, Any] = {"video": video}
                    for side, boundary in enumerate((first, second)):
                        provenance |= {f"boundaries{side}": boundary.ids, f"timestamp{side}": boundary.time}
                    identity, at = (video, first.time, second.time), (first.before, second.after)
                    yield self.planned(identity, captions, at, "status", provenance)
                else:
                    reason = "pair-without-interval" if all(captions) else "pair-unsayable"
                    self.excluded.add(reason, f"video {video!r} boundaries at {first.time:g} and {second.time:g} s")

    def media_urls(self) -> Mapping[str, str]:
        """Of the videos on YouTube that Kinetics' clips are cut from: a video's name is its id there."""
        videos = [video for path in self.annotations for video in read_form(path, _FILE, _REMEDY)]
        return {name: f"https://www.youtube.com/watch?v={name}" for name in videos if re.fullmatch(r"[\w-]{11}", name)}

    def _moments(self) -> dict[str, dict[float, list[BoundaryRecord]]]:
        """What annotators say, by video and time."""
        videos: dict[str, dict[float, list[BoundaryRecord]]] = defaultdict(lambda: defaultdict(list))
        for path in self.annotations:
            for video, records, place in self.usable_videos(path, read_form(path, _FILE, _REMEDY)):
                for number, value in enumerate(records, 1):
                    try:
                        record = BoundaryRecord.model_validate(value)
                    except ValidationError:
                        self.excluded.add("boundary-malformed", f"{place} boundary {number}")
                    else:
                        videos[video][record.timestamp].append(record)
        return videos


def _boundaries(moments: Mapping[float, Sequence[BoundaryRecord]]) -> list[Boundary]:
    """In time order. An interval lies between neighbouring ones; the last ends where the annotation says."""
    times = sorted(moments)
    ends = [record.next_timestamp or 0.0 for record in moments[times[-1]]]
    end = min((end for end in ends if end > times[-1]), default=math.inf)
    return [
        Boundary(time, earlier + (time - earlier) / 2, time + (later - time) / 2, moments[time])
        for earlier, time, later in zip([0.0, *times], times, [*times[1:], end], strict=False)
    ]
