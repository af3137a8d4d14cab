"""The settings of GeneCIS's training triplets, and what their card says (GeneCIS, section 5.2)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from generators.media_sources import IMAGE_REASONS, SAME_IMAGE
from generators.papers import GENECIS
from generators.scene_graphs.source import SceneGraphs
from generators.triplets.mining_notes import mining_notes
from manifests.errors import WrongUse
from manifests.locations import Location
from manifests.source import Need, Place, Reference, StageName
from shards.contracts import Context, Source
from shards.media.image_folder import ImageFolder
from shards.media.media_folder import Media

if TYPE_CHECKING:
    from generators.triplets.generator import TripletGenerator

MINING = "mining.json"


class Triplets(Source):
    """Reference, target and condition, mined from the relations of captions.

    graphs: the stage of scene graphs that they are mined from, or the folder of a finished one. concreteness: file of
    ratings (Brysbaert et al. 2014, tab-separated).
    images: folder of the captions' images, or of tars of them; only an index of triplets is made when absent.
    rules: ``strict``, or ``published`` as the authors' code has it; the card says what differs. threshold: that
    the mean concreteness of a triplet must be above. min_images: images that a subject needs.
    distractors: whether an image that fits the condition, but not the reference, is stored too.
    licence: of captions and images, copied into every sample and the card.
    """

    kind: Literal["genecis-triplets"]
    graphs: StageName
    concreteness: Annotated[Location, Place("file", "annotations")]
    images: Annotated[Location, Place("folder", "media")] | None = None
    rules: Literal["strict", "published"] = "strict"
    threshold: float = Field(default=4.8, ge=-1, lt=5)
    min_images: int = Field(default=5, ge=2)
    distractors: bool = False
    licence: str

    makes = "triplet"
    reference = Reference(
        SceneGraphs.reference.title,
        SceneGraphs.reference.address,
        f"""{SceneGraphs.reference.bibtex}

@article{{brysbaert2014concreteness,
  title     = {{Concreteness ratings for 40 thousand generally known {{English}} word lemmas}},
  author    = {{Brysbaert, Marc and Warriner, Amy Beth and Kuperman, Victor}},
  journal   = {{Behavior Research Methods}},
  volume    = {{46}},
  number    = {{3}},
  pages     = {{904--911}},
  year      = {{2014}}
}}""",
    )
    paper = GENECIS
    group = "triplet"
    verb = "mined from"
    unbounded = True
    reports = (MINING,)
    reasons: ClassVar[Mapping[str, str]] = {
        **IMAGE_REASONS,
        **SAME_IMAGE,
        "no-triplet": "draws of which no try gave a triplet that the rules let pass",
    }

    def how_made(self, reports: Mapping[str, Any]) -> str:
        """As `SourceSettings.how_made`; counts of the mining where ``mining.json`` is at hand."""
        return mining_notes(self.rules, self.min_images, self.threshold, reports.get(MINING))

    def notes(self) -> str:
        """What no count tells of mined triplets."""
        return _NOTES

    @property
    def planned_from(self) -> str:
        """As `SourceSettings.planned_from`."""
        return self.graphs

    def media_files(self) -> Media | None:
        """As `Source.media_files`."""
        return ImageFolder(self.images) if self.images is not None else None

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        """As `Source.check_inputs`; also the form of the ratings, and whether what makes plurals is installed."""
        super().check_inputs(key, needs)
        if "annotations" in needs:
            from generators.triplets.ratings import load_ratings, with_plurals

            try:
                load_ratings(self.concreteness, "strict")
                with_plurals({})
            except WrongUse as error:
                raise WrongUse(f"{key}.concreteness: {error}") from error

    def open(self, context: Context) -> TripletGenerator:
        """As `Source.open`."""
        from generators.triplets.generator import TripletGenerator

        return TripletGenerator(self, context)


_NOTES = """\
* Nobody has looked at them. A relation is what a parser made of a caption, and it is wrong at times; a caption leaves
  out most of what an image shows, so that a reference can satisfy its condition unsaid, and other images than the
  target can be as right. Good for training; a benchmark needs people, or annotations of everything shown.
* Nearly all conditions ask for another object beside, in or on the same subject: a bias towards GeneCIS's task "Change
  an Object" (section 5.2).
"""
