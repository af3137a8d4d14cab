"""EQ-YouCook2: middle frames of any two steps of one cooking video (EqBen, 4.1 and B.3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar, Literal

from twinset.contracts.errors import WrongUse
from twinset.contracts.licences.names import UNKNOWN
from twinset.contracts.references import Reference, bibtex, reasons_beside
from twinset.generators.annotation_files import read_json, seconds, text_of
from twinset.generators.video.frame_pairs import FRAME_REASONS, FramePairCandidate, FramePairSource, as_sentence


@dataclass(frozen=True, slots=True)
class Segment:
    """One step of a recipe: its id, interval in seconds and sentence."""

    id: str
    start: float
    end: float
    sentence: str


class YouCook2(FramePairSource):
    """Middle frame of every segment, all pairs within a video (EqBen, sections 4.1 and B.3)."""

    kind: Literal["youcook2"]
    licence: str = UNKNOWN

    reference = Reference("YouCook2", "http://youcook2.eecs.umich.edu", bibtex("zhou2018youcook2"))
    reasons: ClassVar[Mapping[str, str]] = {**FRAME_REASONS, **reasons_beside(__file__, "youcook2")}

    version = 3

    def plan(self) -> Iterator[FramePairCandidate]:
        """Pairs by video and time, whatever the order of the file."""
        whole = read_json(self.annotations)
        database = whole.get("database") if isinstance(whole, dict) else None
        if not isinstance(database, dict):
            raise WrongUse(f"{self.annotations}: no mapping under 'database'; {_REMEDY}")
        for video, place in self.usable_videos(self.annotations, database, _has_annotations, _REMEDY):
            entry = database[video]
            about = {
                "video": video,
                "subset": text_of(entry.get("subset")),
                "recipe": text_of(entry.get("recipe_type")),
            }
            for first, second in combinations(self._segments(entry["annotations"], place), 2):
                yield self._pair(video, about, first, second)

    def media_urls(self) -> Mapping[str, str]:
        database = read_json(self.annotations)["database"]
        return {video: text_of(entry.get("video_url")) for video, entry in database.items() if isinstance(entry, dict)}

    def _segments(self, records: list[Any], video: str) -> list[Segment]:
        segments: dict[str, Segment] = {}
        for number, record in enumerate(records, 1):
            place = f"{video} segment {number}"
            name = text_of(record.get("id")) if isinstance(record, dict) else ""
            if not name:
                self.excluded.add("segment-malformed", place)
                continue
            interval = _interval(record.get("segment"))
            if interval is None:
                self.excluded.add("segment-without-time", place)
                continue
            sentence = as_sentence(text_of(record.get("sentence")))
            if not sentence:
                self.excluded.add("segment-unsayable", place)
            elif name in segments:
                self.excluded.add("segment-repeated", place)
            else:
                segments[name] = Segment(name, *interval, sentence)
        return sorted(segments.values(), key=lambda segment: (segment.start, segment.end, segment.id))

    def _pair(self, video: str, about: dict[str, str], first: Segment, second: Segment) -> FramePairCandidate:
        provenance: dict[str, Any] = dict(about)
        for side, one in enumerate((first, second)):
            provenance |= {f"segment{side}": one.id, f"start{side}": one.start, f"end{side}": one.end}
        middles = ((first.start + first.end) / 2, (second.start + second.end) / 2)
        captions = ((first.sentence,), (second.sentence,))
        return self.planned((video, first.id, second.id), captions, middles, "step", provenance)


_REMEDY = "source.annotations must be a youcookii_annotations file of {database: {VIDEO: {annotations: [...]}}}"


def _has_annotations(entry: Any) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("annotations"), list)


def _interval(value: Any) -> tuple[float, float] | None:
    if not isinstance(value, list) or len(value) != 2:
        return None
    start, end = map(seconds, value)
    return (start, end) if start is not None and end is not None and start <= end else None
