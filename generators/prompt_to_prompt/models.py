"""Text-to-image models from disk: a folder in diffusers' layout, or a hub id in the local Hugging Face cache.

Nothing is downloaded, nothing is unpickled: weights are safetensors, and each part is loaded by the class named here,
never by one that a file in the model's folder names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

import diffusers
import torch
from diffusers import (
    AutoencoderKL,
    AutoencoderTiny,
    DDIMScheduler,
    DPMSolverMultistepScheduler,
    UNet2DConditionModel,
)
from huggingface_hub import snapshot_download
from huggingface_hub.errors import LocalEntryNotFoundError
from transformers import CLIPTextModel, CLIPTextModelWithProjection, CLIPTokenizer

from generators.prompt_to_prompt.pipeline import PromptToPromptPipeline
from manifests.canonical import digest, sha256_of_file
from manifests.errors import WrongUse

SchedulerName = Literal["ddim", "dpm-solver++"]
HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
WEIGHTS = {
    "unet": "diffusion_pytorch_model",
    "vae": "diffusion_pytorch_model",
    "text_encoder": "model",
    "text_encoder_2": "model",
}
CONFIGS = ("model_index.json", "scheduler/scheduler_config.json", *(f"{part}/config.json" for part in WEIGHTS))
TOKENIZERS = ("vocab.json", "merges.txt", "tokenizer_config.json", "tokenizer.json", "special_tokens_map.json")


class ModelMissing(WrongUse):
    """A model, or a file of it, is not on this machine; the message says which files to put where."""


def load_model(
    name: str, device: str | torch.device, dtype: torch.dtype | None = None, scheduler: SchedulerName | None = None
) -> PromptToPromptPipeline:
    """The pipeline of a model folder or a cached hub id: Stable Diffusion's, or SDXL's if it has two text encoders.

    dtype: of the UNet and the text encoders; None: float16 on a GPU, float32 on the CPU. The autoencoder stays float32
        where its configuration says that it overflows otherwise (``force_upcast``).
    scheduler: None: the model's own if it is DDIM or DPM-Solver++, else DDIM with the model's noise schedule.
    Raises ModelMissing, naming what to put where.
    """
    folder = model_folder(name)
    device = torch.device(device)
    dtype = dtype or (torch.float32 if device.type == "cpu" else torch.float16)
    index = _json(folder / "model_index.json")
    two = _has(index, "text_encoder_2")
    autoencoder = (
        AutoencoderTiny if _json(folder / "vae/config.json")["_class_name"] == "AutoencoderTiny" else AutoencoderKL
    )

    def part(kind: Any, part_name: str, **options: Any) -> Any:
        variant = None if _weights(folder, part_name, "") else "fp16"
        options |= {"torch_dtype": dtype, "use_safetensors": True, "local_files_only": True, "variant": variant}
        return kind.from_pretrained(folder / part_name, **options).eval()

    def tokenizer(part_name: str) -> Any:
        return CLIPTokenizer.from_pretrained(folder / part_name, local_files_only=True)

    vae = part(autoencoder, "vae", low_cpu_mem_usage=False)
    pipeline = PromptToPromptPipeline(
        vae=vae.float() if vae.config.force_upcast else vae,
        text_encoder=part(CLIPTextModel, "text_encoder"),
        tokenizer=tokenizer("tokenizer"),
        unet=part(UNet2DConditionModel, "unet", low_cpu_mem_usage=False),
        scheduler=_scheduler(_json(folder / "scheduler/scheduler_config.json"), scheduler),
        text_encoder_2=part(CLIPTextModelWithProjection, "text_encoder_2") if two else None,
        tokenizer_2=tokenizer("tokenizer_2") if two else None,
        force_zeros_for_empty_prompt=bool(index.get("force_zeros_for_empty_prompt", two)),
    )
    pipeline.to(device)
    return pipeline


def model_folder(name: str) -> Path:
    """The folder of a model by its path or its hub id, with all files that loading needs; else ModelMissing.

    What is a folder here is taken as one; what is not, and reads OWNER/NAME, is looked up in the cache.
    """
    folder = Path(name).expanduser()
    if not folder.is_dir():
        if not HUB_ID.fullmatch(name):
            raise ModelMissing(f"there is no model folder {name}: put a model in diffusers' layout there. {_layout()}")
        try:
            folder = Path(snapshot_download(name, local_files_only=True))
        except LocalEntryNotFoundError as error:
            raise ModelMissing(
                f"the model {name} is neither a folder here nor in the Hugging Face cache, and nothing is downloaded "
                f"while building: run `hf download {name}` where there is a network (HF_HOME: where the cache is), or "
                f"put its files into a folder and name that. {_layout()}"
            ) from error
    missing = _missing(folder)
    if missing:
        raise ModelMissing(f"the model {name} lacks {', '.join(missing)}: put them into {folder}. {_layout()}")
    return folder


def weights_digest(name: str) -> dict[str, str]:
    """sha256 of each file that makes a model draw what it draws (weights, configurations, tokenizers), by its path."""
    folder = model_folder(name)
    tokenizers = {folder / part / file for part in ("tokenizer", "tokenizer_2") for file in TOKENIZERS}
    weights = {path for part in WEIGHTS for path in _weights(folder, part, "") or _weights(folder, part, ".fp16")}
    configs = {folder / file for file in CONFIGS}
    used = sorted(path for path in tokenizers | weights | configs if path.is_file())
    return {path.relative_to(folder).as_posix(): sha256_of_file(path)[0] for path in used}


@cache
def model_digest(name: str) -> str:
    """One digest of ``weights_digest``. A process reads each model's files once."""
    return digest(weights_digest(name))


