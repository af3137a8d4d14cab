"""The parts of the small model as diffusers and transformers know them, and its folder."""

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
from diffusers import DPMSolverMultistepScheduler, StableDiffusionPipeline, UNet2DConditionModel
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import CLIPTextConfig, CLIPTextModel, CLIPTokenizer

from twinset_demo.small_diffusion.scenes import sample_scene

LENGTH = 24  # tokens of a caption, with its start and end
WIDTH = 128  # of the text encoder


def new_tokenizer(folder: Path, captions: Collection[str] = ()) -> Any:
    """A byte-pair tokenizer in CLIP's manner: the words of the small world are tokens, others fall into letters.

    Args:
        captions: what it learns its words from; without any, captions of `sample_scene`.
    """
    rng = np.random.default_rng(0)
    captions = captions or sorted({sample_scene(rng).caption() + "." for _ in range(4000)})
    tokenizer = Tokenizer(models.BPE(end_of_word_suffix="</w>"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(" ", "removed"),
            pre_tokenizers.Punctuation(),
            pre_tokenizers.ByteLevel(False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=4096, end_of_word_suffix="</w>", initial_alphabet=alphabet, min_frequency=1
    )
    tokenizer.train_from_iterator(captions, trainer)
    learned = json.loads(tokenizer.to_str())["model"]
    # Every letter, alone and as the end of a word, then what was merged, as in CLIP's own vocabulary.
    merges = [" ".join(pair) for pair in learned["merges"]]
    words = [*alphabet, *(f"{letter}</w>" for letter in alphabet), *("".join(pair) for pair in learned["merges"])]
    words = [*dict.fromkeys(words), "<|startoftext|>", "<|endoftext|>"]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.json").write_text(json.dumps({word: index for index, word in enumerate(words)}))
    (folder / "merges.txt").write_text("\n".join(["#version: 0.2", *merges, ""]))
    return CLIPTokenizer(str(folder / "vocab.json"), str(folder / "merges.txt"), model_max_length=LENGTH)


def new_text_encoder(tokenizer: Any, layers: int = 2) -> Any:
    """A few layers, learned with the UNet from nothing."""
    return CLIPTextModel(
        CLIPTextConfig(
            vocab_size=len(tokenizer),
            hidden_size=WIDTH,
            intermediate_size=2 * WIDTH,
            projection_dim=WIDTH,
            num_hidden_layers=layers,
            num_attention_heads=4,
            max_position_embeddings=LENGTH,
            bos_token_id=tokenizer.bos_token_id,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    )


def new_unet() -> Any:
    """16 x 16 latents; cross attention where they are 8 and 4 on a side."""
    return UNet2DConditionModel(
        sample_size=16,
        in_channels=8,
        out_channels=8,
        layers_per_block=1,
        block_out_channels=(48, 96, 160),
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"),
        cross_attention_dim=WIDTH,
        attention_head_dim=4,  # diffusers means the number of heads
        norm_num_groups=8,
    )


def new_scheduler() -> Any:
    """Cosine noise, the network predicts velocities."""
    return DPMSolverMultistepScheduler(
        beta_schedule="squaredcos_cap_v2", prediction_type="v_prediction", timestep_spacing="trailing", steps_offset=1
    )


def save(folder: Path, unet: Any, text: Any, tokenizer: Any, vae: Any) -> None:
    """The whole model as `StableDiffusionPipeline.from_pretrained` reads it; weights in half precision, to be small.

    The parts that are given are halved too.
    """
    pipeline: Any = StableDiffusionPipeline(
        vae=vae,
        text_encoder=text,
        tokenizer=tokenizer,
        unet=unet,
        scheduler=new_scheduler(),
        safety_checker=None,
        feature_extractor=None,
        requires_safety_checker=False,
    )
    for part in (vae, text, unet):
        part.half()
    pipeline.save_pretrained(folder, safe_serialization=True)
