"""Text-to-image models, loaded from where `generators.prompt_to_prompt.model_files` finds them.

Nothing is unpickled: weights are safetensors, and each part is loaded by the class named here, never by one that a file
in the model's folder names.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import torch
from diffusers import AutoencoderKL, AutoencoderTiny, DDIMScheduler, DPMSolverMultistepScheduler, UNet2DConditionModel
from transformers import CLIPTextModel, CLIPTextModelWithProjection, CLIPTokenizer

from generators.prompt_to_prompt.model_files import has_part, model_folder, read_json, weights_of
from generators.prompt_to_prompt.parts import check_schedule, check_together, check_whole, loading
from generators.prompt_to_prompt.pipeline import PromptToPromptPipeline

SchedulerName = Literal["ddim", "dpm-solver++"]


def load_model(
    name: str, device: str | torch.device, dtype: torch.dtype | None = None, scheduler: SchedulerName | None = None
) -> PromptToPromptPipeline:
    """The pipeline of a model folder or a cached hub id: Stable Diffusion's, or SDXL's if it has two text encoders.

    dtype: of the UNet and the text encoders; None: float16 on a GPU, float32 on the CPU. An autoencoder is float32
        wherever its configuration does not say that it bears less (``force_upcast``, true unless it says otherwise).
    scheduler: None: the model's own if it is DDIM or DPM-Solver++, else DDIM with the model's noise schedule.
    Raises ModelMissing, naming what to put where, and `WrongUse`, naming the part, for files that cannot be loaded,
    lack weights or do not go together.
    """
    folder = model_folder(name)
    device = torch.device(device)
    dtype = dtype or (torch.float32 if device.type == "cpu" else torch.float16)
    index = read_json(folder / "model_index.json")
    two = has_part(index, "text_encoder_2")
    autoencoder = (
        AutoencoderTiny
        if read_json(folder / "vae/config.json").get("_class_name") == "AutoencoderTiny"
        else AutoencoderKL
    )

    def part(kind: Any, part_name: str, **given: Any) -> Any:
        variant = None if weights_of(folder, part_name, "") else "fp16"
        options = {"torch_dtype": dtype, "use_safetensors": True, "local_files_only": True, "variant": variant, **given}
        with loading(folder / part_name):
            loaded, found = kind.from_pretrained(folder / part_name, output_loading_info=True, **options)
        check_whole(folder / part_name, found["missing_keys"])
        return loaded.eval()

    def tokenizer(part_name: str) -> Any:
        with loading(folder / part_name):
            return CLIPTokenizer.from_pretrained(folder / part_name, local_files_only=True)

    vae = part(autoencoder, "vae", low_cpu_mem_usage=False, torch_dtype=torch.float32)
    pipeline = PromptToPromptPipeline(
        vae=vae if vae.config.force_upcast else vae.to(dtype),
        text_encoder=part(CLIPTextModel, "text_encoder"),
        tokenizer=tokenizer("tokenizer"),
        unet=part(UNet2DConditionModel, "unet", low_cpu_mem_usage=False),
        scheduler=_scheduler(folder / "scheduler/scheduler_config.json", scheduler),
        text_encoder_2=part(CLIPTextModelWithProjection, "text_encoder_2") if two else None,
        tokenizer_2=tokenizer("tokenizer_2") if two else None,
        force_zeros_for_empty_prompt=bool(index.get("force_zeros_for_empty_prompt", two)),
    )
    check_together(folder, pipeline)
    pipeline.to(device)
    return pipeline


def _scheduler(file: Path, name: SchedulerName | None) -> Any:
    config = read_json(file)
    check_schedule(file, config)
    own = {"DPMSolverMultistepScheduler": "dpm-solver++"}.get(str(config.get("_class_name")), "ddim")
    with loading(file):
        if (name or own) == "dpm-solver++":  # whatever the model's variant: the stochastic ones draw noise of their own
            return DPMSolverMultistepScheduler.from_config(config, algorithm_type="dpmsolver++")
        # Latents have no bounds; DDIM would clip them by default, which the schedulers of other models do not know of.
        return DDIMScheduler.from_config({"clip_sample": False, **config})
