"""Settings of the engine ``diffusion``: SDXL with the DPO UNet (BiVLC, section 3.2), or another model of its kind."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from generators.text_to_image.engine import ImageEngineSettings
from manifests.errors import WrongUse
from manifests.locations import SMALL, model_name
from manifests.source import Need, Place, Reference
from shards.models.on_device import OnDevice

if TYPE_CHECKING:
    from generators.text_to_image.diffusion.painter import DiffusionPainter

SDXL = "stabilityai/stable-diffusion-xl-base-1.0"
DPO = "mhdang/dpo-sdxl-text2image-v1"

#: What goes with the model where the recipe does not say.
OF_MODEL: dict[str, dict[str, Any]] = {
    SMALL: {
        "scheduler": "dpm-solver++",
        "steps": 20,
        "guidance": 3.0,
        "licence": "CC0-1.0 (drawn by the model of twinset)",
    },
    SDXL: {
        "licence": "CreativeML Open RAIL++-M: no rights are claimed in what is drawn, restrictions of use go with it",
    },
}
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


class DiffusionImages(OnDevice, ImageEngineSettings):
    """Images drawn by a latent diffusion model: SDXL, Stable Diffusion, or a small one of their kind.

    model: ``small`` (comes with twinset), an id of the Hugging Face hub whose files are in the local cache, or a folder
    in diffusers' layout. unet: likewise a UNet that takes the place of the model's own.
    resolution: side of an image as it is drawn, in pixels; what the UNet was trained at when absent. output_resolution:
    side of the image that is kept, the same when absent. resampling: the filter of Pillow that brings it there.
    steps: of denoising. guidance: scale of classifier-free guidance; at 1 or less there is none. scheduler: the
    sampler; ``own`` is the one that the model's folder names.
    cut: whether a prompt that is longer than the model reads is cut at its end, as the released script does; else it is
    rejected.
    precision: of UNet and text encoders; ``auto`` is float16 on a GPU and float32 on the CPU. compiled: whether the
    UNet's transformer blocks are compiled, on a GPU alone.
    device, threads: as `OnDevice`. micro_batch: images that are drawn at a time; halved for a shard when memory runs
    out. licence: of what the model draws; must be given for a model not known here.
    """

    kind: Literal["diffusion"]
    model: Annotated[str, Place("model", "models")] = Field(default=SMALL, min_length=1)
    unet: Annotated[str | None, Place("model", "models")] = Field(default=None, min_length=1)
    resolution: int | None = Field(default=None, ge=32, le=2048, multiple_of=8)
    output_resolution: int | None = Field(default=None, ge=32, le=2048)
    resampling: Literal["bicubic", "lanczos", "box"] = "bicubic"
    steps: int = Field(default=50, ge=1, le=1000)
    guidance: float = Field(default=5.0, ge=0, le=50)
    scheduler: Literal["own", "euler", "ddim", "dpm-solver++", "pndm"] = "own"
    cut: bool = False
    precision: Literal["auto", "float32", "float16", "bfloat16"] = "auto"
    compiled: bool = False
    micro_batch: int = Field(default=4, ge=1, le=1024)

    execution = (*OnDevice.execution, "micro_batch")
    title = "a latent diffusion model"
    reference = Reference(
        "SDXL with Diffusion-DPO",
        "https://arxiv.org/abs/2311.12908",
        """@inproceedings{podell2024sdxl,
  title     = {{SDXL}: Improving Latent Diffusion Models for High-Resolution Image Synthesis},
  author    = {Podell, Dustin and English, Zion and Lacey, Kyle and Blattmann, Andreas and Dockhorn, Tim and
               M{\\"u}ller, Jonas and Penna, Joe and Rombach, Robin},
  booktitle = {ICLR},
  year      = {2024}
}

@inproceedings{wallace2024diffusion,
  title     = {Diffusion Model Alignment Using Direct Preference Optimization},
  author    = {Wallace, Bram and Dang, Meihua and Rafailov, Rafael and Zhou, Linqi and Lou, Aaron and
               Purushwalkam, Senthil and Ermon, Stefano and Xiong, Caiming and Joty, Shafiq and Naik, Nikhil},
  booktitle = {CVPR},
  year      = {2024}
}""",
    )
    reasons: ClassVar[Mapping[str, str]] = {
        "prompt-too-long": "the model does not read all of the prompt, and `cut` is off",
        "not-finite": "numbers of the network overflowed",
        "blank": "all pixels of the picture are equal",
    }

    @model_validator(mode="before")
    @classmethod
    def _as_goes_with_the_model(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        model = given.get("model", SMALL)
        return {**(OF_MODEL.get(model, {}) if isinstance(model, str) else {}), **given}

    @model_validator(mode="after")
    def _compiles_on_a_gpu(self) -> DiffusionImages:
        if self.compiled and self.device == "cpu":
            raise ValueError("compiled is for a GPU alone; set device to gpu, or leave it out")
        return self

    def notes(self) -> str:
        """As `ImageEngineSettings.notes`: what is not as in the paper."""
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
        """As `ImageEngineSettings.check_inputs`: the files of the model."""
        from generators.text_to_image.diffusion.model_files import model_folder, unet_folder
        from shards.models.files import ModelMissing

        if "models" not in needs:
            return
        try:
            model_folder(model_name(self.model), self.unet is not None)
        except ModelMissing as error:
            raise WrongUse(f"{key}.model: {error}") from error
        try:
            if self.unet is not None:
                unet_folder(self.unet)
        except ModelMissing as error:
            raise WrongUse(f"{key}.unet: {error}") from error

    def open(self) -> DiffusionPainter:
        """As `ImageEngineSettings.open`."""
        from generators.text_to_image.diffusion.painter import DiffusionPainter

        return DiffusionPainter(self)


def _said(value: Any) -> str:
    return "the model's own" if value is None else str(value)
