"""The same weights by two documented names give the same features, of whatever a caption holds."""

from pathlib import Path
from typing import Any

import numpy as np
import open_clip
import pytest
import torch
import transformers
from PIL import Image

from tests.evaluation.scorers.opened import encoder
from tests.evaluation.scorers.tiny_models import SIZE, open_clip_config, save_transformers
from twinset.evaluation.scorers.kinds import open_model

#: Capitals, full stops, entities, curly quotation marks and stray blanks: what captions of the web hold.
ODD = ["A red Cat on the mat.", "a cat &amp; a dog", "the dog’s  “mat”", "A\tCAT , a dog!", "l&#228;uft"]


def layers(prefix: str, their: dict[str, torch.Tensor], ours: str) -> dict[str, torch.Tensor]:
    """The tensors of a transformer's first layer in open_clip's names."""
    found, at = {}, f"{prefix}.encoder.layers.0"
    for kind in ("weight", "bias"):
        attended = [their[f"{at}.self_attn.{one}_proj.{kind}"] for one in "qkv"]
        found[f"{ours}.attn.in_proj_{kind}"] = torch.cat(attended)
        names = {"ln_1": "layer_norm1", "ln_2": "layer_norm2", "mlp.c_fc": "mlp.fc1", "mlp.c_proj": "mlp.fc2"}
        for name, theirs in {**names, "attn.out_proj": "self_attn.out_proj"}.items():
            found[f"{ours}.{name}.{kind}"] = their[f"{at}.{theirs}.{kind}"]
    return found


def as_open_clip(their: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """A CLIP of transformers in open_clip's names."""
    found = {
        "logit_scale": their["logit_scale"],
        "positional_embedding": their["text_model.embeddings.position_embedding.weight"],
        "token_embedding.weight": their["text_model.embeddings.token_embedding.weight"],
        "text_projection": their["text_projection.weight"].T,
        "visual.class_embedding": their["vision_model.embeddings.class_embedding"],
        "visual.positional_embedding": their["vision_model.embeddings.position_embedding.weight"],
        "visual.conv1.weight": their["vision_model.embeddings.patch_embedding.weight"],
        "visual.proj": their["visual_projection.weight"].T,
    }
    for ours, name in {
        "ln_final": "text_model.final_layer_norm",
        "visual.ln_pre": "vision_model.pre_layrnorm",
        "visual.ln_post": "vision_model.post_layernorm",
    }.items():
        found |= {f"{ours}.{kind}": their[f"{name}.{kind}"] for kind in ("weight", "bias")}
    found |= layers("text_model", their, "transformer.resblocks.0")
    return found | layers("vision_model", their, "visual.transformer.resblocks.0")


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A small CLIP with OpenAI's vocabulary, as open_clip and as transformers have it."""
    folder = tmp_path_factory.mktemp("clip")
    words = open_clip.SimpleTokenizer()
    small = {"num_hidden_layers": 1, "num_attention_heads": 2}
    last = words.encoder["<end_of_text>"]
    text = {**small, "hidden_size": 16, "intermediate_size": 64, "vocab_size": 49408, "eos_token_id": last}
    vision = {**small, "hidden_size": 64, "intermediate_size": 256, "image_size": SIZE, "patch_size": 16}
    torch.manual_seed(0)
    model = transformers.CLIPModel(
        transformers.CLIPConfig(text_config=text, vision_config={**vision}, projection_dim=8)
    )
    model.save_pretrained(folder / "transformers")
    transformers.CLIPImageProcessor(size={"shortest_edge": SIZE}, crop_size=SIZE).save_pretrained(
        folder / "transformers"
    )
    marks = {"<start_of_text>": "<|startoftext|>", "<end_of_text>": "<|endoftext|>"}  # as OpenAI calls them
    vocabulary = {marks.get(word, word): at for word, at in words.encoder.items()}
    merges = sorted(words.bpe_ranks, key=words.bpe_ranks.__getitem__)
    tokenizer = transformers.CLIPTokenizer(vocab=vocabulary, merges=[*merges])
    tokenizer.save_pretrained(folder / "transformers")
    torch.save(as_open_clip(model.state_dict()), folder / "weights.pt")
    sizes: dict[str, Any] = {"width": 16, "heads": 2, "layers": 1, "context_length": 77, "vocab_size": 49408}
    towers = {"image_size": SIZE, "layers": 1, "width": 64, "head_width": 32, "patch_size": 16}
    config = open_clip_config(folder, text_cfg=sizes, vision_cfg=towers, quick_gelu=True)
    return f"open_clip:{config}:{folder / 'weights.pt'}", f"clip:{folder / 'transformers'}"


def test_clip_of_open_clip_and_of_transformers_give_the_same_features(names: tuple[str, str]) -> None:
    ours, theirs = map(encoder, names)
    picture = Image.fromarray(np.random.default_rng(0).integers(0, 256, (SIZE, SIZE, 3), np.uint8))
    assert np.allclose(ours.encode_images([picture]), theirs.encode_images([picture]), atol=1e-5)
    for caption in (*ODD, "a cat on the mat", " ".join(["word"] * 100)):
        assert np.allclose(ours.encode_texts([caption]), theirs.encode_texts([caption]), atol=1e-5), caption
    assert ours.too_long(["word " * 100, "a"]) == theirs.too_long(["word " * 100, "a"]) == ["word " * 100]


@pytest.mark.parametrize("kind", ["siglip", "siglip2"])
def test_siglip_reads_the_tokens_that_open_clip_gives_it(tmp_path: Path, kind: str) -> None:
    """open_clip's configurations of SigLIP and SigLIP 2 have ``clean: canonicalize``."""
    folder = save_transformers(tmp_path / kind, kind)
    found: Any = open_model(f"siglip:{folder}")
    as_open_clip_has_it = open_clip.tokenizer.HFTokenizer(str(folder), 64, clean="canonicalize")
    tokens = found.tokens(ODD, 64)["input_ids"]
    assert torch.equal(tokens, as_open_clip_has_it(ODD))
    assert torch.equal(tokens[:1], found.tokens(["a red cat on the mat"], 64)["input_ids"])
