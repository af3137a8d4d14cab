"""Tokenizers, trained on the words below, and text encoders with random weights, as pipelines have them."""

import json
from pathlib import Path
from typing import Any

import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from tests.models.diffusion.tiny_models import WORDS

CHATTED = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>")
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
    made = transformers.T5TokenizerFast(vocab=pieces, extra_ids=0, model_max_length=512)
    made.save_pretrained(folder)
    return transformers.T5TokenizerFast.from_pretrained(folder)


def qwen_words(folder: Path) -> Any:
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=500, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    raw.train_from_iterator(TEXT, trainer)
    said = json.loads(raw.to_str())["model"]
    made = transformers.Qwen2TokenizerFast(vocab=said["vocab"], merges=[tuple(one) for one in said["merges"]])
    made.add_special_tokens({"additional_special_tokens": [*CHATTED[1:]]})
    made.chat_template = QWEN3
    made.save_pretrained(folder)
    return transformers.Qwen2TokenizerFast.from_pretrained(folder)


def t5(words: Any, width: int) -> Any:
    sizes = {"d_model": width, "d_kv": 8, "d_ff": 2 * width, "num_layers": 2, "num_heads": 4}
    config = transformers.T5Config(vocab_size=len(words), feed_forward_proj="gated-gelu", **sizes)
    return transformers.T5EncoderModel(config).eval()


def qwen3(words: Any, width: int, layers: int, kind: Any) -> Any:
    sizes = {"hidden_size": width, "intermediate_size": 2 * width, "num_attention_heads": 2, "head_dim": 8}
    config = transformers.Qwen3Config(
        vocab_size=len(words), num_hidden_layers=layers, num_key_value_heads=1, tie_word_embeddings=True, **sizes
    )
    return kind(config).eval()


def qwen_vl(words: Any, width: int) -> Any:
    named = {name: words.convert_tokens_to_ids(f"<|{name}|>") for name in ("image_pad", "vision_start", "vision_end")}
    rope = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [1, 1, 2]}
    sizes: dict[str, Any] = {"hidden_size": width, "intermediate_size": 2 * width, "num_attention_heads": width // 8}
    text = {**sizes, "vocab_size": len(words), "num_hidden_layers": 2, "num_key_value_heads": 1}
    vision = {"hidden_size": 16, "intermediate_size": 32, "depth": 2, "num_heads": 2, "out_hidden_size": width}
    config = transformers.Qwen2_5_VLConfig(
        text_config={**text, "rope_parameters": rope},
        vision_config={**vision, "fullatt_block_indexes": [1]},
        image_token_id=named["image_pad"],
        video_token_id=named["image_pad"],
        vision_start_token_id=named["vision_start"],
        vision_end_token_id=named["vision_end"],
    )
    return transformers.Qwen2_5_VLForConditionalGeneration(config).eval()
