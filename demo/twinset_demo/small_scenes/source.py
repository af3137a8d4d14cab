"""Settings of small scenes: twins, captions with a negative, triplets and galleries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from twinset import Context, Reference, Source
from twinset.contracts.source import Pool
from twinset.generators.kubric_scenes.source import Kubric
from twinset.generators.papers import BIVLC, GENECIS

if TYPE_CHECKING:
    from twinset_demo.small_scenes.generator import CaptionGenerator, TwinGenerator
    from twinset_demo.small_scenes.requests import GalleryGenerator, TripletGenerator
    from twinset_demo.small_scenes.stills import StillGenerator


class SmallScenes(Source):
    """Painted scenes of two or three things with colours and relations.

    combinations: of relation and colours, ``seen`` in training or ``unseen`` by it (then the first scene of a pair has
    one that is held out). side: of the pictures, pixels.
    """

    combinations: Literal["seen", "unseen"] = "seen"
    side: int = Field(default=64, ge=32, le=512)
    licence: str = "CC0-1.0"

    reference = Reference("small scenes")
    group = "scene"
    verb = "painted from"
    unbounded = True
    synthetic = True

    def notes(self) -> str:
        """What no count tells of painted scenes."""
        return _NOTES


class SceneTwins(SmallScenes):
    """Pairs that differ in one thing, and share everything that their captions do not say."""

    kind: Literal["small-scene-twins"]

    paper = BIVLC

    def introduction(self) -> str:
        """As `SourceSettings.introduction`."""
        return (
            "Two painted scenes of the same two or three things that differ in one: swapped colours or kinds, "
            "another relation, another colour or kind. Each kind of change is equally frequent.\n"
        )

    def open(self, context: Context) -> TwinGenerator:
        """As `Source.open`."""
        from twinset_demo.small_scenes.generator import TwinGenerator

        return TwinGenerator(self, context)


class SceneStills(SmallScenes):
    """The same kinds of pairs, rendered: solids on a floor with light and shadow, seen from above.

    samples: at most so many rays a pixel. device: ``gpu`` takes OptiX or CUDA if Blender finds one. threads: of each
    renderer, 0 for all cores. attempts: layouts tried before a pair is rejected.
    """

    kind: Literal["small-scene-stills"]
    samples: int = Field(default=16, ge=1, le=4096)
    denoise: bool = True
    device: Literal["cpu", "gpu"] = "cpu"
    threads: int = Field(default=1, ge=0)
    attempts: int = Field(default=8, ge=1, le=100)

    paper = BIVLC
    reference = Kubric.reference
    verb = "rendered with"
    execution = ("device", "threads")
    reasons: ClassVar[Mapping[str, str]] = {
        "too-small": "a thing takes too little of the picture",
        "cut-off": "the border of the picture cuts a thing",
        "wrong-relation": "as the viewer sees it, a relation is not true",
    }

    @property
    def pool(self) -> Pool:
        """As `SourceSettings.pool`."""
        return "render"

    def introduction(self) -> str:
        """As `SourceSettings.introduction`."""
        return (
            "Two rendered scenes of the same two or three things, cut out of a board and seen from above, that differ "
            "in one: swapped colours or kinds, another relation, another colour or kind.\n"
        )

    def open(self, context: Context) -> StillGenerator:
        """As `Source.open`."""
        from twinset_demo.small_scenes.stills import StillGenerator

        return StillGenerator(self, context)


class SceneCaptions(SmallScenes):
    """Single scenes with a caption, and a negative caption that is wrong in one thing."""

    kind: Literal["small-scene-captions"]

    makes = "text-pair"

    def introduction(self) -> str:
        """As `SourceSettings.introduction`."""
        return "Painted scenes of two or three things, each with a caption and one that is wrong in one thing.\n"

    def open(self, context: Context) -> CaptionGenerator:
        """As `Source.open`."""
        from twinset_demo.small_scenes.generator import CaptionGenerator

        return CaptionGenerator(self, context)


class SceneTriplets(SmallScenes):
    """A scene, a change that is asked for, the scene after it, and one that is not what was asked for."""

    kind: Literal["small-scene-triplets"]
    combinations: Literal["seen"] = "seen"

    makes = "triplet"
    paper = GENECIS

    def how_made(self, reports: Mapping[str, Any]) -> str:
        """As `SourceSettings.how_made`."""
        return _REQUESTS.format(each="The distractor is, in turn,")

    def open(self, context: Context) -> TripletGenerator:
        """As `Source.open`."""
        from twinset_demo.small_scenes.requests import TripletGenerator

        return TripletGenerator(self, context)


class SceneGalleries(SmallScenes):
    """The same questions over a gallery: neither the image nor the words alone can answer them.

    distractors: of each of the two sorts.
    """

    kind: Literal["small-scene-galleries"]
    combinations: Literal["seen"] = "seen"
    distractors: int = Field(default=3, ge=1, le=4)

    makes = "template"
    paper = GENECIS

    def introduction(self) -> str:
        """As `SourceSettings.introduction`."""
        return "Which image of the gallery shows the reference's scene after the change that the condition asks for?\n"

    def how_made(self, reports: Mapping[str, Any]) -> str:
        """As `SourceSettings.how_made`."""
        return _REQUESTS.format(each=f"{self.distractors} distractors each are")

    def open(self, context: Context) -> GalleryGenerator:
        """As `Source.open`."""
        from twinset_demo.small_scenes.requests import GalleryGenerator

        return GalleryGenerator(self, context)


_NOTES = """\
* Flat things of one flat colour on pale grounds, never hidden or cut off: what is hard here is which colour goes with
  which thing and which thing stands where, not seeing them.
* Left and right are the viewer's; above and below are up and down in the picture.
* All things of a scene differ in colour and in kind.
* Captions come in two word orders and from either thing; both captions of a pair have the same one.
"""
_REQUESTS = """\
Reference and target are painted anew, in other places and sizes and on another ground. {each} the reference's scene
without the change, or after another one, and the target after one more change, of which the condition is still true.
So an image alone cannot tell the target from the first sort, nor the condition alone from the second.
"""
