"""Pipelines of diffusers with random weights, saved as diffusers saves the published ones; a function for each kind.

Structure is that of the real configurations (kinds of blocks, packed latents, biases, shared and separate encoders);
widths and depths are tiny. Nothing is downloaded: tokenizers are trained on the words below.
"""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import diffusers
import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from tests.models.diffusion.tiny_models import WORDS, autoencoder, sd, sdxl, text_config
from tests.models.diffusion.tiny_models import tokenizer as clip_words

Parts = dict[str, Any]
MARKS = ("<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>")
TEXT = [WORDS, "a red cup on the table. make the cat blue, please; remove it", "user assistant system", "0123456789"]
#: What the published template makes of one turn of a user.
QWEN3 = (
    "{{- '<|im_start|>user\\n' + messages[0].content + '<|im_end|>\\n' }}"
    "{{- '<|im_start|>assistant\\n' }}{% if enable_thinking is defined and not enable_thinking %}"
    "{{- '<think>\\n\\n</think>\\n\\n' }}{% endif %}"
)


def t5_words(folder: Path) -> Any:
    pieces = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -4.0)]
    pieces += [(letter, -6.0) for letter in "abcdefghijklmnopqrstuvwxyz.,"]
    pieces += [(f"▁{word}", -2.0) for word in dict.fromkeys(WORDS.split())]
    transformers.T5TokenizerFast(vocab=pieces, extra_ids=0, model_max_length=512).save_pretrained(folder)
    return transformers.T5TokenizerFast.from_pretrained(folder)


def qwen_words(folder: Path) -> Any:
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    letters = pre_tokenizers.ByteLevel.alphabet()
    raw.train_from_iterator(TEXT, trainers.BpeTrainer(vocab_size=500, show_progress=False, initial_alphabet=letters))
    trained = json.loads(raw.to_str())["model"]
    words = transformers.Qwen2TokenizerFast(vocab=trained["vocab"], merges=[*map(tuple, trained["merges"])])
    words.add_special_tokens({"additional_special_tokens": [*MARKS]})
    words.chat_template = QWEN3
    words.save_pretrained(folder)
    return transformers.Qwen2TokenizerFast.from_pretrained(folder)


def t5(words: Any, width: int) -> Any:
    sizes = {"d_model": width, "d_kv": 8, "d_ff": 2 * width, "num_layers": 2, "num_heads": 4}
    return transformers.T5EncoderModel(
        transformers.T5Config(vocab_size=len(words), feed_forward_proj="gated-gelu", **sizes)
    )


def qwen3(words: Any, layers: int, kind: Any) -> Any:
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_attention_heads": 2, "num_key_value_heads": 1}
    more = {"num_hidden_layers": layers, "head_dim": 8, "tie_word_embeddings": True}
    return kind(transformers.Qwen3Config(vocab_size=len(words), **sizes, **more))


def qwen_vl(words: Any) -> Any:
    text: Parts = {"hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 4, "num_key_value_heads": 1}
    text |= {"vocab_size": len(words), "num_hidden_layers": 2}
    text["rope_parameters"] = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [1, 1, 2]}
    vision: Parts = {"hidden_size": 16, "intermediate_size": 32, "depth": 2, "num_heads": 2, "out_hidden_size": 32}
    vision["fullatt_block_indexes"] = [1]
    begin, end, image = (words.convert_tokens_to_ids(mark) for mark in MARKS[2:])
    marks = {"vision_start_token_id": begin, "vision_end_token_id": end, "image_token_id": image}
    return transformers.Qwen2_5_VLForConditionalGeneration(
        transformers.Qwen2_5_VLConfig(text_config=text, vision_config=vision, video_token_id=image, **marks)
    )


def loud(vae: Any) -> Any:
    """A random decoder paints all grey; this one more than that."""
    weights = [module.weight for module in vae.decoder.modules() if getattr(module, "weight", None) is not None]
    [weight for weight in weights if weight.ndim > 3][-1].data *= 2
    return vae


def kl16() -> Any:
    """The autoencoder of Stable Diffusion 3, Flux and Z-Image."""
    unused = {"use_quant_conv": False, "use_post_quant_conv": False}
    return loud(autoencoder(latent_channels=16, scaling_factor=0.3611, shift_factor=0.1159, **unused))


def unet(kind: Callable[[Path], Parts], channels: int, folder: Path) -> Parts:
    """Parts of Stable Diffusion or SDXL whose UNet reads other channels: pictures and masks beside the latents."""
    parts = kind(folder)
    config = {name: value for name, value in parts["unet"].config.items() if not name.startswith("_")}
    network = diffusers.UNet2DConditionModel(**{**config, "in_channels": channels})
    return {**parts, "vae": loud(parts["vae"]), "unet": network}


def flowing(transformer: Any, vae: Any, encoder: Any, words: Any, **scheduler: Any) -> Parts:
    """Parts of a transformer that denoises by flow matching."""
    flow = diffusers.FlowMatchEulerDiscreteScheduler(shift=3.0, **scheduler)
    return {"transformer": transformer, "vae": vae, "scheduler": flow, "text_encoder": encoder, "tokenizer": words}


