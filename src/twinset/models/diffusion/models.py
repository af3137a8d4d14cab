"""The parts and samplers of a text-to-image model, loaded from where `models.diffusion.model_files` finds them.

Nothing is unpickled: weights are safetensors, and each part is loaded by the class named here, never by one that a file
in the model's folder names. Parts must be whole and go together, or nothing is drawn: one that lacks weights is loaded
with random ones instead, which differ from process to process; parts of different models fail in the midst of drawing,
if at all.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import diffusers
import torch
import transformers
from diffusers import (
    AutoencoderKL,
    AutoencoderTiny,
    DDIMScheduler,
    DPMSolverMultistepScheduler,
    EulerDiscreteScheduler,
    PNDMScheduler,
    UNet2DConditionModel,
)
from transformers import CLIPTextModel, CLIPTextModelWithProjection, CLIPTokenizer

from twinset.contracts.errors import WrongUse
from twinset.models.diffusion.model_files import has_part, model_folder, unet_folder, weights_of
from twinset.models.files import read_json
from twinset.models.loading import load_beside, load_network, loading

TIMESTEPS = 100_000  # of a noise schedule, at most: models have a thousand, and each takes memory
PREDICTIONS = ("epsilon", "sample", "v_prediction")
SIDE = 1024  # of latents, at most: a 2048 pixel image has 256

SCHEDULERS: dict[str, Any] = {
    "euler": EulerDiscreteScheduler,
    "ddim": DDIMScheduler,
    "dpm-solver++": DPMSolverMultistepScheduler,
    "pndm": PNDMScheduler,
}
#: What a scheduler is given besides the model's own configuration.
GIVEN = {"dpm-solver++": {"algorithm_type": "dpmsolver++"}}  # whatever the variant: the stochastic ones draw noise
#: What holds where the configuration does not say it.
ABSENT = {
    "ddim": {"clip_sample": False},  # latents have no bounds; other schedulers do not know of clipping
    "pndm": {"skip_prk_steps": True},  # as Stable Diffusion has it
}


@dataclass(frozen=True, slots=True)
class Parts:
    """A loaded model: Stable Diffusion's, or SDXL's if it has two text encoders.

    folder: of all but perhaps the UNet. zero_unconditional: whether the unconditional embedding of classifier-free
    guidance is zeros; else it is that of an empty caption.
    """

    folder: Path
    vae: Any
    unet: Any
    text_encoder: Any
    tokenizer: Any
    text_encoder_2: Any
    tokenizer_2: Any
    zero_unconditional: bool

    @property
    def encoders(self) -> list[tuple[Any, Any]]:
        """Tokenizer and text encoder, of SDXL twice."""
        both = [(self.tokenizer, self.text_encoder), (self.tokenizer_2, self.text_encoder_2)]
        return [(tokenizer, encoder) for tokenizer, encoder in both if encoder is not None]

    @property
    def scale(self) -> int:
        """Pixels of an image along the side of one latent."""
        return int(2 ** (len(self.vae.config.block_out_channels) - 1))


def load_parts(
    name: str, device: str | torch.device, dtype: torch.dtype | None = None, unet: str | None = None
) -> Parts:
    """The parts of a model folder or a cached hub id, ready to draw.

    Args:
        dtype: of the UNet and the text encoders; None: float16 on a GPU, float32 on the CPU. An autoencoder is float32
            unless its configuration says that it bears less (``force_upcast: false``).
        unet: folder or hub id of a UNet that takes the place of the model's own.

    Raises:
        ModelMissing: naming what to put where.
        WrongUse: naming the part, for files that cannot be loaded, lack weights or do not go together.
    """
    folder = model_folder(name, unet is not None)
    unet_place = folder / "unet" if unet is None else unet_folder(unet)
    device = torch.device(device)
    dtype = dtype or (torch.float32 if device.type == "cpu" else torch.float16)
    index = read_json(folder / "model_index.json")
    two = has_part(index, "text_encoder_2")
    tiny = read_json(folder / "vae/config.json").get("_class_name") == "AutoencoderTiny"

    def part(kind: Any, part_name: str, place: Path | None = None, **given: Any) -> Any:
        place = place or folder / part_name
        variant = "fp16" if ".fp16." in weights_of(place, part_name)[0].name else None
        return load_network(kind, place, given.pop("dtype", dtype), use_safetensors=True, variant=variant, **given)

    def tokenizer(part_name: str) -> Any:
        return load_beside(CLIPTokenizer, folder / part_name)

    vae = part(AutoencoderTiny if tiny else AutoencoderKL, "vae", low_cpu_mem_usage=False, dtype=torch.float32)
    parts = Parts(
        folder=folder,
        vae=vae if vae.config.force_upcast else vae.to(dtype),
        text_encoder=part(CLIPTextModel, "text_encoder"),
        tokenizer=tokenizer("tokenizer"),
        unet=part(UNet2DConditionModel, "unet", unet_place, low_cpu_mem_usage=False),
        text_encoder_2=part(CLIPTextModelWithProjection, "text_encoder_2") if two else None,
        tokenizer_2=tokenizer("tokenizer_2") if two else None,
        zero_unconditional=bool(index.get("force_zeros_for_empty_prompt", two)),
    )
    _check_together(parts, unet_place)
    for one in (parts.vae, parts.unet, parts.text_encoder, parts.text_encoder_2):
        if one is not None:
            one.to(device)
    return parts


def scheduler_config(folder: Path) -> dict[str, Any]:
    """The configuration of a model's scheduler; raises `WrongUse`, naming the file, for values that are none."""
    file = folder / "scheduler/scheduler_config.json"
    config = read_json(file)
    timesteps, prediction = config.get("num_train_timesteps", 1000), config.get("prediction_type", "epsilon")
    if type(timesteps) is not int or not 1 <= timesteps <= TIMESTEPS:
        raise WrongUse(f"{file}: num_train_timesteps must be a whole number, 1 to {TIMESTEPS}; get the file again")
    if prediction not in PREDICTIONS:
        raise WrongUse(f"{file}: prediction_type is {prediction!r}; it must be one of {', '.join(PREDICTIONS)}")
    return config


