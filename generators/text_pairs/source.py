"""The settings of text pairs, and what their card says."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator

from twinset.generators.caption_scores.scorers.scorer import bringing, scorer_of
from twinset.generators.media_sources import IMAGE_REASONS
from twinset.generators.negative_captions.replay import SUGARCREPE
from twinset.generators.papers import BIVLC
from twinset.manifests.doors import UnknownKind
from twinset.manifests.locations import Location
from twinset.manifests.source import Place, SourceSettings, StageName
from twinset.shards.contracts import Source
from twinset.shards.media.image_folder import ImageFolder
from twinset.shards.media.media_folder import Media


class TextPairs(Source):
    """An image, its caption and a negative caption, for each row of a table of negative captions.

    negatives: the stage of negative captions, or the folder of a finished one; twinset's own scores are taken along.
    scores: those of other packages' caption scorers to take along.
    images: folder of the captions' images, or of tars of them; only an index is made when absent.
    train: share of the images (0-1) whose pairs are in the split ``train``, by a hash of the recipe's seed and the
    image id; the others are in the split of the subset. Absent: all are. licence: of captions and images.
    """

    kind: Literal["text-pairs"]
    negatives: StageName
    scores: tuple[str, ...] = ()
    images: Annotated[Location, Place("folder", "media")] | None = None
    train: float | None = Field(default=None, gt=0, lt=1)
    licence: str

    added = ("scores",)
    generator = "twinset.generators.text_pairs.generator:TextPairGenerator"
    makes = "text-pair"
    reference = SUGARCREPE
    paper = BIVLC
    group = "image"
    verb = "made of negative captions such as those of"
    reasons: ClassVar[Mapping[str, str]] = {**IMAGE_REASONS, "no-image": "rows that name no image"}

    @field_validator("scores")
    @classmethod
    def _known(cls, scores: tuple[str, ...]) -> tuple[str, ...]:
        for score in scores:
            try:
                scorer_of(score)
            except UnknownKind as error:
                raise ValueError(str(error)) from error
        return scores

    @property
    def brought(self) -> dict[str, str]:
        """As `PlacedSettings.brought`: also packages whose scorers are named."""
        return bringing(self.scores, "scores")

    def misfit(self, earlier: SourceSettings) -> str:
        """As `SourceSettings.misfit`: a score that no scorer of that stage gives."""
        given = earlier.scores_given
        lacking = [score for score in self.scores if given is not None and score not in given]
        return f"source.scores: {self.negatives} has no {lacking[0]}; name its scorer there" if lacking else ""

    def how_made(self, reports: Mapping[str, Any]) -> str:
        """As `SourceSettings.how_made`."""
        made = (
            "Each row of the table of negative captions is a pair: the caption, the negative caption that was made of "
            "it, and the image that the row names. Pairs of one image stand together.\n"
        )
        if self.train is None:
            return made
        return (
            f"{made}\nSplit by image: of {self.train:.0%} of the images all pairs are in `train`, by a hash of "
            "the image id. TROHN's published split is by caption, so that one image can be in both of its parts.\n"
        )

    def notes(self) -> str:
        """As `SourceSettings.notes`."""
        return (
            "* Nobody has compared the captions with the images: a negative caption can be true of its image, above "
            "all one that adds something.\n"
        )

    def media_files(self) -> Media | None:
        """As `Source.media_files`."""
        return ImageFolder(self.images) if self.images is not None else None
