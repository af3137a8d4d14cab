"""EQ-YouCook2: middle frames of any two steps of one cooking video (EqBen, 4.1 and B.3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar, cast

from generators.annotation_files import media_name, read_json, seconds
from generators.video.frame_pairs import FramePairCandidate, make_pairs
from generators.video.sentences import as_sentence
from manifests.candidate import Candidate
from manifests.canonical import canonical_json, sample_key, sha256_of_file
from manifests.errors import WrongUse
from manifests.source_settings import YouCook2
from shards.contracts import Isolation
from shards.kinds.samples import Pair, Rejected
from shards.media.media_folder import MediaFolder


@dataclass(frozen=True, slots=True)
class Segment:
    """One step of a recipe: its id, interval in seconds and sentence."""

    id: str
    start: float
    end: float
    sentence: str


class YouCook2Generator:
    """Pairs from YouCook2: ``{"database": {VIDEO: {subset, recipe_type, annotations: [{segment, id, sentence}]}}}``.

    excluded: what the last `plan` left out, by reason. ``segment-malformed``: not an object with an id;
    ``segment-without-time``: not two times in order; ``segment-unsayable``: no words; ``segment-repeated``: same id
    again in a video, the first counts.
    """

    version: ClassVar[int] = 1
    isolation: ClassVar[Isolation] = "thread"
    candidate: ClassVar[type[Candidate]] = FramePairCandidate
    libraries: ClassVar[tuple[str, ...]] = ("av", "numpy")

    def __init__(self, name: str, source: YouCook2, split: str) -> None:
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
        database = whole.get("database") if isinstance(whole, dict) else None
        if not isinstance(database, dict):
            raise WrongUse(f"{path}: no mapping under 'database'; {_REMEDY}")
        for video in sorted(database):
            media_name(path, video)
            entry = database[video]
            if not isinstance(entry, dict) or not isinstance(entry.get("annotations"), list):
                raise WrongUse(f"{path}: video {video!r}: no list under 'annotations'; {_REMEDY}")
            about = {"video": video, "subset": _text(entry.get("subset")), "recipe": _text(entry.get("recipe_type"))}
            for first, second in combinations(self._segments(entry["annotations"]), 2):
                yield self._pair(video, about, first, second)

    def make(self, candidates: Sequence[Candidate]) -> Iterator[Pair | Rejected]:
        """Pairs with their frames (`generators.video.frame_pairs.make_pairs`)."""
        planned = cast(Sequence[FramePairCandidate], candidates)
        return make_pairs(planned, self.media, "seconds")

    def _segments(self, records: list[Any]) -> list[Segment]:
        segments: dict[str, Segment] = {}
        for record in records:
            name = _text(record.get("id")) if isinstance(record, dict) else ""
            if not name:
                self.excluded["segment-malformed"] += 1
                continue
            interval = _interval(record.get("segment"))
            if interval is None:
                self.excluded["segment-without-time"] += 1
                continue
            sentence = as_sentence(_text(record.get("sentence")))
            if not sentence:
                self.excluded["segment-unsayable"] += 1
            elif name in segments:
                self.excluded["segment-repeated"] += 1
            else:
                segments[name] = Segment(name, *interval, sentence)
        return sorted(segments.values(), key=lambda segment: (segment.start, segment.end, segment.id))

    def _pair(self, video: str, about: dict[str, str], first: Segment, second: Segment) -> FramePairCandidate:
        provenance = {
            **about,
            "segment0": first.id,
            "segment1": second.id,
            "start0": first.start,
            "end0": first.end,
            "start1": second.start,
            "end1": second.end,
        }
        return FramePairCandidate(
            key=sample_key(self.name, video, first.id, second.id),
            group=video,
            split=self.split,
            captions0=(first.sentence,),
            captions1=(second.sentence,),
            video=video,
            at0=(first.start + first.end) / 2,
            at1=(second.start + second.end) / 2,
            change="step",
            provenance=canonical_json(provenance).decode(),
        )


_REMEDY = "source.annotations must be a youcookii_annotations file of {database: {VIDEO: {annotations: [...]}}}"


def _text(value: Any) -> str:
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""


def _interval(value: Any) -> tuple[float, float] | None:
    if not isinstance(value, list) or len(value) != 2:
        return None
    start, end = map(seconds, value)
    return (start, end) if start is not None and end is not None and start <= end else None