def _missing(folder: Path) -> list[str]:
    """Files that loading needs and that are not in the folder."""
    if not (folder / "model_index.json").is_file():
        return ["model_index.json"]
    two = _has(_json(folder / "model_index.json"), "text_encoder_2")
    parts = [part for part in WEIGHTS if two or part != "text_encoder_2"]
    needed = ["scheduler/scheduler_config.json", *(f"{part}/config.json" for part in parts)]
    missing = [file for file in needed if not (folder / file).is_file()]
    for part in parts:
        if not _weights(folder, part, "") and not _weights(folder, part, ".fp16"):
            missing.append(f"{part}/{WEIGHTS[part]}.safetensors")
    for part in ("tokenizer", "tokenizer_2") if two else ("tokenizer",):
        if not (folder / part / "tokenizer.json").is_file():
            missing += [f"{part}/{file}" for file in TOKENIZERS[:2] if not (folder / part / file).is_file()]
    return missing


def _weights(folder: Path, part: str, variant: str) -> list[Path]:
    """The safetensors of a part, whole or in pieces with their index; empty if they are not all there."""
    whole = folder / part / f"{WEIGHTS[part]}{variant}.safetensors"
    if whole.is_file():
        return [whole]
    index = folder / part / f"{WEIGHTS[part]}.safetensors.index{variant}.json"
    if not index.is_file():
        return []
    pieces = [folder / part / piece for piece in sorted(set(_json(index)["weight_map"].values()))]
    return [index, *pieces] if all(piece.is_file() for piece in pieces) else []


def _scheduler(config: Mapping[str, Any], name: SchedulerName | None) -> Any:
    own = {"DDIMScheduler": DDIMScheduler, "DPMSolverMultistepScheduler": DPMSolverMultistepScheduler}
    if name is None and config["_class_name"] in own:
        kind = own[config["_class_name"]]
        return kind.from_config(config)
    if name == "dpm-solver++":
        return DPMSolverMultistepScheduler.from_config(config, algorithm_type="dpmsolver++")
    # Latents have no bounds; DDIM would clip them by default, which the schedulers of other models do not know of.
    return DDIMScheduler.from_config({"clip_sample": False, **config})


def _layout() -> str:
    weights = ", ".join(f"{part}/{file}.safetensors" for part, file in list(WEIGHTS.items())[:3])
    return (
        f"A model folder holds model_index.json, scheduler/scheduler_config.json, tokenizer/vocab.json and merges.txt, "
        f"{weights} with a config.json beside each; SDXL's also text_encoder_2 and tokenizer_2 (weights as safetensors "
        f"only, diffusers {diffusers.__version__} layout)"
    )


def _has(index: Mapping[str, Any], part: str) -> bool:
    """Whether a model_index.json names a part: ``[library, class]``, both null where it is left out."""
    return bool((index.get(part) or [None])[0])


def _json(path: Path) -> Any:
    return json.loads(path.read_text())
