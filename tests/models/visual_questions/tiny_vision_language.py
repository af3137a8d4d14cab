"""Four architectures that write about images, with random weights, saved as transformers saves the published ones."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

KINDS = ("qwen2_vl", "llava", "internvl", "idefics3")
ENCODING = ("blip-2", "instructblip")  # with T5
SPECIAL = (
    *("<pad>", "<s>", "</s>", "<unk>", "<image>", "<video>", "<|vision_start|>", "<|vision_end|>"),
    *("<img>", "</img>", "<fake_token_around_image>", "<global-img>", "<end_of_utterance>"),
    *("<row_1_col_1>", "<row_1_col_2>", "<row_2_col_1>", "<row_2_col_2>"),
)
TEXT = """
1 2 yes no Yes No ? . , : ( ) " ' ; USER ASSISTANT a red blue green wall cat dog on the mat without windows Does this
figure show Please answer or Describe image in one sentence Which caption best describes Answer with number of There are
two images
"""
WORDS = (*SPECIAL, *TEXT.split())
#: Turns one after the other, each image as its own word; `{}`: what stands for an image.
TEMPLATE = (
    "{{% for turn in messages %}}{{{{ 'USER : ' }}}}{{% for part in turn['content'] %}}"
    "{{{{ '{}' if part['type'] == 'image' else part['text'] }}}}"
    "{{% endfor %}}{{% endfor %}}{{% if add_generation_prompt %}}{{{{ ' ASSISTANT :' }}}}{{% endif %}}"
)
#: About as many tokens of an image, and layers, as make a pass cost what it costs: for the bench.
SMALL, LARGE = (32, 2, 28), (256, 4, 336)  # width, layers, pixels


def pictures(count: int, seed: int = 0, side: int = 40) -> list[Image.Image]:
    drawn = np.random.default_rng(seed)
    return [Image.fromarray(drawn.integers(0, 256, (side, side + 16, 3), np.uint8)) for _ in range(count)]


def tokenizer(**more: str) -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel({word: n for n, word in enumerate(dict.fromkeys(WORDS))}, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.add_special_tokens([*SPECIAL])
    words.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    names = {"pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    return PreTrainedTokenizerFast(tokenizer_object=words, extra_special_tokens=more, **names)


def save(folder: Path, kind: str, size: tuple[int, int, int] = SMALL, seed: int = 0) -> Path:
    """A model of ``kind``, one of `KINDS`."""
    import transformers

    width, layers, side = size
    number = {word: n for n, word in enumerate(dict.fromkeys(WORDS))}
    text = {
        "hidden_size": width, "intermediate_size": 2 * width, "num_hidden_layers": layers, "num_attention_heads": 4,
        "num_key_value_heads": 2, "vocab_size": len(number), "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
        "max_position_embeddings": 4096,
    }  # fmt: skip
    vision = {
        "hidden_size": width, "intermediate_size": 2 * width, "num_hidden_layers": layers, "num_attention_heads": 4,
        "image_size": side, "patch_size": 14,
    }  # fmt: skip
    if kind in ENCODING:
        return _save_encoding(folder, kind, seed)
    patches = (side // 14) ** 2
    fixed = {"size": {"height": side, "width": side}}
    torch.manual_seed(seed)
    config: Any
    if kind == "qwen2_vl":
        rope = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [width // 32, width // 32, width // 16]}
        config = transformers.Qwen2VLConfig(
            text_config={**text, "rope_parameters": rope},
            vision_config={"embed_dim": width, "hidden_size": width, "depth": layers, "num_heads": 4, "mlp_ratio": 2},
            image_token_id=number["<image>"],
            video_token_id=number["<video>"],
            vision_start_token_id=number["<|vision_start|>"],
            vision_end_token_id=number["<|vision_end|>"],
        )
        images = transformers.Qwen2VLImageProcessor(min_pixels=28 * 28, max_pixels=side * side)
        processor: Any = transformers.Qwen2VLProcessor(
            images,
            tokenizer(image_token="<image>", video_token="<video>"),
            transformers.Qwen2VLVideoProcessor(),
            chat_template=TEMPLATE.format("<|vision_start|><image><|vision_end|>"),
        )
    elif kind == "llava":
        config = transformers.LlavaConfig(
            vision_config=transformers.CLIPVisionConfig(**vision),
            text_config=transformers.LlamaConfig(**text),
            image_token_index=number["<image>"],
            vision_feature_layer=-1,
        )
        processor = transformers.LlavaProcessor(
            transformers.CLIPImageProcessor(size={"shortest_edge": side}, crop_size=fixed["size"]),
            tokenizer(),
            patch_size=14,
            vision_feature_select_strategy="default",
            chat_template="<s> " + TEMPLATE.format("<image> "),
            image_token="<image>",
            num_additional_image_tokens=1,
        )
    elif kind == "internvl":
        config = transformers.InternVLConfig(
            vision_config={**vision, "image_size": [side, side], "patch_size": [14, 14]},
            text_config={**text, "model_type": "qwen2"},
            image_token_id=number["<image>"],
            image_seq_length=patches // 4,
        )
        processor = transformers.InternVLProcessor(
            transformers.GotOcr2ImageProcessor(**fixed),
            tokenizer(
                start_image_token="<img>",
                end_image_token="</img>",
                context_image_token="<image>",
                video_token="<video>",
            ),
            transformers.InternVLVideoProcessor(),
            image_seq_length=patches // 4,
            chat_template=TEMPLATE.format("<image>\n"),
        )
    else:
        config = transformers.Idefics3Config(
            vision_config=vision,
            text_config={**text, "model_type": "llama"},
            image_token_id=number["<image>"],
            scale_factor=2,
        )
        processor = transformers.Idefics3Processor(
            transformers.Idefics3ImageProcessor(size={"longest_edge": 2 * side}, max_image_size={"longest_edge": side}),
            tokenizer(),
            image_seq_len=patches // 4,
            chat_template=TEMPLATE.format("<image>"),
        )
    model = transformers.AutoModelForImageTextToText.from_config(config)
    for name, weight in model.named_parameters():  # so that answers differ: as made, all are nearly alike
        if weight.ndim > 1 and "embed" not in name:
            weight.data *= 3
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


def _save_encoding(folder: Path, kind: str, seed: int) -> Path:
    """A model of `ENCODING`; its tokenizers end a prompt as T5's does."""
    import transformers

    from tests.evaluation.scorers.tiny_models import save_tokenizer

    words = tokenizer()
    known = len(words) + 1  # and the token of images, which the processor adds
    small = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    parts = {
        "vision_config": {**small, "image_size": 28, "patch_size": 14},
        "qformer_config": {**small, "encoder_hidden_size": 16, "vocab_size": 14},
        "text_config": {
            "model_type": "t5", "vocab_size": known, "d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2,
            "num_heads": 2,
            "pad_token_id": 0, "decoder_start_token_id": 0, "eos_token_id": 2,
        },
    }  # fmt: skip
    torch.manual_seed(seed)
    image_token = words.convert_tokens_to_ids("<image>")
    pixels: Any = transformers.BlipImageProcessor(size={"height": 28, "width": 28})
    if kind == "blip-2":
        config: Any = transformers.Blip2Config(**parts, num_query_tokens=3, image_token_index=image_token)
        model: Any = transformers.Blip2ForConditionalGeneration(config)
        processor: Any = transformers.Blip2Processor(pixels, words, num_query_tokens=3)
    else:
        config = transformers.InstructBlipConfig(**parts, num_query_tokens=3, image_token_index=image_token)
        model = transformers.InstructBlipForConditionalGeneration(config)
        save_tokenizer(folder / "qformer_tokenizer", "blip")
        reads = transformers.AutoTokenizer.from_pretrained(folder / "qformer_tokenizer")
        processor = transformers.InstructBlipProcessor(pixels, words, reads, num_query_tokens=3)
    for weight in model.parameters():  # so that answers differ with images: as made, all are nearly alike
        if weight.ndim > 1:
            torch.nn.init.normal_(weight, std=0.4)
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder
