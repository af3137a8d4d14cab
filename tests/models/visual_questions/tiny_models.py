"""BLIP and ViLT for visual question answering with random weights, in the layout of the published checkpoints."""

from pathlib import Path

import torch
from transformers import (
    BertTokenizer,
    BlipConfig,
    BlipForQuestionAnswering,
    BlipImageProcessor,
    ViltConfig,
    ViltForQuestionAnswering,
    ViltImageProcessor,
)

WORDS = (
    *("yes", "no", "is", "are", "there", "a", "the", "dog", "ball", "red", "blue", "on", "in", "man"),
    *("sitting", "bench", "does", "have", "?", ",", "another", "left", "right", "of", "to"),
)
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, *"bcefghijklmnopqrstuvwxyz", "[DEC]"]
WIDTH = 32


def save_words(folder: Path) -> BertTokenizer:
    """``vocab.txt`` and the tokenizer's settings."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(dict.fromkeys(TOKENS)) + "\n")
    words = BertTokenizer.from_pretrained(folder)
    words.save_pretrained(folder)
    return words


def save_blip(folder: Path, seed: int = 0) -> Path:
    """As ``Salesforce/blip-vqa-base``: config.json, model.safetensors, preprocessor_config.json and a tokenizer."""
    words = save_words(folder)
    text = {
        "vocab_size": len(words),
        "hidden_size": WIDTH,
        "encoder_hidden_size": WIDTH,
        "intermediate_size": 2 * WIDTH,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "max_position_embeddings": 64,
        "bos_token_id": words.convert_tokens_to_ids("[DEC]"),
        "pad_token_id": words.pad_token_id,
        "sep_token_id": words.sep_token_id,
    }
    vision = {
        "hidden_size": WIDTH,
        "intermediate_size": 2 * WIDTH,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "image_size": 32,
        "patch_size": 8,
    }
    torch.manual_seed(seed)
    model = BlipForQuestionAnswering(BlipConfig(text_config=text, vision_config=vision))
    return _save(folder, sharpened(model), BlipImageProcessor(size={"height": 32, "width": 32}))


def save_vilt(folder: Path, seed: int = 0, labels: tuple[str, ...] = ("2", "no", "yes", "red")) -> Path:
    """As ``dandelin/vilt-b32-finetuned-vqa``, whose answers are labels."""
    words = save_words(folder)
    config = ViltConfig(
        vocab_size=len(words),
        hidden_size=WIDTH,
        intermediate_size=2 * WIDTH,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=40,
        image_size=64,
        patch_size=16,
        id2label=dict(enumerate(labels)),
        label2id={label: number for number, label in enumerate(labels)},
    )
    torch.manual_seed(seed)
    images = ViltImageProcessor(size={"shortest_edge": 48}, size_divisor=16)
    return _save(folder, sharpened(ViltForQuestionAnswering(config)), images)


def sharpened(model: torch.nn.Module) -> torch.nn.Module:
    """Larger weights, so that answers differ between questions and images."""
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() > 1 and "norm" not in name.lower():
                weight.mul_(8)
    return model.eval()


def _save(folder: Path, model: torch.nn.Module, images: BlipImageProcessor | ViltImageProcessor) -> Path:
    model.save_pretrained(folder)  # type: ignore[operator]
    images.save_pretrained(folder)
    return folder
