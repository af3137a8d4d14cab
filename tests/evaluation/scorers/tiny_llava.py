"""LLaVA with random weights, in the layout of the published checkpoints, that can say only some words."""

from collections.abc import Collection
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    CLIPImageProcessor,
    CLIPVisionConfig,
    LlamaConfig,
    LlavaConfig,
    LlavaForConditionalGeneration,
    LlavaProcessor,
    PreTrainedTokenizerFast,
)

IMAGE = "<image>"
WORDS = ("<pad>", "<s>", "</s>", "<unk>", IMAGE, "1", "2", "yes", "no", "red", "blue", "wall", "(", ")")
#: Turns are written one after the other, an image as one word.
TEMPLATE = (
    "{% for turn in messages %}{% for part in turn['content'] %}"
    "{{ '<image> ' if part['type'] == 'image' else part['text'] }}"
    "{% endfor %}{% endfor %}"
)
SIDE, PATCH = 16, 8  # pixels; an image is (16 / 8)² = 4 tokens


def save_llava(folder: Path, says: Collection[str]) -> None:
    """Weights, processor and settings of a model that says nothing but some of `WORDS`."""
    words = Tokenizer(models.WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    special = {"pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, additional_special_tokens=[IMAGE], **special)
    LlavaProcessor(
        CLIPImageProcessor(size={"shortest_edge": SIDE}, crop_size={"height": SIDE, "width": SIDE}),
        tokenizer,
        patch_size=PATCH,
        vision_feature_select_strategy="default",
        chat_template=TEMPLATE,
        image_token=IMAGE,
        num_additional_image_tokens=1,
    ).save_pretrained(folder)
    size = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    torch.manual_seed(0)
    model = LlavaForConditionalGeneration(
        LlavaConfig(
            vision_config=CLIPVisionConfig(image_size=SIDE, patch_size=PATCH, **size),
            text_config=LlamaConfig(vocab_size=len(WORDS), pad_token_id=0, bos_token_id=1, eos_token_id=2, **size),
            image_token_index=WORDS.index(IMAGE),
            vision_feature_layer=-1,
        )
    )
    model.generation_config.suppress_tokens = [number for number, word in enumerate(WORDS) if word not in says]
    model.save_pretrained(folder)
