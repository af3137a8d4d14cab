"""Text-to-image models with random weights, saved as diffusers saves them: Stable Diffusion 1.4's, SDXL's, a small one.

The UNets' structure is that of the real configurations, as their parameter counts at the real widths show; channels are
a tenth as many, text encoders and autoencoders are tiny. Nothing is downloaded: the tokenizer is a byte-pair vocabulary
of CLIP's kind, made here, that knows some words and cuts others.
"""

import json
from pathlib import Path
from typing import Any

import diffusers
import torch
import transformers
from diffusers import UNet2DConditionModel
from transformers import CLIPTokenizer

WORDS = "a of in the on photo painting squirrel lion cat dog burger eating red green blue circle square winter soup pea"
TOKENS = 77
NOISE: dict[str, Any] = {"beta_start": 0.00085, "beta_end": 0.012, "beta_schedule": "scaled_linear"}
CHANNELS_14 = (320, 640, 1280, 1280)  # Stable Diffusion 1.4
#: SDXL base 1.0's widths; its text encoders have more layers than those made here.
REAL_XL: dict[str, Any] = {
    **{"channels": (320, 640, 1280), "heads": (5, 10, 20), "texts": (768, 1280), "pooled": 1280, "sizes": 256},
    **{"vae": (128, 256, 512, 512), "groups": (32, 32)},
}
TENTH_XL: dict[str, Any] = {
    **{"channels": (32, 64, 128), "heads": (2, 4, 8), "texts": (32, 64), "pooled": 40, "sizes": 8},
    **{"vae": (8, 8, 16, 16), "groups": (16, 4)},
}


def tokenizer(folder: Path) -> CLIPTokenizer:
    """CLIP's vocab.json and merges.txt for WORDS; any other word is cut into letters, or into known beginnings."""
    letters = "abcdefghijklmnopqrstuvwxyz.,"
    merges: list[tuple[str, str]] = []
    for word in WORDS.split():
        pieces = [*word[:-1], f"{word[-1]}</w>"]
        while len(pieces) > 1:
            merge = (pieces[0], pieces[1])
            if merge not in merges:
                merges.append(merge)
            pieces = ["".join(merge), *pieces[2:]]
    vocabulary = [*letters, *(f"{letter}</w>" for letter in letters), *("".join(merge) for merge in merges)]
    vocabulary = [*dict.fromkeys(vocabulary), "<|startoftext|>", "<|endoftext|>"]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.json").write_text(json.dumps({token: at for at, token in enumerate(vocabulary)}))
    (folder / "merges.txt").write_text("#version: 0.2\n" + "\n".join(" ".join(merge) for merge in merges) + "\n")
    (folder / "tokenizer_config.json").write_text(json.dumps({"model_max_length": TOKENS}))
    return CLIPTokenizer.from_pretrained(folder)


def text_config(words: CLIPTokenizer, width: int, projection: int = 32) -> transformers.CLIPTextConfig:
    marks = {f"{mark}_token_id": getattr(words, f"{mark}_token_id") for mark in ("bos", "eos", "pad")}
    sizes = {"hidden_size": width, "intermediate_size": 2 * width, "num_hidden_layers": 2, "num_attention_heads": 4}
    return transformers.CLIPTextConfig(
        vocab_size=len(words), projection_dim=projection, max_position_embeddings=TOKENS, **sizes, **marks
    )


def unet_14(channels: tuple[int, ...], context: int) -> UNet2DConditionModel:
    """Stable Diffusion 1.4's unet/config.json, whose blocks are the library's defaults, with other channels."""
    return UNet2DConditionModel(sample_size=64, block_out_channels=channels, cross_attention_dim=context)


def unet_xl(
    channels: tuple[int, ...], heads: tuple[int, ...], context: int, pooled: int, sizes: int = 8, groups: int = 16
) -> UNet2DConditionModel:
    """SDXL's unet/config.json with other channels: two levels with 2 and 10 transformer layers, added embeddings."""
    return UNet2DConditionModel(
        sample_size=128,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"),
        block_out_channels=channels,
        transformer_layers_per_block=(1, 2, 10),
        cross_attention_dim=context,
        attention_head_dim=heads,
        use_linear_projection=True,
        addition_embed_type="text_time",
        addition_time_embed_dim=sizes,
        projection_class_embeddings_input_dim=6 * sizes + pooled,
        norm_num_groups=groups,
    )


def sharpen(unet: UNet2DConditionModel) -> UNet2DConditionModel:
    """Random queries attend to all tokens alike; larger ones choose, so that replaced attention can be seen."""
    for name, module in unet.named_modules():
        if name.endswith("to_q"):
            module.weight.data *= 8
    return unet


def autoencoder(channels: tuple[int, ...] = (8, 8, 16, 16), groups: int = 4, **more: Any) -> diffusers.AutoencoderKL:
    blocks = {"down_block_types": ("DownEncoderBlock2D",) * 4, "up_block_types": ("UpDecoderBlock2D",) * 4}
    layers = 1 if groups == 4 else 2
    return diffusers.AutoencoderKL(
        block_out_channels=channels, layers_per_block=layers, norm_num_groups=groups, **blocks, **more
    )


