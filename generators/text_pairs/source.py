"""The settings of text pairs, and what their card says."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from twinset.generators.media_sources import IMAGE_REASONS
from twinset.generators.negative_captions.replay import SUGARCREPE
from twinset.generators.papers import BIVLC
from twinset.manifests.locations import Location
from twinset.manifests.source import Place, StageName
from twinset.shards.contracts import Source
from twinset.shards.media.image_folder import ImageFolder
from twinset.shards.media.media_folder import Media


class TextPairs(Source):
    """An image, its caption and a negative caption, for each row of a table of negative captions.

    negatives: the stage of negative captions, or the folder of a finished one; scores that it has are taken along.
    images: folder of the captions' images, or of tars of them; only an index is made when absent.
    train: share of the images (0-1) whose pairs are in the split ``train``, by a hash of the recipe's seed and the
    image id; the others are in the split of the subset. Absent: all are. licence: of captions and images.
    """

    kind: Literal["text-pairs"]
    negatives: StageName
    images: Annotated[Location, Place("folder", "media")] | None = None
    train: float | None = Field(default=None, gt=0, lt=1)
    licence: str

    generator = "twinset.generators.text_pairs.generator:TextPairGenerator"
    makes = "text-pair"
    reference = SUGARCREPE
    paper = BIVLC
    group = "image"
    verb = "made of negative captions such as those of"
    reasons: ClassVar[Mapping[str, str]] = {**IMAGE_REASONS, "no-image": "rows that name no image"}

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
