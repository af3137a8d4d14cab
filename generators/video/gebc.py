"""EQ-GEBC: frames before one event boundary and after a later one of the same video (EqBen, 4.1 and B.2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar, cast

from generators.annotation_files import media_name, read_json, seconds
from generators.video.frame_pairs import FramePairCandidate, make_pairs
from generators.video.sentences import as_sentence
from manifests.candidate import Candidate
from manifests.canonical import canonical_json, sample_key, sha256_of_file
from manifests.errors import WrongUse
from manifests.source_settings import Gebc
from shards.contracts import Isolation
from shards.kinds.samples import Pair, Rejected
from shards.media.media_folder import MediaFolder

# How the annotation says that a subject is absent or present: 913 of the 7,279 boundaries of val are a change of these.
FLAGS = ("/0", "/1")


@dataclass(slots=True)
class Boundary:
    """One moment of one video, in seconds, with all that annotators said of it (``_3A``, ``_3B`` are two captions)."""

    time: float
    previous: float = 0.0
    next: float | None = None
    ids: list[str] = field(default_factory=list)
    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)


class GebcGenerator:
    """Pairs from Kinetics-GEB+: ``{VIDEO: [{boundary_id, timestamp, prev_timestamp, next_timestamp, subject, ...}]}``.

    excluded: what the last `plan` left out, by reason. ``boundary-malformed``: not an object;
    ``boundary-without-time``; ``boundary-repeated``: same id again, the first counts; of the pairs of boundaries,
    ``pair-unsayable``: no caption in words before the first or after the second; ``pair-without-interval``: no time
    after the second boundary, or no time between the twins.
    """

    version: ClassVar[int] = 1
    isolation: ClassVar[Isolation] = "thread"
    candidate: ClassVar[type[Candidate]] = FramePairCandidate
    libraries: ClassVar[tuple[str, ...]] = ("av", "numpy")

    def __init__(self, name: str, source: Gebc, split: str) -> None:
        self.name = name
        self.source = source
        self.split = split
        self.media = MediaFolder(source.media)  # one, since it may have to walk the whole tree
        self.excluded: Counter[str] = Counter()

    def inputs(self) -> str:
        """sha256 of the annotation file."""
        return sha256_of_file(self.source.annotations)[0]

    def plan(self) -> Iterator[FramePairCandidate]:
        """Pairs by video and time, whatever the order of the file."""
        self.excluded = Counter()
        path = self.source.annotations
        whole = read_json(path)
        if not isinstance(whole, dict):
            raise WrongUse(f"{path}: not a mapping of videos to boundaries; {_REMEDY}")
        for video in sorted(whole):
            media_name(path, video)
            if not isinstance(whole[video], list):
                raise WrongUse(f"{path}: video {video!r}: not a list of boundaries; {_REMEDY}")
            boundaries = self._boundaries(whole[video])
            for first, second in zip(boundaries, boundaries[self.source.skip :], strict=False):
                pair = self._pair(video, first, second)
                if pair is not None:
                    yield pair

    def make(self, candidates: Sequence[Candidate]) -> Iterator[Pair | Rejected]:
        """Pairs with their frames (`generators.video.frame_pairs.make_pairs`)."""
        planned = cast(Sequence[FramePairCandidate], candidates)
        return make_pairs(planned, self.media, "seconds")

    def _boundaries(self, records: list[Any]) -> list[Boundary]:
        """Distinct moments in time order, each with the tightest interval that the annotation gives on either side."""
        boundaries: dict[float, Boundary] = {}
        seen: set[str] = set()
        for record in records:
            if not isinstance(record, dict):
                self.excluded["boundary-malformed"] += 1
                continue
            time = seconds(record.get("timestamp"))
            if time is None:
                self.excluded["boundary-without-time"] += 1
                continue
            name = record.get("boundary_id")
            if isinstance(name, str):
                if name in seen:
                    self.excluded["boundary-repeated"] += 1
                    continue
                seen.add(name)
            _add(boundaries.setdefault(time, Boundary(time)), record)
        ordered = [boundaries[time] for time in sorted(boundaries)]
        for earlier, later in pairwise(ordered):
            later.previous = max(later.previous, earlier.time)
            earlier.next = later.time if earlier.next is None else min(earlier.next, later.time)
        return ordered

    def _pair(self, video: str, first: Boundary, second: Boundary) -> FramePairCandidate | None:
        captions0, captions1 = tuple(dict.fromkeys(first.before)), tuple(dict.fromkeys(second.after))
        if not captions0 or not captions1:
            self.excluded["pair-unsayable"] += 1
            return None
        if second.next is None:
            self.excluded["pair-without-interval"] += 1
            return None
        at0 = first.previous + self.source.before * (first.time - first.previous)
        at1 = second.time + self.source.after * (second.next - second.time)
        if at1 <= at0:
            self.excluded["pair-without-interval"] += 1
            return None
        provenance = {
            "video": video,
            "boundaries0": ",".join(first.ids),
            "boundaries1": ",".join(second.ids),
            "timestamp0": first.time,
            "timestamp1": second.time,
        }
        return FramePairCandidate(
            key=sample_key(self.name, video, first.time, second.time),
            group=video,
            split=self.split,
            captions0=captions0,
            captions1=captions1,
            video=video,
            at0=at0,
            at1=at1,
            change="status",
            provenance=canonical_json(provenance).decode(),
        )


_REMEDY = "source.annotations must be a GEBC file of {VIDEO: [{boundary_id, timestamp, ...}]}"


def _add(boundary: Boundary, record: dict[str, Any]) -> None:
    """Takes over what one annotator's record says; neighbours on the wrong side of the boundary are not believed."""
    previous, following = seconds(record.get("prev_timestamp")), seconds(record.get("next_timestamp"))
    if previous is not None and previous < boundary.time:
        boundary.previous = max(boundary.previous, previous)
    if following is not None and following > boundary.time:
        boundary.next = following if boundary.next is None else min(boundary.next, following)
    if isinstance(record.get("boundary_id"), str):
        boundary.ids.append(record["boundary_id"])
    for captions, status in (
        (boundary.before, record.get("status_before")),
        (boundary.after, record.get("status_after")),
    ):
        subject = record.get("subject")
        if not isinstance(subject, str) or not isinstance(status, str):
            continue
        # A subject alone, or a flag in place of words, says nothing of what is to be seen.
        if as_sentence(subject) and as_sentence(status) and status.strip() not in FLAGS:
            captions.append(as_sentence(subject, status))
