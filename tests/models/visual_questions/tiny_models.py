"""BLIP and ViLT for visual question answering with random weights, in the layout of the published checkpoints."""

from pathlib import Path
from typing import Any

import torch
import transformers

TEXT = """
[PAD] [UNK] [CLS] [SEP] [MASK] yes no is are there a the dog ball red blue on in man sitting bench does have ? , another
left right of to b c e f g h i j k l m n o p q r s t u v w x y z [DEC]
"""
WORDS = TEXT.split()
SMALL = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}


def save_blip(folder: Path, seed: int = 0) -> Path:
    """As ``Salesforce/blip-vqa-base``: config.json, model.safetensors, preprocessor_config.json and a tokenizer."""
    text = {"vocab_size": len(WORDS), "encoder_hidden_size": 32, "max_position_embeddings": 64, "pad_token_id": 0}
    ids = {"bos_token_id": WORDS.index("[DEC]"), "sep_token_id": WORDS.index("[SEP]")}
    vision = {**SMALL, "image_size": 32, "patch_size": 8}
    torch.manual_seed(seed)
    config = transformers.BlipConfig(text_config={**SMALL, **text, **ids}, vision_config=vision)
    images = transformers.BlipImageProcessor(size={"height": 32, "width": 32})
    return _save(folder, transformers.BlipForQuestionAnswering(config), images)


def save_vilt(folder: Path) -> Path:
    """As ``dandelin/vilt-b32-finetuned-vqa``, whose answers are labels."""
    labels = {"2": 0, "no": 1, "yes": 2, "red": 3}
    names = {"id2label": {number: label for label, number in labels.items()}, "label2id": labels}
    sizes = {"vocab_size": len(WORDS), "max_position_embeddings": 40, "image_size": 64, "patch_size": 16}
    torch.manual_seed(0)
    model = transformers.ViltForQuestionAnswering(transformers.ViltConfig(**SMALL, **sizes, **names))
    return _save(folder, model, transformers.ViltImageProcessor(size={"shortest_edge": 48}, size_divisor=16))


def _save(folder: Path, model: Any, images: Any) -> Path:
    """Save all; larger weights, so that answers differ between questions and images."""
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() > 1 and "norm" not in name.lower():
                weight.mul_(8)
    model.save_pretrained(folder)
    images.save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    transformers.BertTokenizer.from_pretrained(folder).save_pretrained(folder)
    return folder
