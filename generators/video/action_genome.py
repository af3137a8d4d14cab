"""EQ-AG: pairs of annotated frames between which a person's relation to an object changes (EqBen, 4.1 and B.1).

Captions are "The person is CONTACT the OBJECT which is SPATIAL him/her." (Fig. 16): the paper's text puts the attention
relation into the first slot, each of its published examples the contacting one.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, ValidationError

from twinset.contracts.errors import WrongUse
from twinset.contracts.licences.names import UNKNOWN
from twinset.contracts.references import Reference, bibtex
from twinset.generators.annotation_files import LINE_REASONS, Skipped, is_media_name, read_json_lines
from twinset.generators.reasons import reasons_beside
from twinset.generators.video import safe_pickle
from twinset.generators.video.frame_pairs import FramePairCandidate, FramePairSource

FRAME = re.compile(r"(?P<video>.+)/0*(?P<number>[1-9]\d{0,8})\.(?:png|jpg)")
RELATIONS = ("attention_relationship", "spatial_relationship", "contacting_relationship")

# A joined name such as closet/cabinet is one class, and the annotation does not tell which of the two is meant. One
# word is said, the same on both sides of a pair: the first, except for the bottle, as published ("the sofa", "the
# bottle"). Keys are those of the official list, words run together.
NOUNS = {
    "closetcabinet": "closet",
    "cupglassbottle": "bottle",
    "papernotebook": "paper",
    "phonecamera": "phone",
    "sofacouch": "sofa",
}

SPATIAL = ("above", "beneath", "in_front_of", "behind", "on_the_side_of", "in")
CONTACTING = (
    *("carrying", "covered_by", "drinking_from", "eating", "have_it_on_the_back", "holding", "leaning_on", "lying_on"),
    *("not_contacting", "sitting_on", "standing_on", "touching", "twisting", "wearing", "wiping", "writing_on"),
)
#: What captions say for a relation instead of its name; "in" of doorways, clothes and blankets that a person is in.
WORDS = {"in": "around", "have_it_on_the_back": "carrying on the back"}
UNSAID = ("looking_at", "not_looking_at", "unsure", "other_relationship")
JOINT = re.compile(r"[\s_/-]+")


def official(name: str) -> str:
    """The official lists' spelling, words run together: ``cup_glass_bottle``, ``cup/glass/bottle`` -> one word."""
    return JOINT.sub("", name).lower()


#: Names of relations as the annotation spells them (``in_front_of``), by any spelling's official one.
SPELLED = {official(name): name for name in (*SPATIAL, *CONTACTING, *UNSAID)}


def _spelled(name: str) -> str:
    if (spelled := SPELLED.get(official(name))) is None:
        raise ValueError("not a relation of Action Genome")
    return spelled


Relation = Annotated[str, AfterValidator(_spelled)]
#: None for an object that is not visible.
Relations = Annotated[tuple[Relation, ...], BeforeValidator(lambda names: () if names is None else names)]


class AnnotatedObject(BaseModel):
    """An object of a frame; JSON lines list visible ones alone."""

    object_class: str = Field(alias="class", pattern=r"^\P{C}+$")
    visible: bool = True
    attention_relationship: Relations = ()
    spatial_relationship: Relations = ()
    contacting_relationship: Relations = ()

    @property
    def relations(self) -> tuple[tuple[str, ...], ...]:
        """In the order of `RELATIONS`."""
        return self.attention_relationship, self.spatial_relationship, self.contacting_relationship

    def captions(self) -> tuple[str, ...]:
        """Every caption that its relations give, in the annotation's order, contacting relations outermost.

        Relations that cannot be said (``unsure``, ``other_relationship``) give none; without one of each kind there is
        no caption.
        """
        noun = NOUNS.get(official(self.object_class)) or JOINT.sub(" ", self.object_class).strip().lower()
        touches, places = (
            [WORDS.get(name, name.replace("_", " ")) for name in dict.fromkeys(names) if name in sayable]
            for names, sayable in ((self.contacting_relationship, CONTACTING), (self.spatial_relationship, SPATIAL))
        )
        return tuple(f"The person is {touch} the {noun} which is {at} him/her." for touch in touches for at in places)


