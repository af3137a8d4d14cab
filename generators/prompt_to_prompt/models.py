"""Text-to-image models, loaded from where `generators.prompt_to_prompt.model_files` finds them.

Nothing is unpickled: weights are safetensors, and each part is loaded by the class named here, never by one that a file
in the model's folder names. Parts must be whole and go together, or nothing is drawn: one that lacks weights is loaded
with random ones instead, which differ from process to process; parts of different models fail in the midst of drawing,
if at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import torch
from diffusers import AutoencoderKL, AutoencoderTiny, DDIMScheduler, DPMSolverMultistepScheduler, UNet2DConditionModel
from transformers import CLIPTextModel, CLIPTextModelWithProjection, CLIPTokenizer

from generators.prompt_to_prompt.attention import cross_attention_sizes
from generators.prompt_to_prompt.model_files import has_part, model_folder, read_json, weights_of
from generators.prompt_to_prompt.pipeline import PromptToPromptPipeline
from manifests.errors import TwinsetError, WrongUse
from shards.models.device import ran_out

SchedulerName = Literal["ddim", "dpm-solver++"]

TIMESTEPS = 100_000  # of a noise schedule, at most: models have a thousand, and each takes memory
PREDICTIONS = ("epsilon", "sample", "v_prediction")
SIDE = 1024  # of latents, at most: a 2048 pixel image has 256


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
    tiny = read_json(folder / "vae/config.json").get("_class_name") == "AutoencoderTiny"

    def part(kind: Any, part_name: str, **given: Any) -> Any:
        variant, _ = weights_of(folder, part_name)
        options = {"torch_dtype": dtype, "use_safetensors": True, "local_files_only": True, "variant": variant, **given}
        with _loading(folder / part_name):
            loaded, found = kind.from_pretrained(folder / part_name, output_loading_info=True, **options)
        if lacking := sorted(found["missing_keys"]):
            named = ", ".join(lacking[:3]) + (", ..." if len(lacking) > 3 else "")
            raise WrongUse(
                f"{folder / part_name}: the weights lack {len(lacking)} tensors that config.json asks for ({named}), "
                "which would be random; get the files of this part again, all from one model"
            )
        return loaded.eval()

    def tokenizer(part_name: str) -> Any:
        with _loading(folder / part_name):
            return CLIPTokenizer.from_pretrained(folder / part_name, local_files_only=True)

    vae = part(AutoencoderTiny if tiny else AutoencoderKL, "vae", low_cpu_mem_usage=False, torch_dtype=torch.float32)
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
    _check_together(folder, pipeline)
    pipeline.to(device)
    return pipeline


def _scheduler(file: Path, name: SchedulerName | None) -> Any:
    config = read_json(file)
    timesteps, prediction = config.get("num_train_timesteps", 1000), config.get("prediction_type", "epsilon")
    if type(timesteps) is not int or not 1 <= timesteps <= TIMESTEPS:
        raise WrongUse(f"{file}: num_train_timesteps must be a whole number, 1 to {TIMESTEPS}; get the file again")
    if prediction not in PREDICTIONS:
        raise WrongUse(f"{file}: prediction_type is {prediction!r}; it must be one of {', '.join(PREDICTIONS)}")
    own = {"DPMSolverMultistepScheduler": "dpm-solver++"}.get(str(config.get("_class_name")), "ddim")
    with _loading(file):
        if (name or own) == "dpm-solver++":  # whatever the model's variant: the stochastic ones draw noise of their own
            return DPMSolverMultistepScheduler.from_config(config, algorithm_type="dpmsolver++")
        # Latents have no bounds; DDIM would clip them by default, which the schedulers of other models do not know of.
        return DDIMScheduler.from_config({"clip_sample": False, **config})


@contextmanager
def _loading(part: Path) -> Iterator[None]:
    """`WrongUse` with the part's name for whatever its files make diffusers, transformers or safetensors raise.

    Memory that runs out and trouble with the disk stay what they are: another attempt can succeed.
    """
    try:
        yield
    except (TwinsetError, ImportError):
        raise
    except Exception as error:
        if ran_out(error) or (isinstance(error, OSError) and error.errno):
            raise
        # Their messages have one line for each tensor.
        problem = " ".join(str(error).split())[:300] or type(error).__name__
        raise WrongUse(
            f"{part}: cannot be loaded ({problem}); get its files again: weights may have been cut short, or belong to "
            "another config.json"
        ) from error


def _check_together(folder: Path, pipeline: PromptToPromptPipeline) -> None:
    """Raises `WrongUse`, naming the part, where the parts of a model cannot draw together."""
    unet, vae = pipeline.unet.config, pipeline.vae.config
    side = unet.sample_size
    if type(side) is not int or not 1 <= side <= SIDE:
        raise WrongUse(
            f"{folder}/unet/config.json: sample_size is {side!r}; write the side of the latents that the model was "
            f"trained at, 1 to {SIDE}"
        )
    if not cross_attention_sizes(pipeline.unet, side, side):
        raise WrongUse(
            f"{folder}/unet: has no cross-attention, which prompt-to-prompt edits; name a model that draws what "
            "captions say"
        )
    channels = {unet.in_channels, unet.out_channels, vae.latent_channels}
    if len(channels) > 1:
        raise WrongUse(
            f"{folder}: the UNet takes {unet.in_channels} channels and gives {unet.out_channels}, the autoencoder "
            f"reads {vae.latent_channels}; name a text-to-image model, not one for inpainting"
        )
    parts = [("tokenizer", pipeline.tokenizer, pipeline.text_encoder.config)]
    if pipeline.text_encoder_2 is not None:
        parts.append(("tokenizer_2", pipeline.tokenizer_2, pipeline.text_encoder_2.config))
    width = sum(encoder.hidden_size for _, _, encoder in parts)
    if width != unet.cross_attention_dim:
        raise WrongUse(
            f"{folder}: text encoders give {width} channels, the UNet reads {unet.cross_attention_dim}; take these "
            "parts from one model"
        )
    for name, tokenizer, encoder in parts:
        if len(tokenizer) > encoder.vocab_size:
            raise WrongUse(
                f"{folder / name}: knows {len(tokenizer)} tokens, its text encoder {encoder.vocab_size}; take both "
                "from one model"
            )
        length, read = tokenizer.model_max_length, encoder.max_position_embeddings
        if type(length) is not int or not 3 <= length <= read:
            raise WrongUse(
                f"{folder / name}/tokenizer_config.json: model_max_length must be a whole number up to {read}, what "
                "the text encoder reads; write it there, or get the file again"
            )
