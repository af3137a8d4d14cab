"""Architectures that write about images, with random weights, saved as transformers saves the published ones."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from PIL import Image

from tests.tiny_encoders import save_tokenizer

KINDS = ("qwen2_vl", "llava", "idefics3")
ENCODING = ("blip-2", "instructblip")  # with T5
MARKS = """
<pad> <s> </s> <unk> <image> <video> <|vision_start|> <|vision_end|> <fake_token_around_image> <global-img>
<end_of_utterance> <row_1_col_1> <row_1_col_2> <row_2_col_1> <row_2_col_2>
"""
TEXT = """
1 2 yes no Yes No ? . , : ( ) " ' ; USER ASSISTANT a red blue green wall cat dog on the mat without windows Does this
figure show Please answer or Describe image in one sentence
"""
SPECIAL = MARKS.split()
NUMBERS = {word: number for number, word in enumerate([*SPECIAL, *TEXT.split()])}
#: Turns one after the other; `{}`: what stands for an image.
TEMPLATE = (
    "{{% for turn in messages %}}{{{{ 'USER : ' }}}}{{% for part in turn['content'] %}}"
    "{{{{ '{}' if part['type'] == 'image' else part['text'] }}}}"
    "{{% endfor %}}{{% endfor %}}{{% if add_generation_prompt %}}{{{{ ' ASSISTANT :' }}}}{{% endif %}}"
)
#: About as many tokens of an image, and layers, as make a pass cost what it costs: for the bench.
SMALL, LARGE = (32, 2, 28), (256, 4, 336)  # width, layers, pixels


def pictures(count: int, seed: int = 0, side: int = 40) -> list[Image.Image]:
    random = np.random.default_rng(seed)
    return [Image.fromarray(random.integers(0, 256, (side, side + 16, 3), np.uint8)) for _ in range(count)]


def tokenizer(**more: str) -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    words = Tokenizer(models.WordLevel(NUMBERS, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.add_special_tokens(SPECIAL)
    words.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    names = {"pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=words, extra_special_tokens=more, **names)


def save(folder: Path, kind: str, size: tuple[int, int, int] = SMALL, seed: int = 0) -> Path:
    """A model of ``kind``, one of `KINDS` or `ENCODING`."""
    torch.manual_seed(seed)
    model, processor = _encoding(folder, kind) if kind in ENCODING else _decoding(kind, *size)
    for name, weight in model.named_parameters():  # so that answers differ: as made, all are nearly alike
        if weight.ndim > 1 and kind in ENCODING:
            torch.nn.init.normal_(weight, std=0.4)
        elif weight.ndim > 1 and "embed" not in name:
            weight.data *= 3
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


def _decoding(kind: str, width: int, layers: int, side: int) -> tuple[Any, Any]:
    shape = {
        "hidden_size": width,
        "intermediate_size": 2 * width,
        "num_hidden_layers": layers,
        "num_attention_heads": 4,
    }
    ids = {"vocab_size": len(NUMBERS), "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    text: dict[str, Any] = {**shape, **ids, "num_key_value_heads": 2, "max_position_embeddings": 4096}
    vision, image_id = {**shape, "image_size": side, "patch_size": 14}, {"image_token_id": NUMBERS["<image>"]}
    config: Any
    processor: Any
    if kind == "qwen2_vl":
        rope = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [width // 32, width // 32, width // 16]}
        sizes = {"embed_dim": width, "hidden_size": width, "depth": layers, "num_heads": 4, "mlp_ratio": 2}
        ids = {"video_token_id": NUMBERS["<video>"], "vision_start_token_id": NUMBERS["<|vision_start|>"], **image_id}
        config = transformers.Qwen2VLConfig(text_config={**text, "rope_parameters": rope}, vision_config=sizes, **ids)
        processor = transformers.Qwen2VLProcessor(
            transformers.Qwen2VLImageProcessor(min_pixels=28 * 28, max_pixels=side * side),
            tokenizer(image_token="<image>", video_token="<video>"),
            transformers.Qwen2VLVideoProcessor(),
            chat_template=TEMPLATE.format("<|vision_start|><image><|vision_end|>"),
        )
    elif kind == "llava":
        towers = {
            "vision_config": transformers.CLIPVisionConfig(**vision),
            "text_config": transformers.LlamaConfig(**text),
        }
        config = transformers.LlavaConfig(**towers, image_token_index=NUMBERS["<image>"], vision_feature_layer=-1)
        processor = transformers.LlavaProcessor(
            transformers.CLIPImageProcessor(size={"shortest_edge": side}, crop_size={"height": side, "width": side}),
            tokenizer(),
            patch_size=14,
            vision_feature_select_strategy="default",
            chat_template="<s> " + TEMPLATE.format("<image> "),
            image_token="<image>",
            num_additional_image_tokens=1,
        )
    else:
        text["model_type"] = "llama"
        config = transformers.Idefics3Config(vision_config=vision, text_config=text, scale_factor=2, **image_id)
        processor = transformers.Idefics3Processor(
            transformers.Idefics3ImageProcessor(size={"longest_edge": 2 * side}, max_image_size={"longest_edge": side}),
            tokenizer(),
            image_seq_len=(side // 14) ** 2 // 4,
            chat_template=TEMPLATE.format("<image>"),
        )
    return transformers.AutoModelForImageTextToText.from_config(config), processor


def _encoding(folder: Path, kind: str) -> tuple[Any, Any]:
    small = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    sizes = {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2, "vocab_size": len(NUMBERS) + 1}
    parts: dict[str, Any] = {
        "vision_config": {**small, "image_size": 28, "patch_size": 14},
        "qformer_config": {**small, "encoder_hidden_size": 16, "vocab_size": 14},
        "text_config": {"model_type": "t5", **sizes, "pad_token_id": 0, "decoder_start_token_id": 0, "eos_token_id": 2},
        "image_token_index": NUMBERS["<image>"],
    }
    images, given = transformers.BlipImageProcessor(size={"height": 28, "width": 28}), {"num_query_tokens": 3}
    if kind == "blip-2":
        model = transformers.Blip2ForConditionalGeneration(transformers.Blip2Config(**parts, **given))
        return model, transformers.Blip2Processor(images, tokenizer(), **given)
    save_tokenizer(folder / "qformer_tokenizer", "blip")
    reads = transformers.AutoTokenizer.from_pretrained(folder / "qformer_tokenizer")
    model = transformers.InstructBlipForConditionalGeneration(transformers.InstructBlipConfig(**parts, **given))
    return model, transformers.InstructBlipProcessor(images, tokenizer(), reads, **given)
