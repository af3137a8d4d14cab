"""Pipelines of prompt-to-prompt from text-to-image models (`models.diffusion.models`)."""

from __future__ import annotations

from typing import Literal

import torch

from twinset.generators.prompt_to_prompt.pipeline import PromptToPromptPipeline
from twinset.models.diffusion.models import load_parts, scheduler_config
from twinset.models.diffusion.schedulers import new_scheduler

SchedulerName = Literal["ddim", "dpm-solver++"]


def load_model(
    name: str, device: str | torch.device, dtype: torch.dtype | None = None, scheduler: SchedulerName | None = None
) -> PromptToPromptPipeline:
    """The pipeline of a model folder or a cached hub id: Stable Diffusion's, or SDXL's if it has two text encoders.

    dtype: as `load_parts`.
    scheduler: None: the model's own if it is DDIM or DPM-Solver++, else DDIM with the model's noise schedule.
    Raises ModelMissing and `WrongUse` as `load_parts` does.
    """
    parts = load_parts(name, device, dtype)
    own = str(scheduler_config(parts.folder).get("_class_name"))
    chosen = scheduler or ("dpm-solver++" if own == "DPMSolverMultistepScheduler" else "ddim")
    return PromptToPromptPipeline(
        vae=parts.vae,
        text_encoder=parts.text_encoder,
        tokenizer=parts.tokenizer,
        unet=parts.unet,
        scheduler=new_scheduler(parts.folder, chosen),
        text_encoder_2=parts.text_encoder_2,
        tokenizer_2=parts.tokenizer_2,
        force_zeros_for_empty_prompt=parts.zero_unconditional,
    )
