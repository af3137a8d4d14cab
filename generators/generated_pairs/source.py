"""The settings of pairs of a photo and a generated image, and what their card says (BiVLC, section 3)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from twinset.contracts.locations import Location
from twinset.contracts.references import reasons_beside
from twinset.contracts.source import Place, StageName
from twinset.generators.annotation_files import OptionalFiles
from twinset.generators.captions.training_split import TrainShare
from twinset.generators.image_files import IMAGE_REASONS, SAME_IMAGE
from twinset.generators.papers import BIVLC
from twinset.shards.contracts import Source
from twinset.shards.media.media_folder import ImageFolder, Media


class GeneratedPairs(Source):
    """An image with its caption, and another that was generated from the negative caption.

    negatives: the stage of negative captions, whose rows name the photos. images: the stage of images that were
    generated from it. verified: the stage that scored these images. choice: who takes the image of a caption: the
    ``score`` (if ``verified`` is named, so by default), nobody (the ``first`` is taken, otherwise the default), or
    ``people``. decisions: what people decided, which ``choice: people`` needs: a stage ``image-ambiguity``, or
    ``image-choice`` where ambiguous images shall stay.
    photos: folder of the photos, of folders of them, or of tars. Without it the other image is generated too: the stage
    of images must then draw both sides (``sides: [caption, negative_caption]``).
    ambiguous: of the images that a score chose one is left out that shows the original caption too, with at least this
    score (0-1); null keeps all. compared: leave out as well what fits the original caption at least as well as its own.
    train: share of the photos (0-1) whose pairs are in the split ``train`` (TROHN-Img: 0.8), by a hash of the recipe's
    seed and the image id; the others are in the split of the subset. Absent: all are. held_out: files of captions whose
    images are never in ``train``, such as those of COCO's test; those that they name as trained on may be.
    licence: of the photos and captions.
    """

    kind: Literal["generated-pairs"]
    negatives: StageName
    images: StageName
    verified: StageName | None = None
    choice: Literal["score", "first", "people"] | None = None
    decisions: StageName | None = None
    photos: Annotated[Location, Place("folder", "media")] | None = None
    ambiguous: float | None = Field(default=1.0, gt=0, le=1)
    compared: bool = True
    train: TrainShare | None = None
    held_out: OptionalFiles = ()
    licence: str = ""

    generator = "twinset.generators.generated_pairs.generator:GeneratedPairGenerator"
    makes = "pair"
    paper = BIVLC
    group = "image"
    verb = "made from"
    reasons: ClassVar[Mapping[str, str]] = {
        **IMAGE_REASONS,
        **SAME_IMAGE,
        **reasons_beside(__file__, "generated-pairs"),
    }
    scored: ClassVar[Mapping[str, str]] = {
        "verification": "share of the questions on caption 1 that its image answers rightly (0-1)",
        "verification_original": "the same of the original caption, asked of that image (0-1)",
    }
    card_template = Path(__file__).with_name("card.md.j2")

    @property
    def chosen_by(self) -> Literal["score", "first", "people"]:
        """Who takes the image of a caption."""
        return self.choice or ("first" if self.verified is None else "score")

    @property
    def reads(self) -> tuple[str, ...]:
        scores = None if self.chosen_by == "first" else self.verified
        decisions = self.decisions if self.chosen_by == "people" else None
        return tuple(one for one in (self.negatives, self.images, scores, decisions) if one is not None)

    @model_validator(mode="after")
    def _has_what_chooses(self) -> GeneratedPairs:
        if self.choice == "people" and self.decisions is None:
            raise ValueError("people's choice is read from a stage of decisions; name it with decisions")
        if self.choice == "score" and self.verified is None:
            raise ValueError("a score chooses from the scores of a stage; name it with verified")
        if self.verified is None and (self.ambiguous, self.compared) != (1.0, True):
            raise ValueError("ambiguous and compared need the scores of a stage; name it with verified")
        return self

    def media_files(self) -> Media | None:
        return None if self.photos is None else ImageFolder(self.photos)
