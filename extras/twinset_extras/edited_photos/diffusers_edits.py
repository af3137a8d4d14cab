"""Settings of the editor ``diffusers-edit``: today's editing and inpainting models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field

from twinset.models.diffusion.settings import PipelineSettings
from twinset_extras.edited_photos.image_editor import ImageEditorSettings


class DiffusersEdits(PipelineSettings, ImageEditorSettings):
    """Pictures edited by a pipeline of diffusers: told what to do (InstructPix2Pix, Kontext), or by inpainting a mask.

    An edit is worked on alone, at about ``resolution`` squared pixels, and brought back to its picture's size.

    model, unet, scheduler, resolution, steps, guidance, precision: as `DiffusionModel`; cut, fused, compiled,
    attention: as `PipelineSettings`; device, threads: as `OnDevice`.
    strength: of inpainting, from 0 to 1, where nothing of the old picture is left inside the mask. outside: what
    stands outside the mask after inpainting: the picture's own pixels, or those of the model.
    licence: of what the model paints.
    """

    kind: Literal["diffusers-edit"]
    strength: float = Field(default=1.0, gt=0, le=1)
    outside: Literal["own", "model"] = "own"

    editing = True
    worker = "twinset_extras.edited_photos.pipeline_editor:PipelineEditor"
    title = "an editing model of diffusers"
    reasons: ClassVar[Mapping[str, str]] = {
        **PipelineSettings.reasons,
        "no-mask": "the model paints inside a mask, and there is none, or it is empty",
        "mask-size": "the mask has another size than the picture",
        "no-instruction": "the model is told what to do, and nothing is said",
    }

    @property
    def masked(self) -> bool:  # type: ignore[override]
        """Whether its model needs a mask; raises `ModelMissing` where the model is not on this machine."""
        return "inpaint" in self.found().row.does
