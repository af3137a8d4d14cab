"""The settings of GeneCIS's training triplets, and what their card says (GeneCIS, section 5.2)."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from twinset.contracts.errors import naming
from twinset.contracts.locations import Location
from twinset.contracts.references import Reference, bibtex, reasons_beside
from twinset.contracts.source import Need, Place, StageName
from twinset.generators.image_files import IMAGE_REASONS, SAME_IMAGE
from twinset.generators.papers import GENECIS
from twinset.generators.triplets.ratings import Balance, load_ratings
from twinset.models.device import check_installed
from twinset.shards.contracts import Source
from twinset.shards.media.media_folder import ImageFolder, Media

MINING = "mining.json"


class Triplets(Source):
    """Reference, target and condition, mined from the relations of captions.

    graphs: the stage of scene graphs that they are mined from, or the folder of a finished one. concreteness: file of
    ratings (Brysbaert et al. 2014, tab-separated).
    images: folder of the captions' images, or of tars of them; only an index of triplets is made when absent.
    rules: ``strict``, or ``published`` as the authors' code has it; the card says what differs. threshold: that
    the mean concreteness of a triplet must be above. min_images: images that a subject needs. min_support: strict:
    photos whose captions must relate a subject to an object, where no caption begins with the relation, and that must
    say of an object what a condition without a verb says. max_unsaid: strict: the largest share of references (0 to 1)
    that may show a target's object although their captions do not say so, as estimated from images of several captions;
    1 sets no limit, neither on this share nor on how often captions leave an object out. Where nothing can be
    estimated, a smaller one leaves out objects that are worn, and places for references that say none.
    max_uses: strict: how often one photo may be the reference, and how often the target, of 1,000 triplets in a row;
    the same two are not taken again. Where captions give no more, fewer triplets than the recipe's count are planned.
    balance: strict: ``images`` samples a subject the more often the more images it has, as in the paper; ``subjects``
    samples all of them evenly.
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
    min_support: int = Field(default=2, ge=1)
    max_unsaid: float = Field(default=0.03, ge=0, le=1)
    max_uses: int | None = Field(default=None, ge=1)
    balance: Balance = "images"
    distractors: bool = False
    licence: str = ""

    generator = "twinset.generators.triplets.generator:TripletGenerator"
    makes = "triplet"
    reference = Reference("captions", bibtex=bibtex("brysbaert2014concreteness"))
    paper = GENECIS
    group = "triplet"
    verb = "mined from"
    unbounded = True
    reports = (MINING,)
    card_template = Path(__file__).with_name("card.md.j2")
    reasons: ClassVar[Mapping[str, str]] = {
        **IMAGE_REASONS,
        **SAME_IMAGE,
        **reasons_beside(__file__, "genecis-triplets"),
    }

    scored: ClassVar[Mapping[str, str]] = {"concreteness": "mean of its words in the file of ratings (1-5)"}

    def media_files(self) -> Media | None:
        return ImageFolder(self.images) if self.images is not None else None

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        super().check_inputs(key, needs)
        if "annotations" in needs:
            check_installed(key, ("inflect",), "text")
            with naming(f"{key}.concreteness"):
                load_ratings(self.concreteness, "strict")
