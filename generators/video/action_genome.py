"""EQ-AG: pairs of annotated frames between which a person's relation to an object changes (EqBen, 4.1 and B.1)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field

from twinset.contracts.canonical import canonical_json
from twinset.contracts.errors import WrongUse
from twinset.contracts.licences.names import UNKNOWN
from twinset.contracts.references import Reference, bibtex, reasons_beside
from twinset.generators.annotation_files import LINE_REASONS, Skipped, is_media_name, read_json_lines
from twinset.generators.video import safe_pickle
from twinset.generators.video.frame_pairs import FRAME_REASONS, Addressing, FramePairCandidate, FramePairSource
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
        said0, said1 = (captions(view.object_class, *view.relations[1:], grammar) for view in (first, second))
        place = f"{self.annotations.name} {kind} of {first.frame} and {second.frame}"
        if not said0 or not said1:
            self.excluded.add("pair-unsayable", place)
            return None
        # A caption of its own leads, so that the first two differ as soon as one frame has one.
        captions0, captions1 = _own_first(said0, said1), _own_first(said1, said0)
        shared0, shared1 = captions0[0] in said1, captions1[0] in said0
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
        videos: dict[str, dict[str, list[View]]] = {}
        shared: dict[Any, Any] = {}  # a few hundred combinations of relations serve half a million views
        seen: set[tuple[str, int]] = set()
        for place, frame, objects in _frames(self.annotations):
            if isinstance(frame, Skipped):
                self.excluded.add(frame.reason, place)
                continue
            if not isinstance(frame, str) or not isinstance(objects, list):
                self.excluded.add("frame-malformed", place)
                continue
            if not is_media_name(frame):
                self.excluded.add("unsafe-path", place)
                continue
            match = FRAME.fullmatch(frame)
            if match is None:
                self.excluded.add("frame-name", place)
                continue
            video, number = match["video"], int(match["number"])
            if (video, number) in seen:
                self.excluded.add("repeated-frame", place)
                continue
            seen.add((video, number))
            here: set[str] = set()
            for one in objects:
                if (read := _object(one)) is None:
                    self.excluded.add("object-malformed", place)
                    continue
                object_class, visible, relations = read
                if not visible:
                    continue
                kind = official(object_class)
                if kind in here:
                    self.excluded.add("repeated-object", f"{place} {kind}")
                    continue
                here.add(kind)
                for name in chain(*relations):
                    if relation(name) is None:
                        self.excluded.add("unknown-relation", f"{place} {kind} {name!r}")
                views = videos.setdefault(video, {}).setdefault(shared.setdefault(kind, kind), [])
                object_class, relations = shared.setdefault((object_class, relations), (object_class, relations))
                views.append(View(number, frame, object_class, relations))
        return videos


def _own_first(said: tuple[str, ...], elsewhere: tuple[str, ...]) -> tuple[str, ...]:
    """The captions with the first one that the other frame does not have in the lead, where there is one."""
    own = next((caption for caption in said if caption not in elsewhere), said[0])
    return (own, *(caption for caption in said if caption != own))


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


def _object(one: Any) -> tuple[str, bool, Relations] | None:
    """Class, visibility (JSON lines list visible objects alone) and relations (None where invisible) of an object.

    None for anything else.
    """
    if not isinstance(one, dict) or not _is_word(one.get("class")):
        return None
    lists = [() if one.get(kind) is None else one[kind] for kind in RELATIONS]
    if not all(isinstance(names, list | tuple) and all(map(_is_word, names)) for names in lists):
        return None
    attention, spatial, contacting = (tuple(relation(name) or name for name in names) for names in lists)
    return one["class"], bool(one.get("visible", True)), (attention, spatial, contacting)


def _is_word(value: Any) -> bool:
    return isinstance(value, str) and value != "" and value.isprintable()


def _is_pickle(path: Path) -> bool:
    if path.suffix in (".pkl", ".pickle"):
        return True
    try:
        with path.open("rb") as stream:
            return stream.read(1) == PICKLE_START
    except OSError:
        return False  # the reader says why