class View(NamedTuple):
    """One object in one annotated frame."""

    number: int
    frame: str
    seen: AnnotatedObject


class ActionGenome(FramePairSource):
    """Frames between which a person's relation to an object changes (EqBen, sections 4.1 and B.1).

    A frame's number is that of the official ffmpeg dump, from 1, and its picture is taken from the video.
    skip: annotated frames left out after a chosen one (the paper says 1 and 2).
    """

    kind: Literal["action-genome"]
    skip: int = Field(default=1, ge=0)
    licence: str = UNKNOWN

    reference = Reference(
        "Action Genome", "https://www.actiongenome.org", bibtex("ji2020actiongenome", "sigurdsson2016hollywood")
    )
    reasons = FramePairSource.reasons | LINE_REASONS | reasons_beside(__file__, "action-genome")

    version = 3
    addressing = "numbers"

    def plan(self) -> Iterator[FramePairCandidate]:
        """Pairs by video, object class and time, whatever the order of the file."""
        for (video, kind), numbered in sorted(self._views().items()):
            views = [numbered[number] for number in sorted(numbered)]
            # EqBen's sparse sampling: frames next to a chosen one are too much like it, and are skipped.
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
        relations = zip(first.seen.relations, second.seen.relations, strict=True)
        if sum(set(mine) != set(theirs) for mine, theirs in relations) < 2:
            return None  # EqBen's rule against near-identical pairs
        all0, all1 = first.seen.captions(), second.seen.captions()
        place = f"{self.annotations.name} {kind} of {first.frame} and {second.frame}"
        if not all0 or not all1:
            self.excluded.add("pair-unsayable", place)
            return None
        # A caption of its own leads, so that the first two differ as soon as one frame has one.
        captions0, captions1 = _own_first(all0, all1), _own_first(all1, all0)
        if captions0[0] in all1 and captions1[0] in all0:
            self.excluded.add("pair-said-alike", place)
            return None
        provenance = {"video": video, "object": kind}
        for side, view in enumerate((first, second)):
            provenance[f"frame{side}"] = view.frame
            for slot, names in zip(RELATIONS, view.seen.relations, strict=True):
                provenance[f"{slot}{side}"] = ",".join(names)
        identity, at = (video, kind, first.number, second.number), (float(first.number), float(second.number))
        return self.planned(identity, (captions0, captions1), at, "relation", provenance)

    def _views(self) -> Mapping[tuple[str, str], Mapping[int, View]]:
        """The visible objects of each video and class, by the numbers of their frames."""
        views = defaultdict[tuple[str, str], dict[int, View]](dict)
        for place, frame, objects in _frames(self.annotations):
            match = FRAME.fullmatch(frame) if isinstance(frame, str) else None
            if match is None or not isinstance(objects, list):
                self.excluded.add(frame.reason if isinstance(frame, Skipped) else "frame-malformed", place)
                continue
            if not is_media_name(frame):
                self.excluded.add("unsafe-path", place)
                continue
            video, number = match["video"], int(match["number"])
            for value in objects:
                try:
                    seen = AnnotatedObject.model_validate(value)
                except ValidationError:
                    self.excluded.add("object-malformed", place)
                    continue
                kind = official(seen.object_class)
                if seen.visible and number in views[video, kind]:
                    self.excluded.add("repeated-object", f"{place} {kind}")
                elif seen.visible:
                    views[video, kind][number] = View(number, frame, seen)
        return views


def _own_first(captions: tuple[str, ...], elsewhere: tuple[str, ...]) -> list[str]:
    """The captions with the first one that the other frame does not have in the lead, where there is one."""
    own = next((caption for caption in captions if caption not in elsewhere), captions[0])
    return sorted(captions, key=lambda caption: caption != own)


def _frames(path: Path) -> Iterator[tuple[str, Any, Any]]:
    """Place, name and objects of every annotated frame, as the file has them; `Skipped` for a line without JSON."""
    if path.suffix in (".pkl", ".pickle"):
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
