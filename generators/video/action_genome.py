"""EQ-AG: pairs of annotated frames between which a person's relation to an object changes (EqBen, 4.1 and B.1)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, cast

from generators.annotation_files import media_name, read_json_lines
from generators.video import safe_pickle
from generators.video.frame_pairs import Addressing, FramePairCandidate, make_pairs
from generators.video.relation_captions import captions, official, relation
from manifests.candidate import Candidate
from manifests.canonical import canonical_json, sample_key, sha256_of_file
from manifests.errors import WrongUse
from manifests.source_settings import ActionGenome
from shards.contracts import Isolation
from shards.kinds.samples import Pair, Rejected
from shards.media.media_folder import MediaFolder

FRAME = re.compile(r"(?P<video>.+)/0*(?P<number>[1-9]\d{0,8})\.(?:png|jpg)")
RELATIONS = ("attention_relationship", "spatial_relationship", "contacting_relationship")
PICKLE_START = b"\x80"  # of every pickle since protocol 2, and of no JSON


@dataclass(frozen=True, slots=True)
class View:
    """One object in one annotated frame: relations as annotated, in the order attention, spatial, contacting."""

    number: int
    frame: str
    object_class: str
    relations: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]

    def differs_from(self, other: View) -> bool:
        """Whether at least two of the three relations differ (EqBen's rule against near-identical pairs)."""
        return sum(set(mine) != set(theirs) for mine, theirs in zip(self.relations, other.relations, strict=True)) >= 2


class ActionGenomeGenerator:
    """Pairs from Action Genome's official pickle, or from JSON lines of ``{frame, objects: [...]}``.

    excluded: what the last `plan` left out, by reason. ``frame-name``: not VIDEO/NUMBER.png; ``repeated-frame``,
    ``repeated-object``: named again, the first counts; ``unknown-relation``: none of Action Genome's, never said;
    ``pair-unsayable``: frames that differ but where one has no caption; ``pair-said-alike``: where both have the same
    captions, or, with ``exclusive``, where one has no caption that the other lacks.
    """

    version: ClassVar[int] = 1
    isolation: ClassVar[Isolation] = "thread"
    candidate: ClassVar[type[Candidate]] = FramePairCandidate
    libraries: ClassVar[tuple[str, ...]] = ("av", "numpy")

    def __init__(self, name: str, source: ActionGenome, split: str) -> None:
        self.name = name
        self.source = source
        self.split = split
        self.media = MediaFolder(source.media)  # one, since it may have to walk the whole tree
        self.excluded: Counter[str] = Counter()

    def inputs(self) -> str:
        """sha256 of the annotation file."""
        return sha256_of_file(self.source.annotations)[0]

    def plan(self) -> Iterator[FramePairCandidate]:
        """Pairs by video, object class and time, whatever the order of the file."""
        self.excluded = Counter()
        videos = self._views()
        for video in sorted(videos):
            for kind, views in sorted(videos[video].items()):
                views.sort(key=lambda view: view.number)
                yield from self._pairs(video, kind, views)

    def make(self, candidates: Sequence[Candidate]) -> Iterator[Pair | Rejected]:
        """Pairs with their frames (`generators.video.frame_pairs.make_pairs`)."""
        planned = cast(Sequence[FramePairCandidate], candidates)
        addressing: Addressing = "dump" if self.source.frames == "dump" else "numbers"
        return make_pairs(planned, self.media, addressing)

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
                j += 1 + self.source.skip if pair is not None else 1
            i += 1 + self.source.skip if chosen else 1

    def _pair(self, video: str, kind: str, first: View, second: View) -> FramePairCandidate | None:
        if not first.differs_from(second):
            return None
        grammar = self.source.grammar
        said0, said1 = (captions(view.object_class, *view.relations[1:], grammar) for view in (first, second))
        if not said0 or not said1:
            self.excluded["pair-unsayable"] += 1
            return None
        # A caption of its own leads, so that the first two differ as soon as one frame has one.
        captions0, captions1 = _own_first(said0, said1), _own_first(said1, said0)
        shared0, shared1 = captions0[0] in said1, captions1[0] in said0
        if (shared0 and shared1) or (self.source.exclusive and (shared0 or shared1)):
            self.excluded["pair-said-alike"] += 1
            return None
        provenance = {"video": video, "object": kind}
        for side, view in enumerate((first, second)):
            provenance[f"frame{side}"] = view.frame
            for slot, names in zip(RELATIONS, view.relations, strict=True):
                provenance[f"{slot}{side}"] = ",".join(names)
        return FramePairCandidate(
            key=sample_key(self.name, video, kind, first.number, second.number),
            group=video,
            split=self.split,
            captions0=captions0,
            captions1=captions1,
            video=video,
            at0=float(first.number),
            at1=float(second.number),
            change="relation",
            provenance=canonical_json(provenance).decode(),
        )

    def _views(self) -> dict[str, dict[str, list[View]]]:
        """Visible objects by video and class."""
        videos: dict[str, dict[str, list[View]]] = {}
        shared: dict[Any, Any] = {}  # a few hundred combinations of relations serve half a million views
        seen: set[tuple[str, int]] = set()
        for place, frame, objects in _frames(self.source.annotations):
            match = FRAME.fullmatch(media_name(self.source.annotations, frame))
            if match is None:
                self.excluded["frame-name"] += 1
                continue
            video, number = match["video"], int(match["number"])
            if (video, number) in seen:
                self.excluded["repeated-frame"] += 1
                continue
            seen.add((video, number))
            here: set[str] = set()
            for one in objects:
                object_class, visible, relations = _object(one, place)
                if not visible:
                    continue
                kind = official(object_class)
                if kind in here:
                    self.excluded["repeated-object"] += 1
                    continue
                here.add(kind)
                self.excluded["unknown-relation"] += sum(relation(name) is None for name in chain(*relations))
                views = videos.setdefault(video, {}).setdefault(shared.setdefault(kind, kind), [])
                object_class, relations = shared.setdefault((object_class, relations), (object_class, relations))
                views.append(View(number, frame, object_class, relations))
        self.excluded = +self.excluded
        return videos


def _own_first(said: tuple[str, ...], elsewhere: tuple[str, ...]) -> tuple[str, ...]:
    """The captions with the first one that the other frame does not have in the lead, where there is one."""
    own = next((caption for caption in said if caption not in elsewhere), said[0])
    return (own, *(caption for caption in said if caption != own))


def _frames(path: Path) -> Iterator[tuple[str, str, list[Any]]]:
    """Place (for messages), frame name and objects of every annotated frame."""
    pairs: Iterable[tuple[str, Any, Any]]
    if _is_pickle(path):
        whole = safe_pickle.load(path)
        if not isinstance(whole, dict):
            raise WrongUse(f"{path}: holds a {type(whole).__name__}, not frames by name; {_REMEDY}")
        pairs = ((f"{path}: frame {frame!r}", frame, objects) for frame, objects in whole.items())
    else:
        pairs = ((f"{path}: line {number}", *_fields(line)) for number, line in read_json_lines(path))
    for place, frame, objects in pairs:
        if not isinstance(frame, str) or not isinstance(objects, list):
            raise WrongUse(f"{place}: not a frame's name with its list of objects; {_REMEDY}")
        yield place, frame, objects


_REMEDY = "source.annotations must be object_bbox_and_relationship.pkl, or lines of {frame, objects: [...]}"


def _fields(line: Any) -> tuple[Any, Any]:
    return (line.get("frame"), line.get("objects")) if isinstance(line, dict) else (None, None)


def _object(one: Any, place: str) -> tuple[str, bool, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]]:
    """Class, visibility (JSON lines list visible objects alone) and relations (None where invisible) of an object."""
    if not isinstance(one, dict) or not _is_word(one.get("class")):
        raise WrongUse(f"{place}: an object without a class; {_REMEDY}")
    lists = [() if one.get(kind) is None else one[kind] for kind in RELATIONS]
    if not all(isinstance(names, list | tuple) and all(map(_is_word, names)) for names in lists):
        raise WrongUse(f"{place}: {one['class']}: relations must be lists of names; {_REMEDY}")
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
