"""Pipelines of prompt-to-prompt from text-to-image models (`models.diffusion.models`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import torch
from diffusers import DDIMScheduler, DPMSolverMultistepScheduler

from twinset.generators.prompt_to_prompt.pipeline import PromptToPromptPipeline
from twinset.models.diffusion.models import load_parts, scheduler_config
from twinset.models.loading import loading

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
    return PromptToPromptPipeline(
        vae=parts.vae,
        text_encoder=parts.text_encoder,
        tokenizer=parts.tokenizer,
        unet=parts.unet,
        scheduler=_scheduler(parts.folder, scheduler),
        text_encoder_2=parts.text_encoder_2,
        tokenizer_2=parts.tokenizer_2,
        force_zeros_for_empty_prompt=parts.zero_unconditional,
    )


def _scheduler(folder: Path, name: SchedulerName | None) -> Any:
    config = scheduler_config(folder)
    own = {"DPMSolverMultistepScheduler": "dpm-solver++"}.get(str(config.get("_class_name")), "ddim")
    with loading(folder / "scheduler/scheduler_config.json"):
        if (name or own) == "dpm-solver++":  # whatever the model's variant: the stochastic ones draw noise of their own
            return DPMSolverMultistepScheduler.from_config(config, algorithm_type="dpmsolver++")
        # Latents have no bounds; DDIM would clip them by default, which the schedulers of other models do not know of.
        return DDIMScheduler.from_config({"clip_sample": False, **config})
