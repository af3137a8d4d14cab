"""Settings of images of negative captions (BiVLC, section 3.2; TROHN-Img, section 5.1)."""

from typing import Any, Literal

from pydantic import Field, TypeAdapter, ValidationError, field_validator, model_validator

from twinset.generators.negative_captions.prompts import SUFFIX
from twinset.generators.papers import BIVLC
from twinset.manifests.source import Reference, StageName
from twinset.models.engines import EngineSource
from twinset.models.image_engine import ImageEngine, ImageEngineSettings

NEGATIVE: Literal["negative_caption"] = "negative_caption"
_ENGINE: TypeAdapter[ImageEngineSettings] = TypeAdapter(ImageEngine)


class NegativeImages(EngineSource):
    """An image of each negative caption, for which that caption is right and the original one is wrong.

    negatives: the stage of negative captions with their prompts, or the folder of a finished one. engine: what draws.
    images_per_caption: how many images of each negative; 4 for BiVLC, of which people choose, 1 for TROHN-Img.
    sides: which captions are drawn. With ``caption`` one image of the original caption too, from the seed of the first
    image of the negative one: for captions without a photo. suffix: of the prompts of original captions.
    licence: of the images; the engine's unless the recipe says otherwise.
    """

    kind: Literal["negative-images"]
    negatives: StageName
    engine: ImageEngine
    images_per_caption: int = Field(default=1, ge=1, le=64)
    sides: tuple[Literal["caption", "negative_caption"], ...] = Field(default=(NEGATIVE,), min_length=1)
    suffix: str = SUFFIX

    generator = "twinset.generators.negative_images.generator:NegativeImageGenerator"
    makes = "text-pair"
    reference = Reference("negative captions")
    paper = BIVLC
    group = "negative caption"
    verb = "drawn from"

    @field_validator("sides")
    @classmethod
    def _once(cls, sides: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(sides)) < len(sides):
            raise ValueError("name each side once")
        return sides

    @model_validator(mode="before")
    @classmethod
    def _licence_of_the_engine(cls, given: Any) -> Any:
        if not isinstance(given, dict) or "licence" in given or "engine" not in given:
            return given
        try:
            return {**given, "licence": _ENGINE.validate_python(given["engine"]).licence}
        except ValidationError:
            return {**given, "licence": ""}  # what is wrong with the engine is said when it is checked itself

    def introduction(self) -> str:
        """As `SourceSettings.introduction`."""
        both = " or its original" if "caption" in self.sides else ""
        return (
            f"Each image was drawn from a negative caption{both}. `caption` is the one that it was drawn from, "
            f"`negative_caption` the other. The engine is {self.engine.title}.\n"
        )

    def notes(self) -> str:
        """As `SourceSettings.notes`."""
        return _NOTES + self.engine.notes()

    @property
    def citations(self) -> str:
        """As `SourceSettings.citations`; also the engine's."""
        return "\n\n".join(filter(None, (super().citations, self.engine.reference.bibtex)))


_NOTES = """\
* Nothing has checked that an image shows what its caption says. In BiVLC people found a fitting one among four for
  5,382 of 7,512 captions, and 2,933 of these instances were unambiguous.
"""
