"""Segments of videos with a caption each: YouCook2's (EqBen, 4.1 and B.3), and those of your own videos."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import AfterValidator, BaseModel, Field, TypeAdapter, ValidationError

from twinset.contracts.licences.names import UNKNOWN
from twinset.contracts.references import Reference, bibtex, checked_bibtex
from twinset.generators.annotation_files import RECORD_REASONS, Skipped, is_media_name, read_records, refuse_unusable
from twinset.generators.reasons import reasons_beside
from twinset.generators.record_fields import Name, OptionalText, Seconds
from twinset.generators.video.frame_pairs import FramePairCandidate, FramePairSource, as_sentence, read_form
from twinset.shards.media.media_folder import VIDEO_SUFFIXES


def _in_order(interval: tuple[float, float]) -> tuple[float, float]:
    if interval[0] > interval[1]:
        raise ValueError("a segment begins before it ends")
    return interval


Interval = Annotated[tuple[Seconds, Seconds], AfterValidator(_in_order)]
#: A caption as a sentence, which has words.
Sentence = Annotated[OptionalText, AfterValidator(lambda text: as_sentence(text)), Field(min_length=1)]


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
    reasons = FramePairSource.reasons | reasons_beside(__file__, "segments")

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
    sentence: Sentence


class YouCook2Video(BaseModel):
    """An entry of ``database``."""

    annotations: list[Any]
    subset: OptionalText = ""
    recipe_type: OptionalText = ""
    video_url: OptionalText = ""


class YouCook2File(BaseModel):
    """``youcookii_annotations_trainval.json``, or a file of its form."""

    database: Mapping[str, YouCook2Video]


class YouCook2(SegmentPairSource):
    """Middle frame of every segment, all pairs within a video (EqBen, sections 4.1 and B.3)."""

    kind: Literal["youcook2"]
    licence: str = UNKNOWN

    reference = Reference("YouCook2", "http://youcook2.eecs.umich.edu", bibtex("zhou2018youcook2"))

    version = 4
    change = "step"

    def plan(self) -> Iterator[FramePairCandidate]:
        """Pairs by video and time, whatever the order of the file."""
        for video, entry, place in self.usable_videos(self.annotations, self._database()):
            about = {"video": video, "subset": entry.subset, "recipe": entry.recipe_type}
            for first, second in combinations(self._segments(entry.annotations, place), 2):
                yield self.pair((video, first.id, second.id), about, first, second)

    def media_urls(self) -> Mapping[str, str]:
        return {video: entry.video_url for video, entry in self._database().items()}

    def _database(self) -> Mapping[str, YouCook2Video]:
        remedy = "source.annotations must be a youcookii_annotations file of {database: {VIDEO: {annotations: [...]}}}"
        return read_form(self.annotations, TypeAdapter(YouCook2File), remedy).database

    def _segments(self, records: list[Any], video: str) -> list[Segment]:
        segments = []
        for number, record in enumerate(records, 1):
            try:
                step = YouCook2Step.model_validate(record)
            except ValidationError:
                self.excluded.add("segment-malformed", f"{video} segment {number}")
            else:
                segments.append(Segment(*step.segment, step.id, (step.sentence,)))
        return sorted(segments)


class OwnSegment(BaseModel):
    """A record of one's own segments."""

    video: Name
    times: Interval
    caption: Sentence


class VideoSegments(SegmentPairSource):
    """Segments of your own videos: the middle frame of each, in pairs within a video.

    annotations: CSV, TSV, JSON, JSON lines or Parquet; a record a segment, with the fields ``video`` (its name),
    ``start`` and ``end`` (seconds) and ``caption``. Records of one video with the same times are one segment with
    several captions.
    media: folder of the videos. title: what the card calls the data. citation: its BibTeX. Two segments are no pair
    where the middle of one lies within the other, or a caption is the same.
    """

    kind: Literal["video-segments"]
    title: str = "segments of videos"
    citation: Annotated[str, AfterValidator(checked_bibtex)] = ""
    licence: str = UNKNOWN

    paper = None
    reasons = SegmentPairSource.reasons | RECORD_REASONS | reasons_beside(__file__, "video-segments")

    version = 2

    @property
    def reference(self) -> Reference:  # type: ignore[override]  # what the recipe calls it
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
            remedy = "a pair needs two segments of one video, each with video, start, end and caption"
            refuse_unusable(self.annotations, self.excluded, remedy)

    def _captions(self) -> dict[str, dict[tuple[float, float], dict[str, None]]]:
        """The captions of each segment, in order and each once, by video and times."""
        videos: dict[str, dict[tuple[float, float], dict[str, None]]] = {}
        fields = ("video", "start", "end", "caption")
        for place, record in read_records(self.annotations, fields, remedy=f"name its columns {', '.join(fields)}"):
            if isinstance(record, Skipped):
                self.excluded.add(record.reason, place)
                continue
            try:
                own = OwnSegment.model_validate({**record, "times": (record.get("start"), record.get("end"))})
            except ValidationError:
                self.excluded.add("segment-malformed", place)
                continue
            if not is_media_name(own.video, self.folder):
                self.excluded.add("unsafe-path", place)
            else:
                videos.setdefault(own.video, {}).setdefault(own.times, {})[own.caption] = None
        for bare in list(videos):  # a video may be named with its suffix in one record, and without it in another
            whole = [name for name in videos if name != bare and name.lower() in _suffixed(bare)]
            if len(whole) == 1:
                for times, captions in videos.pop(bare).items():
                    videos[whole[0]].setdefault(times, {}).update(captions)
        return videos


def _suffixed(name: str) -> list[str]:
    return [name.lower() + suffix for suffix in VIDEO_SUFFIXES]
