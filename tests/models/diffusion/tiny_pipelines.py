"""Pipelines of diffusers with random weights, saved as diffusers saves the published ones; a function for each kind.

Structure is that of the real configurations (kinds of blocks, packed latents, biases, shared and separate encoders);
widths and depths are tiny. Nothing is downloaded.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import diffusers
import torch
import transformers

from tests.models.diffusion.tiny_encoders import qwen3, qwen_vl, qwen_words, t5, t5_words
from tests.models.diffusion.tiny_models import sd, sdxl, text_config
from tests.models.diffusion.tiny_models import tokenizer as clip_words

LOUD = 2


def loud(vae: Any) -> Any:
    """A random decoder paints all grey; this one more than that."""
    last = next(
        module
        for name, module in reversed([*vae.decoder.named_modules()])
        if getattr(module, "weight", None) is not None and module.weight.ndim > 3
    )
    last.weight.data *= LOUD
    return vae


def kl16() -> Any:
    """The autoencoder of Stable Diffusion 3, Flux, Z-Image and Lumina 2."""
    return loud(
        diffusers.AutoencoderKL(
            block_out_channels=(8, 8, 16, 16),
            down_block_types=("DownEncoderBlock2D",) * 4,
            up_block_types=("UpDecoderBlock2D",) * 4,
            latent_channels=16,
            norm_num_groups=4,
            scaling_factor=0.3611,
            shift_factor=0.1159,
            use_quant_conv=False,
            use_post_quant_conv=False,
            force_upcast=True,
        )
    )


def unet(parts: dict[str, Any], channels: int = 4) -> dict[str, Any]:
    """Parts of Stable Diffusion or SDXL whose UNet reads other channels: pictures and masks beside the latents."""
    config = {name: value for name, value in parts["unet"].config.items() if not name.startswith("_")}
    network = diffusers.UNet2DConditionModel(**{**config, "in_channels": channels})
    return {**parts, "vae": loud(parts["vae"]), "unet": network}


def flow(**more: Any) -> Any:
    return diffusers.FlowMatchEulerDiscreteScheduler(shift=3.0, **more)


def sd3(folder: Path, with_t5: bool = True) -> dict[str, Any]:
    words, long = clip_words(folder / "clip"), t5_words(folder / "t5")
    transformer = diffusers.SD3Transformer2DModel(
        **{"sample_size": 8, "num_layers": 2, "attention_head_dim": 8, "num_attention_heads": 4, "in_channels": 16},
        **{"joint_attention_dim": 96, "caption_projection_dim": 32, "pooled_projection_dim": 48, "out_channels": 16},
        **{"pos_embed_max_size": 96, "dual_attention_layers": (0,), "qk_norm": "rms_norm"},
    )
    return {
        "transformer": transformer,
        "vae": kl16(),
        "scheduler": flow(),
        "text_encoder": transformers.CLIPTextModelWithProjection(text_config(words, 32, 16)),
        "text_encoder_2": transformers.CLIPTextModelWithProjection(text_config(words, 64, 32)),
        "text_encoder_3": t5(long, 96) if with_t5 else None,
        "tokenizer": words,
        "tokenizer_2": clip_words(folder / "clip"),
        "tokenizer_3": long if with_t5 else None,
    }


def flux(folder: Path, channels: int = 64, guided: bool = True) -> dict[str, Any]:
    words, long = clip_words(folder / "clip"), t5_words(folder / "t5")
    transformer = diffusers.FluxTransformer2DModel(
        **{"in_channels": channels, "out_channels": 64, "num_layers": 1, "num_single_layers": 1},
        **{"attention_head_dim": 16, "num_attention_heads": 2, "joint_attention_dim": 32, "pooled_projection_dim": 32},
        **{"guidance_embeds": guided, "axes_dims_rope": (4, 6, 6)},
    )
    return {
        "transformer": transformer,
        "vae": kl16(),
        "scheduler": flow(use_dynamic_shifting=True),
        "text_encoder": transformers.CLIPTextModel(text_config(words, 32)),
        "tokenizer": words,
        "text_encoder_2": t5(long, 32),
        "tokenizer_2": long,
    }


def klein(folder: Path) -> dict[str, Any]:
    words = qwen_words(folder)
    transformer = diffusers.Flux2Transformer2DModel(
        **{"in_channels": 128, "num_layers": 1, "num_single_layers": 1, "attention_head_dim": 16},
        **{"num_attention_heads": 2, "joint_attention_dim": 48, "timestep_guidance_channels": 32},
        **{"axes_dims_rope": (4, 4, 4, 4), "guidance_embeds": False},
    )
    vae = diffusers.AutoencoderKLFlux2(block_out_channels=(8, 8, 16, 16), layers_per_block=1, norm_num_groups=4)
    return {
        "transformer": transformer,
        "vae": loud(vae),
        "scheduler": flow(use_dynamic_shifting=True),
        "text_encoder": qwen3(words, 16, 28, transformers.Qwen3ForCausalLM),
        "tokenizer": words,
    }


def qwen_image(folder: Path) -> dict[str, Any]:
    words = qwen_words(folder)
    transformer = diffusers.QwenImageTransformer2DModel(
        **{"in_channels": 64, "out_channels": 16, "num_layers": 2, "attention_head_dim": 16},
        **{"num_attention_heads": 2, "joint_attention_dim": 32, "axes_dims_rope": (4, 6, 6)},
    )
    return {
        "transformer": transformer,
        "vae": loud(diffusers.AutoencoderKLQwenImage(base_dim=8, num_res_blocks=1)),
        "scheduler": flow(use_dynamic_shifting=True),
        "text_encoder": qwen_vl(words, 32),
        "tokenizer": words,
    }


def qwen_edit(folder: Path) -> dict[str, Any]:
    parts = qwen_image(folder)
    images = transformers.Qwen2VLImageProcessor(min_pixels=28 * 28, max_pixels=56 * 56)
    videos = transformers.Qwen2VLVideoProcessor()
    return {**parts, "processor": transformers.Qwen2VLProcessor(images, parts["tokenizer"], videos, chat_template="")}


def z_image(folder: Path) -> dict[str, Any]:
    words = qwen_words(folder)
    transformer = diffusers.ZImageTransformer2DModel(
        **{"dim": 32, "n_layers": 2, "n_refiner_layers": 1, "n_heads": 2, "n_kv_heads": 2, "cap_feat_dim": 16},
        **{"axes_dims": [4, 6, 6], "axes_lens": [1024, 64, 64]},
    )
    return {
        "transformer": transformer,
        "vae": kl16(),
        "scheduler": flow(),
        "text_encoder": qwen3(words, 16, 3, transformers.Qwen3Model),
        "tokenizer": words,
    }


DRAWING: dict[str, Callable[[Path], dict[str, Any]]] = {
    "StableDiffusionPipeline": lambda folder: unet(sd(folder)),
    "StableDiffusionXLPipeline": lambda folder: unet(sdxl(folder)),
    "StableDiffusion3Pipeline": sd3,
    "FluxPipeline": flux,
    "Flux2KleinPipeline": klein,
    "QwenImagePipeline": qwen_image,
    "ZImagePipeline": z_image,
}
EDITING: dict[str, Callable[[Path], dict[str, Any]]] = {
    "StableDiffusionInstructPix2PixPipeline": lambda folder: unet(sd(folder), 8),
    "FluxKontextPipeline": flux,
    "QwenImageEditPipeline": qwen_edit,
    "QwenImageEditPlusPipeline": qwen_edit,
    "StableDiffusionInpaintPipeline": lambda folder: unet(sd(folder), 9),
    "StableDiffusionXLInpaintPipeline": lambda folder: unet(sdxl(folder), 9),
    "StableDiffusion3InpaintPipeline": sd3,
    "FluxFillPipeline": lambda folder: flux(folder, 384),
    "FluxInpaintPipeline": flux,
    "QwenImageInpaintPipeline": qwen_image,
    "ZImageInpaintPipeline": z_image,
}
ALL = {**DRAWING, **EDITING}


def save(folder: Path, name: str) -> Path:
    """A model whose class is ``name``."""
    torch.manual_seed(7)
    parts = ALL[name](folder / "words")
    getattr(diffusers, name)(**parts).save_pretrained(folder / "model")
    if "processor" in parts:  # as published; newer versions save it with the whole processor alone
        parts["processor"].image_processor.save_pretrained(folder / "model/processor")
    return folder / "model"
