"""Settings of the engine ``diffusion``: SDXL with the DPO UNet (BiVLC, section 3.2), or another model of its kind."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from twinset.contracts.errors import naming
from twinset.contracts.references import Reference, bibtex
from twinset.contracts.source import Need, Place
from twinset.models.device import OnDevice
from twinset.models.files import ModelMissing, brought_model
from twinset.models.image_engine import ImageEngineSettings


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

        with naming(f"{key}.model", ModelMissing):
            model_folder(self.model, other_unet)


SDXL = "stabilityai/stable-diffusion-xl-base-1.0"
DPO = "mhdang/dpo-sdxl-text2image-v1"

#: What the paper's images are drawn with (BiVLC, section 3.2, and its released script).
PUBLISHED: dict[str, Any] = {
    "model": SDXL,
    "unet": DPO,
    "steps": 50,
    "guidance": 5.0,
    "scheduler": "own",
    "resolution": 1024,
    "output_resolution": 512,
    "resampling": "bicubic",
}


class DiffusionImages(DiffusionModel, ImageEngineSettings):
    """Images drawn by a latent diffusion model: SDXL, Stable Diffusion, or a small one of their kind.

    model, resolution, steps, micro_batch: as `DiffusionModel`; device, threads: as `OnDevice`. unet: named like a
    model, a UNet that takes the place of the model's own. output_resolution: side of the image that is kept, the same
    when absent. resampling: the filter of Pillow that brings it there.
    guidance: scale of classifier-free guidance; at 1 or less there is none. scheduler: the
    sampler; ``own`` is the one that the model's folder names.
    cut: whether a prompt that is longer than the model reads is cut at its end, as the released script does; else it is
    rejected.
    precision: of UNet and text encoders; ``auto`` is float16 on a GPU and float32 on the CPU. compiled: whether the
    UNet's transformer blocks are compiled, on a GPU alone.
    licence: of what the model draws; must be given for a model not known here.
    """

    kind: Literal["diffusion"]
    unet: Annotated[str | None, Place("model", "models")] = Field(default=None, min_length=1)
    output_resolution: int | None = Field(default=None, ge=32, le=2048)
    resampling: Literal["bicubic", "lanczos", "box"] = "bicubic"
    guidance: float = Field(default=5.0, ge=0, le=50)
    scheduler: Literal["own", "euler", "ddim", "dpm-solver++", "pndm"] = "own"
    cut: bool = False
    precision: Literal["auto", "float32", "float16", "bfloat16"] = "auto"
    compiled: bool = False

    worker = "twinset.models.diffusion.painter:DiffusionPainter"
    of_model: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        SDXL: {"licence": "openrail++"},
    }
    title = "a latent diffusion model"
    reasons: ClassVar[Mapping[str, str]] = {
        "prompt-too-long": "the model does not read all of the prompt, and `cut` is off",
        "not-finite": "numbers of the network overflowed",
        "blank": "all pixels of the picture are equal",
    }

    @model_validator(mode="after")
    def _compiles_on_a_gpu(self) -> DiffusionImages:
        if self.compiled and self.device == "cpu":
            raise ValueError("compiled is for a GPU alone; set device to gpu, or leave it out")
        return self

    @property
    def reference(self) -> Reference:  # type: ignore[override]
        """The works of the networks that are known by name; else that of latent diffusion models."""
        known = [
            key
            for key, one in (("podell2024sdxl", self.model == SDXL), ("wallace2024diffusion", self.unet == DPO))
            if one
        ]
        return Reference("a latent diffusion model", bibtex=bibtex(*(known or ["rombach2022high"])))

    def notes(self) -> str:
        others = [
            f"{name} is {_said(getattr(self, name))}" for name in PUBLISHED if getattr(self, name) != PUBLISHED[name]
        ]
        if not others:
            return ""
        return (
            "* The images were not drawn with the paper's settings (SDXL base with the DPO UNet, 50 steps, guidance 5, "
            f"1024 pixels reduced to 512): {', '.join(others)}.\n"
        )

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        from twinset.models.diffusion.model_files import unet_folder
        from twinset.models.files import ModelMissing

        if "models" not in needs:
            return
        self.check_model(key, self.unet is not None)
        with naming(f"{key}.unet", ModelMissing):
            if self.unet is not None:
                unet_folder(self.unet)


def _said(value: Any) -> str:
    return "the model's own" if value is None else str(value)