def own_scheduler(folder: Path) -> str:
    """Name of the sampler that a model's folder names; raises `WrongUse` where it is none of `SCHEDULERS`."""
    found = str(scheduler_config(folder).get("_class_name"))
    for name, kind in SCHEDULERS.items():
        if kind.__name__ == found:
            return name
    raise WrongUse(
        f"{folder}/scheduler/scheduler_config.json: the model's own sampler is {found}, which is not supported; set "
        f"scheduler to one of {', '.join(SCHEDULERS)}"
    )


def new_scheduler(folder: Path, name: str) -> Any:
    """A sampler with the noise schedule of the model in a folder; raises `WrongUse` where they do not fit."""
    config = scheduler_config(folder)
    with loading(folder / "scheduler/scheduler_config.json"):
        return SCHEDULERS[name].from_config({**ABSENT.get(name, {}), **config}, **GIVEN.get(name, {}))


def be_quiet() -> None:
    """No bars and remarks of the libraries where a build or a report shows its own; errors stay."""
    for library in (diffusers.utils.logging, transformers.utils.logging):
        library.set_verbosity_error()
        library.disable_progress_bar()


def _check_together(parts: Parts, unet_place: Path) -> None:
    """Raises `WrongUse`, naming the part, where the parts of a model cannot draw together."""
    folder, unet, vae = parts.folder, parts.unet.config, parts.vae.config
    side = unet.sample_size
    if type(side) is not int or not 1 <= side <= SIDE:
        raise WrongUse(
            f"{unet_place}/config.json: sample_size is {side!r}; write the side of the latents that the model was "
            f"trained at, 1 to {SIDE}"
        )
    if not any(name.endswith("attn2.processor") for name in parts.unet.attn_processors):
        raise WrongUse(f"{unet_place}: has no cross-attention; name a model that draws what captions say")
    if unet.time_cond_proj_dim is not None:
        raise WrongUse(
            f"{unet_place}: reads the scale of guidance as an input (time_cond_proj_dim), as distilled models do; name "
            "one that does not"
        )
    channels = {unet.in_channels, unet.out_channels, vae.latent_channels}
    if len(channels) > 1:
        raise WrongUse(
            f"{folder}: the UNet takes {unet.in_channels} channels and gives {unet.out_channels}, the autoencoder "
            f"reads {vae.latent_channels}; name a text-to-image model, not one for inpainting"
        )
    named = list(zip(("tokenizer", "tokenizer_2"), parts.encoders, strict=False))
    width = sum(encoder.config.hidden_size for _, encoder in parts.encoders)
    if width != unet.cross_attention_dim:
        raise WrongUse(
            f"{folder}: text encoders give {width} channels, the UNet reads {unet.cross_attention_dim}; take these "
            "parts from one model"
        )
    # SDXL's UNet adds the pooled caption and six numbers on the image's size to the embedding of the timestep.
    gives = 0 if parts.text_encoder_2 is None else parts.text_encoder_2.config.projection_dim
    reads = 0
    if unet.addition_embed_type == "text_time":
        reads = unet.projection_class_embeddings_input_dim - 6 * unet.addition_time_embed_dim
    if reads != gives:
        raise WrongUse(
            f"{unet_place}: reads pooled captions of {reads} channels, the text encoders of {folder} give {gives}; "
            "take these parts from one kind of model"
        )
    for name, (tokenizer, encoder) in named:
        if len(tokenizer) > encoder.config.vocab_size:
            raise WrongUse(
                f"{folder / name}: knows {len(tokenizer)} tokens, its text encoder {encoder.config.vocab_size}; take "
                "both from one model"
            )
        length, read = tokenizer.model_max_length, encoder.config.max_position_embeddings
        if type(length) is not int or not 3 <= length <= read:
            raise WrongUse(
                f"{folder / name}/tokenizer_config.json: model_max_length must be a whole number up to {read}, what "
                "the text encoder reads; write it there, or get the file again"
            )
