"""The settings of GeneCIS's sources: triplets mined from captions, and the templates of its four tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field

from manifests.locations import Location, is_model_folder
from manifests.media_source import MediaSource
from manifests.settings import Settings


def _listed(value: Any) -> Any:
    """One location as a list of one."""
    return [value] if isinstance(value, str | Path) else value


class Triplets(Settings):
    """Reference, target and condition, mined from captions (GeneCIS, section 5.2).

    captions: files or folders of captions, or one folder of relations that `twinset parse` wrote. pipeline: spaCy's, by
    name or folder, that parses them. concreteness: file of ratings (Brysbaert et al. 2014, tab-separated).
    images: folder of the captions' images, or of tars of them; only an index of triplets is made when absent.
    rules: ``strict``, or ``published`` as the authors' code has it; what differs is said by the card. threshold: that
    the mean concreteness of a triplet must be above. min_images: images that a subject needs.
    distractors: whether an image that fits the condition, but not the reference, is stored too.
    licence: of captions and images, copied into every sample and the card.
    """

    kind: Literal["genecis-triplets"]
    captions: Annotated[tuple[Location, ...], BeforeValidator(_listed), Field(min_length=1)]
    pipeline: str = Field(default="en_captions_sm", min_length=1)
    concreteness: Location
    images: Location | None = None
    rules: Literal["strict", "published"] = "strict"
    threshold: float = Field(default=4.8, ge=-1, lt=5)
    min_images: int = Field(default=5, ge=2)
    distractors: bool = False
    licence: str

    #: What is named, by its folder or by its name.
    models: ClassVar[tuple[str, ...]] = ("pipeline",)
    execution: ClassVar[tuple[str, ...]] = ()
    drawn: ClassVar[bool] = False
    endless: ClassVar[bool] = True

    @property
    def locations(self) -> tuple[str, ...]:
        """As `manifests.media_source.MediaSource.locations`; whether there are images is part of what is made."""
        folder = ["pipeline"] if is_model_folder(self.pipeline) else []
        return ("captions", "concreteness", *folder, *(["images"] if self.images is not None else []))

    @property
    def places(self) -> tuple[str, ...]:
        """As `MediaSource.places`."""
        return self.locations

    @property
    def planned_from(self) -> str:
        """As `MediaSource.planned_from`."""
        return ", ".join(map(str, self.captions))

    @property
    def media_root(self) -> Path | None:
        """As `MediaSource.media_root`."""
        return self.images


class Templates(MediaSource):
    """A task of the benchmark (GeneCIS, sections 4 and A.1).

    task: whether the condition names what to focus on, or what changes. annotations: the dataset's annotation file.
    media: folder of its images. licence: of these, copied into every sample and the card.
    """

    task: Literal["focus", "change"]


class AttributeTemplates(Templates):
    """Focus on, or change, an attribute of an object: crops of Visual Genome images by VAW's annotations.

    taxonomy: JSON file of attribute types, each with its attributes. crops: how a box grows before it is cut out,
    ``corrected`` to all sides as the paper says, or ``published`` as the authors' code has it.
    """

    kind: Literal["genecis-attributes"]
    taxonomy: Location
    crops: Literal["corrected", "published"] = "corrected"
    licence: str = "VAW annotations, Adobe Research License, non-commercial; Visual Genome images, CC BY 4.0"

    locations: ClassVar[tuple[str, ...]] = ("annotations", "taxonomy", "media")


class ObjectTemplates(Templates):
    """Focus on, or change, an object of a scene: whole images of COCO by its panoptic annotations."""

    kind: Literal["genecis-objects"]
    licence: str = "COCO annotations, CC BY 4.0; images of Flickr, their owners' terms"


GeneCis = Triplets | AttributeTemplates | ObjectTemplates