def sd3(folder: Path) -> Parts:
    words, long = clip_words(folder / "clip"), t5_words(folder / "t5")
    transformer = diffusers.SD3Transformer2DModel(
        **{"sample_size": 8, "num_layers": 2, "attention_head_dim": 8, "num_attention_heads": 4, "in_channels": 16},
        **{"joint_attention_dim": 96, "caption_projection_dim": 32, "pooled_projection_dim": 48, "out_channels": 16},
        **{"pos_embed_max_size": 96, "dual_attention_layers": (0,), "qk_norm": "rms_norm"},
    )
    clips = [transformers.CLIPTextModelWithProjection(text_config(words, 2 * width, width)) for width in (16, 32)]
    parts = flowing(transformer, kl16(), clips[0], words)
    second = {"text_encoder_2": clips[1], "tokenizer_2": words}
    return {**parts, **second, "text_encoder_3": t5(long, 96), "tokenizer_3": long}


def flux(folder: Path, channels: int = 64) -> Parts:
    words, long = clip_words(folder / "clip"), t5_words(folder / "t5")
    transformer = diffusers.FluxTransformer2DModel(
        **{"in_channels": channels, "out_channels": 64, "num_layers": 1, "num_single_layers": 1},
        **{"attention_head_dim": 16, "num_attention_heads": 2, "joint_attention_dim": 32, "pooled_projection_dim": 32},
        **{"guidance_embeds": True, "axes_dims_rope": (4, 6, 6)},
    )
    clip = transformers.CLIPTextModel(text_config(words, 32))
    parts = flowing(transformer, kl16(), clip, words, use_dynamic_shifting=True)
    return {**parts, "text_encoder_2": t5(long, 32), "tokenizer_2": long}


def klein(folder: Path) -> Parts:
    words = qwen_words(folder)
    transformer = diffusers.Flux2Transformer2DModel(
        **{"in_channels": 128, "num_layers": 1, "num_single_layers": 1, "attention_head_dim": 16},
        **{"num_attention_heads": 2, "joint_attention_dim": 48, "timestep_guidance_channels": 32},
        **{"axes_dims_rope": (4, 4, 4, 4), "guidance_embeds": False},
    )
    vae = diffusers.AutoencoderKLFlux2(block_out_channels=(8, 8, 16, 16), layers_per_block=1, norm_num_groups=4)
    encoder = qwen3(words, 28, transformers.Qwen3ForCausalLM)
    return flowing(transformer, loud(vae), encoder, words, use_dynamic_shifting=True)


def qwen_image(folder: Path) -> Parts:
    words = qwen_words(folder)
    transformer = diffusers.QwenImageTransformer2DModel(
        **{"in_channels": 64, "out_channels": 16, "num_layers": 2, "attention_head_dim": 16},
        **{"num_attention_heads": 2, "joint_attention_dim": 32, "axes_dims_rope": (4, 6, 6)},
    )
    vae = loud(diffusers.AutoencoderKLQwenImage(base_dim=8, num_res_blocks=1))
    return flowing(transformer, vae, qwen_vl(words), words, use_dynamic_shifting=True)


def qwen_edit(folder: Path) -> Parts:
    parts = qwen_image(folder)
    images = transformers.Qwen2VLImageProcessor(min_pixels=28 * 28, max_pixels=56 * 56)
    videos = transformers.Qwen2VLVideoProcessor()
    return {**parts, "processor": transformers.Qwen2VLProcessor(images, parts["tokenizer"], videos, chat_template="")}


def z_image(folder: Path) -> Parts:
    words = qwen_words(folder)
    transformer = diffusers.ZImageTransformer2DModel(
        **{"dim": 32, "n_layers": 2, "n_refiner_layers": 1, "n_heads": 2, "n_kv_heads": 2, "cap_feat_dim": 16},
        **{"axes_dims": [4, 6, 6], "axes_lens": [1024, 64, 64]},
    )
    return flowing(transformer, kl16(), qwen3(words, 3, transformers.Qwen3Model), words)


DRAWING: dict[str, Callable[[Path], Parts]] = {
    "StableDiffusionPipeline": partial(unet, sd, 4),
    "StableDiffusionXLPipeline": partial(unet, sdxl, 4),
    "StableDiffusion3Pipeline": sd3,
    "FluxPipeline": flux,
    "Flux2KleinPipeline": klein,
    "QwenImagePipeline": qwen_image,
    "ZImagePipeline": z_image,
}
EDITING: dict[str, Callable[[Path], Parts]] = {
    "StableDiffusionInstructPix2PixPipeline": partial(unet, sd, 8),
    "FluxKontextPipeline": flux,
    "QwenImageEditPipeline": qwen_edit,
    "QwenImageEditPlusPipeline": qwen_edit,
    "StableDiffusionInpaintPipeline": partial(unet, sd, 9),
    "StableDiffusionXLInpaintPipeline": partial(unet, sdxl, 9),
    "StableDiffusion3InpaintPipeline": sd3,
    "FluxFillPipeline": partial(flux, channels=384),
    "FluxInpaintPipeline": flux,
    "QwenImageInpaintPipeline": qwen_image,
    "ZImageInpaintPipeline": z_image,
}
ALL = {**DRAWING, **EDITING}


def save(folder: Path, name: str) -> Path:
    torch.manual_seed(7)
    parts = ALL[name](folder / "words")
    getattr(diffusers, name)(**parts).save_pretrained(folder / "model")
    if "processor" in parts:  # as published; newer versions save it with the whole processor alone
        parts["processor"].image_processor.save_pretrained(folder / "model/processor")
    return folder / "model"
