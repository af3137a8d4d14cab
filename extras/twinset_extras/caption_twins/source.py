"""Settings of twins that are found: photographs whose captions differ in one word."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from twinset.contracts.errors import naming
from twinset.contracts.locations import Location
from twinset.contracts.references import Reference, bibtex, reasons_beside
from twinset.contracts.source import MediaFolderPath, Need, Place
from twinset.generators.captions.tables import CAPTION_REASONS
from twinset.generators.image_files import IMAGE_REASONS, SAME_IMAGE
from twinset.generators.scene_graphs.source import ConfirmedCaptions
from twinset.generators.triplets.ratings import load_ratings
from twinset.shards.media.media_folder import ImageFolder, Media


class CaptionTwins(ConfirmedCaptions):
    """Two photographs and a caption of each, which are the same but for one word or phrase of known kind.

    captions, pipeline, confirm: as `scene-graphs`; both pipelines must find the words in the same part of their
    captions. images: folder of the captions' images, or of tars of them; a plan needs none.
    concreteness: file of ratings (Brysbaert et al. 2014, tab-separated). threshold: that the ratings of both words
    reach, where they are objects, places or attributes.
    uses_of_image: pairs that a photograph is in, at most. uses_of_word: pairs that differ in a word, under any of its
    names, at most. uses_of_words: pairs that differ in the same two words, at most.
    licence: of captions and images.
    """

    kind: Literal["caption-twins"]
    images: MediaFolderPath
    concreteness: Annotated[Location, Place("file", "annotations")]
    threshold: float = Field(default=3, ge=1, lt=5)
    uses_of_image: int = Field(default=2, ge=1)
    uses_of_word: int = Field(default=500, ge=1)
    uses_of_words: int = Field(default=100, ge=1)
    licence: str = ""

    generator = "twinset_extras.caption_twins.generator:CaptionTwinGenerator"
    makes = "pair"
    reference = Reference("captions", bibtex=bibtex("brysbaert2014concreteness"))
    group = "photo set"
    verb = "found in"
    card_template = Path(__file__).with_name("card.md.j2")
    reasons: ClassVar[Mapping[str, str]] = {
        **CAPTION_REASONS,
        **IMAGE_REASONS,
        **SAME_IMAGE,
        **reasons_beside(__file__, "caption-twins"),
    }

    def media_files(self) -> Media:
        return ImageFolder(self.images)

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        super().check_inputs(key, needs)
        if "annotations" in needs:
            with naming(f"{key}.concreteness"):
                load_ratings(self.concreteness)
