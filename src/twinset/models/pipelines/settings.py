"""Settings of the engine ``diffusers``: today's text-to-image models."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from twinset.contracts.errors import naming
from twinset.contracts.locations import is_model_folder
from twinset.contracts.source import Need, Place
from twinset.models.device import OnDevice, check_installed
from twinset.models.image_engine import ImageEngineSettings
from twinset.models.pipelines.folder import Found, find_pipeline


class PipelineSettings(OnDevice):
    """A base that stands before the others.

    model: an id of the Hugging Face hub whose files are in the local cache, or a folder in diffusers' layout. Its class
    and those of its parts are of an allow-list (`models.pipelines.classes`).
    resolution: side of a picture in pixels; the model's own when absent. steps: of denoising; what diffusers takes for
    the class when absent. guidance: scale of guidance; likewise.
    cut: whether a prompt that is longer than the model reads is cut at its end; else it is rejected.
    precision: of all parts; ``auto`` is bfloat16 on a GPU and float32 on the CPU.
    """

    model: Annotated[str, Place("model", "models")] = Field(min_length=1)
    resolution: int | None = Field(default=None, ge=32, le=4096, multiple_of=32)
    steps: int | None = Field(default=None, ge=1, le=1000)
    guidance: float | None = Field(default=None, ge=0, le=100)
    cut: bool = False
    precision: Literal["auto", "float32", "float16", "bfloat16"] = "auto"

    editing: ClassVar[bool] = False
    reasons: ClassVar[Mapping[str, str]] = {
        "prompt-too-long": "the model does not read all of the prompt, and `cut` is off",
        "special-token": "the prompt holds a mark of the model's own, such as one for the end of a text",
        "not-finite": "numbers of the network overflowed",
        "blank": "all pixels of the picture are equal",
    }

    def found(self) -> Found:
        """The model's folder; raises as `models.pipelines.folder.find_pipeline`."""
        return find_pipeline(self.model, self.editing)

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        if "models" not in needs:
            return
        with naming(f"{key}.model"):
            found = self.found()
        if "media" in needs:
            check_installed(key, found.libraries, self.extra)

    @property
    def model_said(self) -> str:
        """The model for provenance and cards: where a folder lies is no part of what is made."""
        return "a folder" if is_model_folder(self.model) else self.model

    def notes(self) -> str:
        said = {
            name: value for name in ("resolution", "steps", "guidance") if (value := getattr(self, name)) is not None
        }
        given = ", ".join(f"{name} {value}" for name, value in said.items()) or "no setting of its own"
        return f"* Model: {self.model_said}, by diffusers' pipeline of its class, with {given}.\n"


class DiffusersImages(PipelineSettings, ImageEngineSettings):
    """Pictures drawn by a text-to-image pipeline of diffusers, such as FLUX, Qwen-Image or Stable Diffusion 3.5.

    The picture of a seed is the one that the pipeline draws with ``torch.Generator("cpu").manual_seed(seed)``.

    model, resolution, steps, guidance, cut, precision: as `PipelineSettings`; device, threads: as `OnDevice`.
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
    worker = "twinset.models.pipelines.painter:PipelinePainter"
    title = "a text-to-image model of diffusers"
    reasons = PipelineSettings.reasons
