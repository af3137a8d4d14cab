"""Settings of the tables from which hard negatives are mined by image: EqBen C, and NegCLIP (section 4)."""

from collections.abc import Collection, Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from twinset.contracts.errors import naming
from twinset.contracts.references import Reference, reasons_beside
from twinset.contracts.source import Need, Place, StageName
from twinset.generators.papers import EQBEN
from twinset.models.device import OnDevice, check_installed
from twinset.models.encoders.image_towers import tower_files
from twinset.models.files import ModelMissing
from twinset.shards.contracts import Source


class ImageFeatures(OnDevice, Source):
    """Features with norm 1 of each image of a stage, a row an image, however many samples have it.

    images: the stage of samples, or the folder of a finished one. model: whose image tower encodes them: CLIP in the
    layout of transformers or of open_clip, BLIP, ViLT or FLAVA, as a folder, an id of the hub whose files are in the
    local cache, or a name that an installed package brings; or ``thumbnail``, no network but 16 × 16 pixels less their
    mean. device, threads: as `OnDevice`. micro_batch: images a pass. licence: of the images.
    """

    kind: Literal["image-features"]
    images: StageName
    model: Annotated[str, Place("model", "models")] = Field(min_length=1)
    micro_batch: int = Field(default=32, ge=1, le=1024)
    licence: str = ""

    generator = "twinset.generators.neighbours.features:FeatureGenerator"
    makes = "table"
    reference = Reference("image features")
    paper = EQBEN
    group = "image"
    verb = "encoded from"
    reasons: ClassVar[Mapping[str, str]] = reasons_beside(__file__, "image-features")
    execution = (*OnDevice.execution, "micro_batch")

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        super().check_inputs(key, needs)
        if "models" in needs:
            with naming(f"{key}.model", ModelMissing):
                tower_files(self.model)
            if "media" in needs:
                check_installed(key, ("torch",), self.extra)


class ImageNeighbours(OnDevice, Source):
    """The images most similar to each image, by the cosine of features; all their captions are its hard negatives.

    features: the stage of ``image-features``, or the folder of a finished one. neighbours: of an image, 128 in EqBen
    (C). device, threads: as `OnDevice`. licence: of the images.
    """

    kind: Literal["image-neighbours"]
    features: StageName
    neighbours: int = Field(default=128, ge=1, le=10_000)
    licence: str = ""

    generator = "twinset.generators.neighbours.nearest:NeighbourGenerator"
    makes = "table"
    paper = EQBEN
    group = "image"
    verb = "mined from"
