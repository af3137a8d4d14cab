"""Settings of what draws with diffusers, and the engine ``diffusers``: SDXL-DPO (BiVLC, section 3.2), FLUX and more."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from twinset.contracts.errors import WrongUse, naming
from twinset.contracts.locations import is_model_folder
from twinset.contracts.references import Reference, bibtex
from twinset.contracts.source import Need, Place
from twinset.models.device import OnDevice, check_installed
from twinset.models.diffusion.folder import LIBRARIES, PipelineFolder, find_pipeline, unet_folder
from twinset.models.files import brought_model
from twinset.models.image_engine import ImageEngineSettings

SDXL = "stabilityai/stable-diffusion-xl-base-1.0"
DPO = "mhdang/dpo-sdxl-text2image-v1"
CITED = {SDXL: "podell2024sdxl", DPO: "wallace2024diffusion"}


class DiffusionModel(OnDevice):
    """A base that stands before the others.

    model: a name that an installed package brings (`models.files.ModelFolder`), an id of the Hugging Face hub whose
    files are in the local cache, or a folder in diffusers' layout. Its class and those of its parts are of an
    allow-list (`models.diffusion.classes`).
    unet: named like a model, a UNet that takes the place of the model's own, such as Diffusion-DPO's. scheduler: the
    sampler, of models with a UNet; ``own`` is the one that the model's folder names.
    resolution: side of a picture in pixels; what the model was trained at when absent. steps: of denoising; what
    diffusers takes for the class when absent. guidance: scale of guidance; likewise.
    precision: of all parts; ``auto`` is float32 on the CPU, and on a GPU float16 for models with a UNet, else bfloat16.
    """

    model: Annotated[str, Place("model", "models")] = Field(min_length=1)
    unet: Annotated[str | None, Place("model", "models")] = Field(default=None, min_length=1)
    scheduler: Literal["own", "euler", "ddim", "dpm-solver++"] = "own"
    resolution: int | None = Field(default=None, ge=32, le=4096, multiple_of=32)
    steps: int | None = Field(default=None, ge=1, le=1000)
    guidance: float | None = Field(default=None, ge=0, le=100)
    precision: Literal["auto", "float32", "float16", "bfloat16"] = "auto"

    editing: ClassVar[bool] = False

    @model_validator(mode="before")
    @classmethod
    def _as_goes_with_the_model(cls, given: Any) -> Any:
        brought = brought_model(str(given.get("model"))) if isinstance(given, dict) else None
        if brought is None:
            return given
        return {**{name: value for name, value in brought.defaults.items() if name in cls.model_fields}, **given}

    def found(self) -> PipelineFolder:
        """The model's folder; raises as `models.diffusion.folder.find_pipeline`."""
        folder = find_pipeline(self.model, self.editing, self.unet)
        if self.scheduler != "own" and "unet" not in folder.classes:
            raise WrongUse(f"{self.model}: its noise schedule is not a UNet's; leave scheduler out")
        return folder

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        if "models" in needs:
            if self.unet is not None:
                with naming(f"{key}.unet"):
                    unet_folder(self.unet)
            with naming(f"{key}.model"):
                self.found()
        if "media" in needs:
            check_installed(key, LIBRARIES, self.extra)

    @property
    def names(self) -> dict[str, str]:
        """The model and its UNet for provenance and cards: where a folder lies is no part of what is made."""
        named = {"model": self.model, "unet": self.unet or ""}
        return {part: "a folder" if is_model_folder(name) else name for part, name in named.items()}


class PipelineSettings(DiffusionModel):
    """A base of engines that draw or edit; it stands before the others.

    model, unet, scheduler, resolution, steps, guidance, precision: as `DiffusionModel`.
    cut: whether a prompt that is longer than the model reads is cut at its end; else it is rejected.
    fused: whether attention projects queries, keys and values in one multiplication. compiled: whether torch compiles
    the denoiser's blocks, which takes a minute. attention: diffusers' back end of a transformer's attention; all but
    ``native`` need a package of their own. Each changes last bits.
    """

    cut: bool = False
    fused: bool = False
    compiled: bool = False
    attention: Literal["native", "_native_cudnn", "flash", "_flash_3", "sage", "xformers"] = "native"

    reasons: ClassVar[Mapping[str, str]] = {
        "prompt-too-long": "the model does not read all of the prompt, and `cut` is off",
        "special-token": "the prompt holds a mark of the model's own, such as one for the end of a text",
        "not-finite": "numbers of the network overflowed",
        "blank": "all pixels of the picture are equal",
    }

    def notes(self) -> str:
        model, unet = self.names.values()
        named = {name: getattr(self, name) for name in ("scheduler", "resolution", "steps", "guidance")}
        given = [f"{name} {value}" for name, value in named.items() if value not in (None, "own")]
        return (
            f"* Model: {model}{f' with the UNet of {unet}' if unet else ''}, by diffusers' pipeline of its class, with "
            f"{', '.join(given) or 'no setting of its own'}.\n"
        )


class DiffusersImages(PipelineSettings, ImageEngineSettings):
    """Pictures drawn by a text-to-image pipeline of diffusers, such as SDXL, FLUX or Qwen-Image.

    The picture of a seed is the one that the pipeline draws with ``torch.Generator("cpu").manual_seed(seed)``.

    model, unet, scheduler, resolution, steps, guidance, precision: as `DiffusionModel`; cut, fused, compiled,
    attention: as `PipelineSettings`; device, threads: as `OnDevice`.
    output_resolution: side of the picture that is kept, the same when absent. resampling: the filter of Pillow that
    brings it there.
    micro_batch: pictures that are drawn at a time, of models that pad captions to the longest (Qwen-Image, Z-Image)
    pictures of one caption; halved for a shard when memory runs out.
    licence: of what the model draws.
    """

    kind: Literal["diffusers"]
    output_resolution: int | None = Field(default=None, ge=32, le=4096)
    resampling: Literal["bicubic", "lanczos", "box"] = "bicubic"
    micro_batch: int = Field(default=1, ge=1, le=1024)

    execution = (*OnDevice.execution, "micro_batch")
    worker = "twinset.models.diffusion.painter:PipelinePainter"
    title = "a text-to-image model of diffusers"
    reasons = PipelineSettings.reasons

    @property
    def reference(self) -> Reference:  # type: ignore[override]
        """The works of the networks that are known by name; else that of latent diffusion models."""
        known = [CITED[name] for name in (self.model, self.unet) if name in CITED]
        return Reference("a text-to-image model", bibtex=bibtex(*(known or ["rombach2022high"])))
