"""EQ-AG: pairs of annotated frames between which a person's relation to an object changes (EqBen, 4.1 and B.1)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, TypeAdapter, ValidationError

from twinset.contracts.canonical import canonical_json
from twinset.contracts.errors import WrongUse
from twinset.contracts.licences.names import UNKNOWN
from twinset.contracts.references import Reference, bibtex, reasons_beside
from twinset.generators.annotation_files import LINE_REASONS, Skipped, is_media_name, read_json_lines
from twinset.generators.video import safe_pickle
from twinset.generators.video.frame_pair import Addressing, FramePairCandidate
from twinset.generators.video.frame_pairs import FRAME_REASONS, FramePairSource
from twinset.generators.video.relation_captions import captions, official, relation

FRAME = re.compile(r"(?P<video>.+)/0*(?P<number>[1-9]\d{0,8})\.(?:png|jpg)")
RELATIONS = ("attention_relationship", "spatial_relationship", "contacting_relationship")
CAPTIONS = "captions.json"  # report: pairs planned, and those of which one caption is true of both frames
Relations = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
PICKLE_START = b"\x80"  # of every pickle since protocol 2, and of no JSON


@dataclass(frozen=True, slots=True)
class View:
    """One object in one annotated frame: relations as annotated, in the order attention, spatial, contacting."""

    number: int
    frame: str
    object_class: str
    relations: Relations

    def differs_from(self, other: View) -> bool:
        """Whether at least two of the three relations differ (EqBen's rule against near-identical pairs)."""
        return sum(set(mine) != set(theirs) for mine, theirs in zip(self.relations, other.relations, strict=True)) >= 2


def _printable(word: str) -> str:
    if not word or not word.isprintable():
        raise ValueError("a word is printable")
    return word


def _listed(names: Any) -> Any:
    return () if names is None else names  # of what is invisible


Word = Annotated[str, AfterValidator(_printable)]
Names = Annotated[
    tuple[Annotated[Word, AfterValidator(lambda name: relation(name) or name)], ...], BeforeValidator(_listed)
]


class AnnotatedObject(BaseModel):
    """An object of a frame; JSON lines list visible ones alone."""

    object_class: Word = Field(alias="class")
    visible: bool = True
    attention_relationship: Names = ()
    spatial_relationship: Names = ()
    contacting_relationship: Names = ()

    @property
    def relations(self) -> Relations:
        """In the order attention, spatial, contacting."""
        return self.attention_relationship, self.spatial_relationship, self.contacting_relationship


_OBJECT = TypeAdapter(AnnotatedObject)


class ActionGenome(FramePairSource):
    """Frames between which a person's relation to an object changes (EqBen, sections 4.1 and B.1).

    frames: ``dump`` reads ``VIDEO.mp4/000123.png`` of the official ffmpeg dump, ``video`` takes the same 1-based
    frame numbers from ``VIDEO.mp4``.
    skip: annotated frames left out after a chosen one (the paper says 1 and 2).
    exclusive: stricter than the paper: each frame has a caption that is not true of the other one. {holding} and
    {holding, touching} are said differently, and make a pair, but "holding" is true of both.
    grammar: captions in correct English ("the clothes which are"), where the paper prints "the clothes which is".
    """

    kind: Literal["action-genome"]
    frames: Literal["dump", "video"] = "video"
    skip: int = Field(default=1, ge=0)
    exclusive: bool = False
    grammar: bool = False
    licence: str = UNKNOWN

    reports = (CAPTIONS,)
    reference = Reference(
        "Action Genome", "https://www.actiongenome.org", bibtex("ji2020actiongenome", "sigurdsson2016hollywood")
    )
    reasons: ClassVar[Mapping[str, str]] = {
        **FRAME_REASONS,
        **LINE_REASONS,
        **reasons_beside(__file__, "action-genome"),
    }

    version = 2

    @cached_property
    def _counts(self) -> Counter[str]:
        """Pairs that are planned, and those of which one caption is true of both frames."""
        return Counter()

    def plan(self) -> Iterator[FramePairCandidate]:
        """Pairs by video, object class and time, whatever the order of the file."""
        videos = self._views()
        self._counts.clear()
        for video in sorted(videos):
            for kind, views in sorted(videos[video].items()):
                views.sort(key=lambda view: view.number)
                yield from self._pairs(video, kind, views)

    def report_files(self) -> Mapping[str, bytes]:
        return {CAPTIONS: canonical_json({name: self._counts[name] for name in ("pairs", "one true of both")})}

    def addressing(self) -> Addressing:
        return "dump" if self.frames == "dump" else "numbers"

    def _pairs(self, video: str, kind: str, views: Sequence[View]) -> Iterator[FramePairCandidate]:
        """EqBen's sparse sampling: frames next to a chosen one are too much like it, and are skipped."""
        i = 0
        while i < len(views):
            chosen, j = False, i + 1
            while j < len(views):
                pair = self._pair(video, kind, views[i], views[j])
                if pair is not None:
                    yield pair
                    chosen = True
                j += 1 + self.skip if pair is not None else 1
            i += 1 + self.skip if chosen else 1

    def _pair(self, video: str, kind: str, first: View, second: View) -> FramePairCandidate | None:
        if not first.differs_from(second):
            return None
        grammar = self.grammar
        all0, all1 = (captions(view.object_class, *view.relations[1:], grammar) for view in (first, second))
        place = f"{self.annotations.name} {kind} of {first.frame} and {second.frame}"
        if not all0 or not all1:
            self.excluded.add("pair-unsayable", place)
            return None
        # A caption of its own leads, so that the first two differ as soon as one frame has one.
        captions0, captions1 = _own_first(all0, all1), _own_first(all1, all0)
        shared0, shared1 = captions0[0] in all1, captions1[0] in all0
        if (shared0 and shared1) or (self.exclusive and (shared0 or shared1)):
            self.excluded.add("pair-said-alike", place)
            return None
        self._counts["pairs"] += 1
        self._counts["one true of both"] += shared0 or shared1
        provenance = {"video": video, "object": kind}
        for side, view in enumerate((first, second)):
            provenance[f"frame{side}"] = view.frame
            for slot, names in zip(RELATIONS, view.relations, strict=True):
                provenance[f"{slot}{side}"] = ",".join(names)
        identity, at = (video, kind, first.number, second.number), (float(first.number), float(second.number))
        return self.planned(identity, (captions0, captions1), at, "relation", provenance)

    def _views(self) -> dict[str, dict[str, list[View]]]:
        """The visible objects of each video and class."""
        videos: dict[str, dict[str, list[View]]] = {}
        shared: dict[Any, Any] = {}  # a few hundred combinations of relations serve half a million views
        frames: set[tuple[str, int]] = set()
        for place, frame, objects in _frames(self.annotations):
            match = FRAME.fullmatch(frame) if isinstance(frame, str) else None
            address = (match["video"], int(match["number"])) if match else ("", 0)
            if reason := _problem(frame, objects) or ("repeated-frame" if address in frames else ""):
                self.excluded.add(reason, place)
                continue
            frames.add(address)
            classes: set[str] = set()
            for value in objects:
                try:
                    annotated = _OBJECT.validate_python(value)
                except ValidationError:
                    self.excluded.add("object-malformed", place)
                    continue
                if not annotated.visible:
                    continue
                kind = official(annotated.object_class)
                if kind in classes:
                    self.excluded.add("repeated-object", f"{place} {kind}")
                    continue
                classes.add(kind)
                for name in chain(*annotated.relations):
                    if relation(name) is None:
                        self.excluded.add("unknown-relation", f"{place} {kind} {name!r}")
                views = videos.setdefault(address[0], {}).setdefault(shared.setdefault(kind, kind), [])
                shown = annotated.object_class, annotated.relations
                views.append(View(address[1], frame, *shared.setdefault(shown, shown)))
        return videos


def _own_first(captions: tuple[str, ...], elsewhere: tuple[str, ...]) -> tuple[str, ...]:
    """The captions with the first one that the other frame does not have in the lead, where there is one."""
    own = next((caption for caption in captions if caption not in elsewhere), captions[0])
    return (own, *(caption for caption in captions if caption != own))


def _problem(frame: Any, objects: Any) -> str:
    """Why an annotated frame cannot be used; empty where it can."""
    if isinstance(frame, Skipped):
        return frame.reason
    if not isinstance(frame, str) or not isinstance(objects, list):
        return "frame-malformed"
    if not is_media_name(frame):
        return "unsafe-path"
    return "" if FRAME.fullmatch(frame) else "frame-name"


def _frames(path: Path) -> Iterator[tuple[str, Any, Any]]:
    """Place, name and objects of every annotated frame, as the file has them; `Skipped` for a line without JSON."""
    if _is_pickle(path):
        whole = safe_pickle.load(path)
        if not isinstance(whole, dict):
            raise WrongUse(f"{path}: holds a {type(whole).__name__}, not frames by name; {_REMEDY}")
        for frame, objects in whole.items():
            yield f"{path.name} frame {frame!r}", frame, objects
        return
    for number, line in read_json_lines(path):
        place = f"{path.name} line {number}"
        yield (place, line.get("frame"), line.get("objects")) if isinstance(line, dict) else (place, line, None)


_REMEDY = "source.annotations must be object_bbox_and_relationship.pkl, or lines of {frame, objects: [...]}"


def _is_pickle(path: Path) -> bool:
    if path.suffix in (".pkl", ".pickle"):
        return True
    try:
        with path.open("rb") as stream:
            return stream.read(1) == PICKLE_START
    except OSError:
        return False  # the reader says why
