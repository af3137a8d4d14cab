"""Settings of every source and engine that draws with a latent diffusion model."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field, model_validator

from twinset.manifests.errors import WrongUse
from twinset.manifests.source import Place
from twinset.models.device import OnDevice
from twinset.models.files import ModelMissing, brought_model


class DiffusionModel(OnDevice):
    """A base that stands before the others.

    model: a name that an installed package brings (`models.files.ModelFolder`), an id of the Hugging Face hub whose
    files are in the local cache, or a folder in diffusers' layout: one that is there, or a path that is absolute or
    begins with ``.`` or ``~``.
    resolution: side of an image as it is drawn, in pixels; what the UNet was trained at when absent. steps: of
    denoising. micro_batch: images, or pairs of them, that are drawn at a time; halved for a shard when memory runs out.

    of_model: what goes with a model of the hub, by its id, where the recipe does not say.
    """

    model: Annotated[str, Place("model", "models")] = Field(min_length=1)
    resolution: int | None = Field(default=None, ge=32, le=2048, multiple_of=8)
    steps: int = Field(default=50, ge=1, le=1000)
    micro_batch: int = Field(default=4, ge=1, le=1024)

    execution = (*OnDevice.execution, "micro_batch")
    of_model: ClassVar[Mapping[str, Mapping[str, Any]]]

    @model_validator(mode="before")
    @classmethod
    def _as_goes_with_the_model(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        model = str(given.get("model"))
        brought = brought_model(model)
        known = cls.of_model.get(model, {}) if brought is None else brought.defaults
        return {**{name: value for name, value in known.items() if name in cls.model_fields}, **given}

    def check_model(self, key: str, other_unet: bool = False) -> None:
        """Raise `WrongUse` where files of the model are absent.

        Args:
            key: of these settings in the recipe.
            other_unet: whether the model's own UNet is not used.
        """
        from twinset.models.diffusion.model_files import model_folder

        try:
            model_folder(self.model, other_unet)
        except ModelMissing as error:
            raise WrongUse(f"{key}.model: {error}") from error
