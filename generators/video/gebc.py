"""EQ-GEBC: frames before one event boundary and after a later one of the same video (EqBen, 4.1 and B.2)."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar, Literal

from pydantic import Field

from twinset.contracts.canonical import digest, sha256_of_file
from twinset.contracts.errors import WrongUse
from twinset.contracts.licences.names import UNKNOWN
from twinset.contracts.references import Reference, bibtex, reasons_beside
from twinset.contracts.source import Need
from twinset.generators.annotation_files import AnnotationFiles, read_json, seconds
from twinset.generators.video.frame_pairs import FRAME_REASONS, FramePairCandidate, FramePairSource, as_sentence

# How the annotation says that a subject is absent or present: 913 of the 7,279 boundaries of val are a change of these.
FLAGS = ("/0", "/1")


_Record = tuple[str, Any]  # where it stands, and what should be a boundary


@dataclass(slots=True)
class Boundary:
    """One moment of one video, in seconds, with all that annotators said of it (``_3A``, ``_3B`` are two captions)."""

    time: float
    previous: float = 0.0
    next: float = math.inf
    ids: list[str] = field(default_factory=list)
    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)


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

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        super().check_inputs(key, needs)
        files = [path.resolve() for path in self.annotations]
        for path in self.annotations:
            if files.count(path.resolve()) > 1:
                raise WrongUse(f"{key}.annotations: {path} is named more than once; name each file once")

    version = 3

    def inputs(self) -> str:
        hashed = [sha256_of_file(path)[0] for path in self.annotations]
        return hashed[0] if len(hashed) == 1 else digest(hashed)

    def plan(self) -> Iterator[FramePairCandidate]:
        """Pairs by video and time, whatever the order of the files and in them."""
        videos: dict[str, tuple[str, list[_Record]]] = {}
        for path in self.annotations:
            whole = read_json(path)
            if not isinstance(whole, dict):
                raise WrongUse(f"{path}: not a mapping of videos to boundaries; {_REMEDY}")
            for video, place in self.usable_videos(path, whole, lambda entry: isinstance(entry, list), _REMEDY):
                found = [(f"{place} boundary {number}", record) for number, record in enumerate(whole[video], 1)]
                others = videos.setdefault(video, (place, []))[1]
                _refuse_repeated(others, found)
                others += found
        for video, (place, records) in sorted(videos.items()):
            boundaries = self._boundaries(records)
            for first, second in zip(boundaries, boundaries[self.skip :], strict=False):
                pair = self._pair(video, first, second, place)
                if pair is not None:
                    yield pair

    def media_urls(self) -> Mapping[str, str]:
        """Of the videos on YouTube that Kinetics' clips are cut from: a video's name is its id there."""
        videos = [video for path in self.annotations for video in read_json(path)]
        return {one: f"https://www.youtube.com/watch?v={one}" for one in videos if re.fullmatch(r"[\w-]{11}", one)}

    def _boundaries(self, records: list[_Record]) -> list[Boundary]:
        """Distinct moments in time order, each with the tightest interval that the annotation gives on either side."""
        boundaries: dict[float, Boundary] = {}
        seen: set[str] = set()
        for place, record in records:
            if not isinstance(record, dict):
                self.excluded.add("boundary-malformed", place)
                continue
            time = seconds(record.get("timestamp"))
            if time is None:
                self.excluded.add("boundary-without-time", place)
                continue
            if (name := _name(record)) is not None:
                if name in seen:
                    self.excluded.add("boundary-repeated", f"{place} ({name})")
                    continue
                seen.add(name)
            _add(boundaries.setdefault(time, Boundary(time)), record)
        ordered = [boundaries[time] for time in sorted(boundaries)]
        for earlier, later in pairwise(ordered):
            later.previous = max(later.previous, earlier.time)
            earlier.next = min(earlier.next, later.time)
        return ordered

    def _pair(self, video: str, first: Boundary, second: Boundary, place: str) -> FramePairCandidate | None:
        captions0, captions1 = tuple(dict.fromkeys(first.before)), tuple(dict.fromkeys(second.after))
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


def _refuse_repeated(records: list[_Record], more: list[_Record]) -> None:
    """Raise `WrongUse` where a boundary of one file is in another one too: what is in it twice is left out."""
    named = {name: place for place, record in records if (name := _name(record)) is not None}
    for place, record in more:
        if (name := _name(record)) in named:
            raise WrongUse(
                f"{place}: {name} is also {named[name]}; source.annotations must be files of different boundaries: "
                "leave one of them out"
            )


def _name(record: Any) -> str | None:
    name = record.get("boundary_id") if isinstance(record, dict) else None
    return name if isinstance(name, str) else None


def _add(boundary: Boundary, record: dict[str, Any]) -> None:
    """Takes over what one annotator's record says; neighbours on the wrong side of the boundary are not believed."""
    previous, following = seconds(record.get("prev_timestamp")), seconds(record.get("next_timestamp"))
    if previous is not None and previous < boundary.time:
        boundary.previous = max(boundary.previous, previous)
    if following is not None and following > boundary.time:
        boundary.next = min(boundary.next, following)
    if (name := _name(record)) is not None:
        boundary.ids.append(name)
    for captions, name in ((boundary.before, "status_before"), (boundary.after, "status_after")):
        subject, status = record.get("subject"), record.get(name)
        if not isinstance(subject, str) or not isinstance(status, str):
            continue
        # A subject alone, or a flag in place of words, says nothing of what is to be seen.
        if as_sentence(subject) and as_sentence(status) and status.strip() not in FLAGS:
            captions.append(as_sentence(subject, status))
