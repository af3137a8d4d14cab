"""Segments of videos with a caption each: YouCook2's (EqBen, 4.1 and B.3), and those of your own videos."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import AfterValidator, BaseModel, BeforeValidator, TypeAdapter, ValidationError

from twinset.contracts.errors import WrongUse
from twinset.contracts.licences.names import UNKNOWN
from twinset.contracts.references import Reference, bibtex, checked_bibtex, reasons_beside
from twinset.contracts.source import Settings
from twinset.generators.annotation_files import (
    RECORD_REASONS,
    Skipped,
    is_media_name,
    read_json,
    read_records,
    refuse_unusable,
    text_of,
)
from twinset.generators.record_fields import Name, Seconds, misfit
from twinset.generators.video.frame_pairs import FRAME_REASONS, FramePairCandidate, FramePairSource, as_sentence


def _in_order(interval: tuple[float, float]) -> tuple[float, float]:
    if interval[0] > interval[1]:
        raise ValueError("a segment begins before it ends")
    return interval


Interval = Annotated[tuple[Seconds, Seconds], AfterValidator(_in_order)]
#: A caption as a sentence; empty where it has no words.
Sentence = Annotated[str, BeforeValidator(lambda value: as_sentence(text_of(value)))]


class Segment(NamedTuple):
    """A part of a video: start and end in seconds, its captions, best first."""

    start: float
    end: float
    id: str
    captions: tuple[str, ...]

    @property
    def middle(self) -> float:
        return (self.start + self.end) / 2


class SegmentPairSource(FramePairSource):
    """Middle frames of segments, in pairs within a video. change: what differs between two."""

    change: ClassVar[str] = "segment"

    def pair(
        self, identity: tuple[str | float, ...], about: Mapping[str, Any], first: Segment, second: Segment
    ) -> FramePairCandidate:
        """The earlier and the later of two segments. identity, about: see `planned`, of which ``about`` is a part."""
        provenance = dict(about)
        for side, segment in enumerate((first, second)):
            provenance |= {f"segment{side}": segment.id, f"start{side}": segment.start, f"end{side}": segment.end}
        captions, middles = (first.captions, second.captions), (first.middle, second.middle)
        return self.planned(identity, captions, middles, self.change, provenance)


class YouCook2Step(BaseModel):
    """An entry of ``annotations``."""

    id: Name
    segment: Interval
    sentence: Sentence = ""


class YouCook2Video(BaseModel):
    """An entry of ``database``."""

    annotations: list[Any]
    subset: Annotated[str, BeforeValidator(text_of)] = ""
    recipe_type: Annotated[str, BeforeValidator(text_of)] = ""


_STEP, _VIDEO = TypeAdapter(YouCook2Step), TypeAdapter(YouCook2Video)
_YOUCOOK2 = "source.annotations must be a youcookii_annotations file of {database: {VIDEO: {annotations: [...]}}}"


class YouCook2(SegmentPairSource):
    """Middle frame of every segment, all pairs within a video (EqBen, sections 4.1 and B.3)."""

    kind: Literal["youcook2"]
    licence: str = UNKNOWN

    reference = Reference("YouCook2", "http://youcook2.eecs.umich.edu", bibtex("zhou2018youcook2"))
    reasons: ClassVar[Mapping[str, str]] = {**FRAME_REASONS, **reasons_beside(__file__, "segments", "youcook2")}

    version = 3
    change = "step"

    def plan(self) -> Iterator[FramePairCandidate]:
        """Pairs by video and time, whatever the order of the file."""
        whole = read_json(self.annotations)
        database = whole.get("database") if isinstance(whole, dict) else None
        if not isinstance(database, dict):
            raise WrongUse(f"{self.annotations}: no mapping under 'database'; {_YOUCOOK2}")
        for video, entry, place in self.usable_videos(self.annotations, database, _VIDEO, _YOUCOOK2):
            about = {"video": video, "subset": entry.subset, "recipe": entry.recipe_type}
            for first, second in combinations(self._segments(entry.annotations, place), 2):
                yield self.pair((video, first.id, second.id), about, first, second)

    def media_urls(self) -> Mapping[str, str]:
        database = read_json(self.annotations)["database"]
        return {video: text_of(entry.get("video_url")) for video, entry in database.items() if isinstance(entry, dict)}

    def _segments(self, records: list[Any], video: str) -> list[Segment]:
        segments: dict[str, Segment] = {}
        for number, record in enumerate(records, 1):
            place = f"{video} segment {number}"
            try:
                step = _STEP.validate_python(record)
            except ValidationError as error:
                reason = "segment-without-time" if misfit(error)[0] == "segment" else "segment-malformed"
                self.excluded.add(reason, place)
                continue
            if not step.sentence:
                self.excluded.add("segment-unsayable", place)
            elif step.id in segments:
                self.excluded.add("segment-repeated", place)
            else:
                segments[step.id] = Segment(*step.segment, step.id, (step.sentence,))
        return sorted(segments.values())


class SegmentFields(Settings):
    """What the fields of a record are called: the name of its video, its start and end in seconds, its caption."""

    video: str = "video"
    start: str = "start"
    end: str = "end"
    caption: str = "caption"


class OwnSegment(BaseModel):
    """A record, its fields by our names."""

    video: Name
    times: Interval
    caption: Sentence = ""


_OWN = TypeAdapter(OwnSegment)
_OWN_REASONS = {"video": "segment-without-video", "times": "segment-without-time"}


class VideoSegments(SegmentPairSource):
    """Segments of your own videos: the middle frame of each, in pairs within a video.

    annotations: CSV, TSV, JSON, JSON lines or Parquet; a record a segment, with the name of its video, start and end in
    seconds and a caption. Records of one video with the same times are one segment with several captions.
    media: folder of the videos. fields: what the fields are called. title: what the card calls the data. citation:
    its BibTeX. Two segments are no pair where the middle of one lies within the other, or a caption is the same.
    """

    kind: Literal["video-segments"]
    fields: SegmentFields = SegmentFields()
    title: str = "segments of videos"
    citation: Annotated[str, AfterValidator(checked_bibtex)] = ""
    licence: str = UNKNOWN

    paper = None
    reasons: ClassVar[Mapping[str, str]] = {
        **FRAME_REASONS,
        **RECORD_REASONS,
        **reasons_beside(__file__, "segments", "video-segments"),
    }

    version = 1

    @property
    def made_from(self) -> Reference:
        return Reference(self.title, "", self.citation)

    def plan(self) -> Iterator[FramePairCandidate]:
        """Pairs by video and time, whatever the order of the file."""
        pairs = 0
        for video, captions in sorted(self._captions().items()):
            segments = (Segment(*at, f"{at[0]:g}-{at[1]:g}", tuple(captions[at])) for at in sorted(captions))
            for first, second in combinations(segments, 2):
                place = f"{self.annotations.name} video {video!r} segments {first.id} and {second.id} s"
                if first.start <= second.middle <= first.end or second.start <= first.middle <= second.end:
                    self.excluded.add("pair-overlaps", place)
                elif not set(first.captions).isdisjoint(second.captions):
                    self.excluded.add("pair-said-alike", place)
                else:
                    pairs += 1
                    identity = video, first.start, first.end, second.start, second.end
                    yield self.pair(identity, {"video": video}, first, second)
        if not pairs:
            remedy = "a pair needs two segments of one video, each with start, end and caption; see source.fields"
            refuse_unusable(self.annotations, self.excluded, remedy)

    def _captions(self) -> dict[str, dict[tuple[float, float], dict[str, None]]]:
        """The captions of each segment, in order and each once, by video and times."""
        videos: dict[str, dict[tuple[float, float], dict[str, None]]] = {}
        names = self.fields
        for place, record in read_records(self.annotations, (names.video, names.start, names.end, names.caption)):
            if isinstance(record, Skipped):
                self.excluded.add(record.reason, place)
                continue
            times = record.get(names.start), record.get(names.end)
            fields = {"video": record.get(names.video), "times": times, "caption": record.get(names.caption)}
            try:
                own = _OWN.validate_python(fields)
            except ValidationError as error:
                self.excluded.add(_OWN_REASONS[misfit(error)[0]], place)
                continue
            if not is_media_name(own.video, self.folder):
                self.excluded.add("unsafe-path", place)
            elif not own.caption:
                self.excluded.add("segment-unsayable", place)
            else:
                videos.setdefault(own.video, {}).setdefault(own.times, {})[own.caption] = None
        return videos
