"""Real architectures with tiny random weights, in the published layouts."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

SIZE = 32
TEXT = {"context_length": 77, "vocab_size": 49408, "width": 16, "heads": 2, "layers": 2}
VISION = {"image_size": SIZE, "layers": 1, "width": 64, "patch_size": 16}
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "cat", "dog", "on", "the", "mat", "red", "blue", "."]


def open_clip_config(folder: Path, name: str = "tiny.json", **settings: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(json.dumps({"embed_dim": 8, "text_cfg": TEXT, "vision_cfg": VISION, **settings}))
    return path


def open_clip_network(seed: int = 0, **settings: Any) -> Any:
    import open_clip  # type: ignore[import-untyped]

    torch.manual_seed(seed)
    return open_clip.CLIP(**{"embed_dim": 8, "text_cfg": TEXT, "vision_cfg": VISION, **settings})


def images(count: int, seed: int = 0) -> list[Image.Image]:
    drawn = np.random.default_rng(seed)
    return [Image.fromarray(drawn.integers(0, 256, (40 + n % 3 * 8, 56, 3), np.uint8)) for n in range(count)]


def save_tokenizer(folder: Path, kind: str) -> None:
    """A tokenizer of a few words, as CLIP, SigLIP or the models of BERT's vocabulary have it."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    first, last = ("[CLS]", "[SEP]")
    tokenizer = Tokenizer(models.WordLevel({word: n for n, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    single = f"{first} $A {last}" if kind != "siglip" else f"$A {last}"
    tokenizer.post_processor = processors.TemplateProcessing(
        single=single, special_tokens=[(word, WORDS.index(word)) for word in (first, last)]
    )
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": first, "sep_token": last, "eos_token": last}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names).save_pretrained(folder)


def save_transformers(folder: Path, kind: str, seed: int = 0) -> Path:
    """A tiny model of ``kind`` (clip, siglip, blip, blip-2, vilt, flava) as ``save_pretrained`` writes it."""
    import transformers

    small = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    vision, square = {**small, "image_size": SIZE, "patch_size": 16}, {"height": SIZE, "width": SIZE}
    words = {**small, "vocab_size": len(WORDS), "pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}
    longest = {"clip": 77, "siglip": 64, "blip": 48, "blip-2": 48, "vilt": 40, "flava": 77}
    text = {**words, "max_position_embeddings": longest[kind]}
    towers: dict[str, Any] = {"text_config": text, "vision_config": vision}
    torch.manual_seed(seed)
    if kind == "clip":
        model = transformers.CLIPModel(transformers.CLIPConfig(**towers, projection_dim=8))
        processor = transformers.CLIPImageProcessor(size={"shortest_edge": SIZE}, crop_size=SIZE)
    elif kind == "siglip":
        text["projection_size"] = 16
        model = transformers.SiglipModel(transformers.SiglipConfig(**towers))
        processor = transformers.SiglipImageProcessor(size=square)
    elif kind == "blip":
        text["encoder_hidden_size"] = 16
        config = transformers.BlipConfig(**towers, image_text_hidden_size=8)
        model = transformers.BlipForImageTextRetrieval(config)
        processor = transformers.BlipImageProcessor(size=square)
    elif kind == "blip-2":
        former = {**text, "encoder_hidden_size": 16, "use_qformer_text_input": True}
        config = transformers.Blip2Config(
            vision_config=vision, qformer_config=former, image_text_hidden_size=8, num_query_tokens=3
        )
        model = transformers.Blip2ForImageTextRetrieval(config)
        torch.nn.init.normal_(model.query_tokens)  # as made, all are 0 and so alike
        processor = transformers.BlipImageProcessor(size=square)
    elif kind == "vilt":
        model = transformers.ViltForImageAndTextRetrieval(transformers.ViltConfig(**{**text, **vision}))
        processor = transformers.ViltImageProcessor(size={"shortest_edge": SIZE}, size_divisor=16)
    else:
        codebook = {"hidden_size": 4, "vocab_size": 8, "num_blocks_per_group": 1}
        towers = {"text_config": text, "image_config": vision, "multimodal_config": small}
        config = transformers.FlavaConfig(**towers, image_codebook_config=codebook, hidden_size=16, projection_dim=8)
        model = transformers.FlavaForPreTraining(config)
        processor = transformers.FlavaImageProcessor(size=square, crop_size=square)
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    save_tokenizer(folder, kind)
    return folder