def sd(folder: Path, channels: tuple[int, ...] = (32, 64, 64, 64), context: int = 48) -> dict[str, Any]:
    """Stable Diffusion 1.4: its own PNDM scheduler, AutoencoderKL, one text encoder."""
    words = tokenizer(folder)
    return {
        "vae": autoencoder(scaling_factor=0.18215),
        "text_encoder": transformers.CLIPTextModel(text_config(words, context)),
        "tokenizer": words,
        "unet": sharpen(unet_14(channels, context)),
        "scheduler": diffusers.PNDMScheduler(**NOISE, skip_prk_steps=True, steps_offset=1, set_alpha_to_one=False),
        **{"safety_checker": None, "feature_extractor": None, "requires_safety_checker": False},
    }


def sdxl(folder: Path, widths: dict[str, Any] = TENTH_XL) -> dict[str, Any]:
    """SDXL base 1.0: two encoders and tokenizers, pooled embedding, Euler scheduler.

    widths: channels and heads of the UNet's levels; channels of the text encoders, of the pooled caption, of each
    number on the image's size and of the autoencoder; groups of normalisation, UNet's and autoencoder's.
    """
    words, texts, pooled, groups = tokenizer(folder), widths["texts"], widths["pooled"], widths["groups"]
    unet = unet_xl(widths["channels"], widths["heads"], sum(texts), pooled, widths["sizes"], groups[0])
    return {
        "vae": autoencoder(widths["vae"], groups[1], scaling_factor=0.13025),
        "text_encoder": transformers.CLIPTextModel(text_config(words, texts[0])),
        "text_encoder_2": transformers.CLIPTextModelWithProjection(text_config(words, texts[1], pooled)),
        "tokenizer": words,
        "tokenizer_2": tokenizer(folder),
        "unet": sharpen(unet),
        "scheduler": diffusers.EulerDiscreteScheduler(**NOISE, steps_offset=1, timestep_spacing="leading"),
    }


def save_stable_diffusion(folder: Path, **widths: Any) -> Path:
    """The UNet in half precision."""
    torch.manual_seed(14)
    parts = sd(folder / "words", **{"channels": (32, 64, 128, 128), **widths})
    parts["unet"].half()
    diffusers.StableDiffusionPipeline(**parts).save_pretrained(folder / "model")
    return folder / "model"


def save_sdxl(folder: Path, widths: dict[str, Any] = TENTH_XL, half: bool = False) -> Path:
    """In files of the variant fp16 alone. half: whether these are in half precision, as their name says."""
    torch.manual_seed(10)
    parts = sdxl(folder / "words", widths)
    if half:
        for part in ("vae", "text_encoder", "text_encoder_2", "unet"):
            parts[part].half()
    diffusers.StableDiffusionXLPipeline(**parts).save_pretrained(folder / "model", variant="fp16")
    return folder / "model"


def save_small(folder: Path) -> Path:
    """A model for 64 x 64 pixels: 16 x 16 latents, cross-attention at 8 and 4, AutoencoderTiny, v-prediction."""
    torch.manual_seed(16)
    parts = sd(folder / "words", context=32)
    unet = UNet2DConditionModel(
        sample_size=16,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"),
        block_out_channels=(16, 32, 32),
        layers_per_block=1,
        cross_attention_dim=32,
        attention_head_dim=4,
        norm_num_groups=8,
    )
    sides = ("encoder", "decoder")
    widths = {f"{side}_block_out_channels": (8, 8, 8) for side in sides}
    vae = diffusers.AutoencoderTiny(**widths, **{f"num_{side}_blocks": (1, 1, 1) for side in sides})
    vae.decoder.layers[-1].weight.data *= 100  # a random decoder paints all grey
    steps: dict[str, Any] = {"clip_sample": False, "timestep_spacing": "trailing", "steps_offset": 1}
    parts |= {"vae": vae, "scheduler": diffusers.DDIMScheduler(prediction_type="v_prediction", **steps)}
    diffusers.StableDiffusionPipeline(**{**parts, "unet": sharpen(unet)}).save_pretrained(folder / "model")
    return folder / "model"


def save_clip(folder: Path) -> Path:
    """A CLIP model with an image and a text encoder."""
    words = tokenizer(folder / "words")
    vision = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    vision |= {"image_size": 32, "patch_size": 8}
    torch.manual_seed(0)
    text = text_config(words, 16).to_dict()
    config = transformers.CLIPConfig(text_config=text, vision_config=vision, projection_dim=8)
    transformers.CLIPModel(config).save_pretrained(folder)
    words.save_pretrained(folder)
    sizes = {"size": {"shortest_edge": 32}, "crop_size": {"height": 32, "width": 32}}
    transformers.CLIPImageProcessor(**sizes).save_pretrained(folder)
    return folder
