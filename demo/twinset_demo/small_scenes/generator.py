"""Plans small scenes and paints them. Scenes are sampled when planning, pixels from each sample's key."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import ClassVar, TypeVar, cast

import numpy as np

from twinset import Candidate, CaptionedCandidate, Frame, Generator, Pair, generator_for, identity_of, sample_key
from twinset.contracts.canonical import canonical_json, digest
from twinset.contracts.kinds.samples import MediaFile
from twinset.contracts.kinds.text_pair import TextPair
from twinset_demo.small_diffusion.painter import SILHOUETTES
from twinset_demo.small_diffusion.scenes import COLOURS
from twinset_demo.small_scenes import painter
from twinset_demo.small_scenes.captions import PHRASINGS, SHARES, caption, captions
from twinset_demo.small_scenes.changes import TWINS, twin
from twinset_demo.small_scenes.scenes import UNSEEN, Scene, sample_scene, scene_of
from twinset_demo.small_scenes.source import SceneCaptions, SceneTwins, SmallScenes

S = TypeVar("S", bound=SmallScenes)


class SceneGenerator(Generator[S]):
    """What all small scenes have: sampling without end, and painting."""

    libraries: ClassVar[tuple[str, ...]] = ("numpy", "opencv-python")

    def inputs(self) -> str:
        """Digest of the world: nothing else is read."""
        outlines = {name: [outline.tolist() for outline in some] for name, some in SILHOUETTES.items()}
        held_out = sorted([axis, *sorted(colours)] for axis, colours in UNSEEN)
        return digest({"colours": {k: list(v) for k, v in COLOURS.items()}, "outlines": outlines, "unseen": held_out})

    def _fits(self, scene: Scene, other: Scene) -> bool:
        """Whether a scene and its changed form are of the combinations that the settings ask for.

        Training sees neither of them where one is held out. Of pairs that it must not have seen the first is held out;
        another colour always leads to a combination that is not.
        """
        return scene.seen and other.seen if self.source.combinations == "seen" else scene.unseen

    def _sampled(self, rng: np.random.Generator, change: str) -> tuple[Scene, Scene, str]:
        """A scene, what a change makes of it, and a phrasing."""
        while True:
            scene = sample_scene(rng)
            other = twin(scene, change, rng)
            if self._fits(scene, other):
                return scene, other, str(rng.choice(PHRASINGS, p=SHARES))

    def _sampler(self, number: int) -> np.random.Generator:
        return generator_for(self.seed, self.name, f"scene {number}")

    def _key(self, number: int) -> dict[str, str]:
        """Key, identity, group and split of the n-th candidate."""
        return {
            "key": sample_key(self.name, number),
            "identity": identity_of(number),
            "group": f"scene-{number:06d}",
            "split": self.split,
        }

    def _painted(self, key: str, role: str, scene: Scene, layout: painter.Layout) -> Frame:
        return Frame(
            f"{key}#{role}",
            painter.paint(scene, layout, self.source.side),
            -1.0,
            MediaFile(f"painted/{key}/{role}", 0, ""),
        )

    def _layout(self, key: str, drawing: str, scene: Scene) -> painter.Layout:
        return painter.sample_layout(len(scene.things), generator_for(self.seed, self.name, f"{key} {drawing}"))


@dataclass(frozen=True, slots=True, kw_only=True)
class TwinCandidate(CaptionedCandidate):
    """Two scenes. change: of `changes.TWINS`. scene0, scene1: `Scene.recorded` as canonical JSON."""

    change: str
    scene0: str
    scene1: str

    @property
    def scenes(self) -> tuple[Scene, Scene]:
        """Of both sides."""
        return scene_of(json.loads(self.scene0)), scene_of(json.loads(self.scene1))

    @property
    def counted_as(self) -> str:
        """As `Candidate.counted_as`."""
        return self.change


class TwinPlanner(SceneGenerator[S]):
    """Plans pairs of scenes, a kind of change after the other."""

    candidate = TwinCandidate

    def plan(self) -> Iterator[TwinCandidate]:
        """Pairs without end; how many are taken does not change the first ones."""
        for number in count():
            change = tuple(TWINS)[number % len(TWINS)]
            first, second, phrasing = self._sampled(self._sampler(number), change)
            yield TwinCandidate(
                **self._key(number),
                captions0=captions(first, phrasing),
                captions1=captions(second, phrasing),
                change=change,
                scene0=scene_json(first),
                scene1=scene_json(second),
            )

    def _pair(self, one: TwinCandidate, scenes: Sequence[Scene], frames: Sequence[Frame]) -> Pair:
        type_, subtype = TWINS[one.change]
        said = {f"{name}{n}": word for n, scene in enumerate(scenes) for name, word in scene.recorded().items()}
        return Pair(
            key=one.key,
            group=one.group,
            split=one.split,
            change=one.change,
            image0=frames[0],
            image1=frames[1],
            captions0=one.captions0,
            captions1=one.captions1,
            provenance={"type": type_, "subtype": subtype, **said},
        )


class TwinGenerator(TwinPlanner[SceneTwins]):
    """Painted pairs."""

    version = 2

    def make(self, candidates: Sequence[Candidate]) -> Iterator[Pair]:
        """A pair each; both pictures have the same layout and ground."""
        for one in cast(Sequence[TwinCandidate], candidates):
            scenes = one.scenes
            layout = self._layout(one.key, "both", scenes[0])
            roles = zip("01", scenes, strict=True)
            yield self._pair(one, scenes, [self._painted(one.key, role, scene, layout) for role, scene in roles])


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptionCandidate(Candidate):
    """A scene and its two captions. change: what is wrong in the negative one, of `changes.TWINS`."""

    caption: str
    negative_caption: str
    change: str
    scene: str

    @property
    def counted_as(self) -> str:
        """As `Candidate.counted_as`."""
        return self.change


class CaptionGenerator(SceneGenerator[SceneCaptions]):
    """Single scenes with two captions."""

    version = 2
    candidate = CaptionCandidate

    def plan(self) -> Iterator[CaptionCandidate]:
        """Scenes without end; how many are taken does not change the first ones."""
        for number in count():
            rng, change = self._sampler(number), tuple(TWINS)[number % len(TWINS)]
            scene, other, phrasing = self._sampled(rng, change)
            yield CaptionCandidate(
                **self._key(number),
                caption=caption(scene, phrasing),
                negative_caption=caption(other, phrasing),
                change=change,
                scene=scene_json(scene),
            )

    def make(self, candidates: Sequence[Candidate]) -> Iterator[TextPair]:
        """A picture each."""
        for one in cast(Sequence[CaptionCandidate], candidates):
            scene = scene_of(json.loads(one.scene))
            type_, subtype = TWINS[one.change]
            yield TextPair(
                key=one.key,
                group=one.group,
                split=one.split,
                image=self._painted(one.key, "image", scene, self._layout(one.key, "image", scene)),
                caption=one.caption,
                negative_caption=one.negative_caption,
                type=type_,
                subtype=subtype,
                image_id=one.key,
                provenance=dict(scene.recorded()),
            )


def scene_json(scene: Scene) -> str:
    """`Scene.recorded` as canonical JSON."""
    return canonical_json(scene.recorded()).decode()
