"""Changes that somebody asks for: triplets to train on, and galleries that neither image nor words alone can answer."""

import json
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TypeVar, cast

from twinset import Candidate, Frame
from twinset.contracts.canonical import canonical_json
from twinset.contracts.kinds.template import Template
from twinset.contracts.kinds.triplet import PARTS, Triplet
from twinset_demo.small_scenes.captions import PHRASINGS, caption, condition
from twinset_demo.small_scenes.changes import Request, request
from twinset_demo.small_scenes.generator import SceneGenerator
from twinset_demo.small_scenes.scenes import Scene, sample_scene, scene_of
from twinset_demo.small_scenes.source import SceneGalleries, SceneTriplets, SmallScenes

S = TypeVar("S", bound=SmallScenes)
#: Tasks by what changes.
ASKED = {"att": "scene-attribute", "obj": "scene-object", "rel": "scene-relation"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestCandidate(Candidate):
    """A change that is asked for. asked: of `ASKED`. scenes: roles and `Scene.recorded` as canonical JSON, in order."""

    asked: str
    condition: str
    scenes: str

    @property
    def counted_as(self) -> str:
        """As `Candidate.counted_as`."""
        return ASKED[self.asked]


class RequestGenerator(SceneGenerator[S]):
    """What triplets and galleries have: a kind of change after the other, distractors of two sorts."""

    candidate = RequestCandidate

    def plan(self) -> Iterator[RequestCandidate]:
        """Requests without end; how many are taken does not change the first ones."""
        for number in count():
            rng, asked = self._sampler(number), tuple(ASKED)[number % len(ASKED)]
            while (made := request(sample_scene(rng), asked, self._each, rng)) is None:
                pass
            yield RequestCandidate(
                **self._key(number),
                asked=asked,
                condition=condition(made.reference, made.change, str(rng.choice(PHRASINGS))),
                scenes=canonical_json([[k, v.recorded()] for k, v in self._scenes(made, number).items()]).decode(),
            )

    @property
    def _each(self) -> int:
        """Distractors of each sort."""
        return 1

    @abstractmethod
    def _scenes(self, made: Request, number: int) -> dict[str, Scene]:
        """By role: reference, target, distractors."""

    def _read(self, one: RequestCandidate) -> tuple[dict[str, Frame], dict[str, Scene]]:
        """All pictures and scenes of a candidate by role, each in a layout of its own."""
        scenes = {role: scene_of(recorded) for role, recorded in json.loads(one.scenes)}
        frames = {
            role: self._painted(one.key, role, scene, self._layout(one.key, role, scene))
            for role, scene in scenes.items()
        }
        return frames, scenes


class TripletGenerator(RequestGenerator[SceneTriplets]):
    """Triplets with a distractor, of one sort and the other in turn."""

    version = 2

    def _scenes(self, made: Request, number: int) -> dict[str, Scene]:
        # Kinds of changes take turns too, three of them: sorts change after each round.
        distractor = (made.unchanged, made.elsewhere)[number // len(ASKED) % 2][0]
        return {"reference": made.reference, "target": made.target, "distractor": distractor}

    def make(self, candidates: Sequence[Candidate]) -> Iterator[Triplet]:
        """A triplet each."""
        for one in cast(Sequence[RequestCandidate], candidates):
            frames, scenes = self._read(one)
            yield Triplet(
                key=one.key,
                group=one.group,
                split=one.split,
                condition=one.condition,
                reference=frames["reference"],
                target=frames["target"],
                distractor=frames["distractor"],
                captions={part: caption(scenes[part], PHRASINGS[0]) for part in PARTS},
                images={part: f"{one.key}/{part}" for part in PARTS},
                provenance={"task": ASKED[one.asked]},
            )


class GalleryGenerator(RequestGenerator[SceneGalleries]):
    """Templates: a target among distractors of both sorts."""

    version = 2

    @property
    def _each(self) -> int:
        return self.source.distractors

    def _scenes(self, made: Request, number: int) -> dict[str, Scene]:
        distractors = enumerate((*made.unchanged, *made.elsewhere))
        return {"reference": made.reference, "target": made.target, **{f"{n:02d}": one for n, one in distractors}}

    def make(self, candidates: Sequence[Candidate]) -> Iterator[Template]:
        """A template each."""
        for one in cast(Sequence[RequestCandidate], candidates):
            frames, scenes = self._read(one)
            reference, target, *gallery = frames.values()
            said = {role: caption(scene, PHRASINGS[0]) for role, scene in scenes.items()}
            yield Template(
                key=one.key,
                group=one.group,
                split=one.split,
                task=ASKED[one.asked],
                condition=one.condition,
                reference=reference,
                target=target,
                gallery=tuple(gallery),
                entry={
                    "condition": one.condition,
                    "reference": {"caption": said.pop("reference")},
                    "target": {"caption": said.pop("target")},
                    "gallery": [{"caption": text} for text in said.values()],
                },
                provenance={"of_each_sort": self.source.distractors},
            )
