"""Files that are no weights of their model, and names of no model, are refused; two names of one model are one."""

import json
import logging
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
import open_clip
import pytest
import torch
import transformers
from PIL import Image

from tests.evaluation.scorers.opened import FAST, encoder
from tests.evaluation.scorers.tiny_models import SIZE, open_clip_config, open_clip_network, save_transformers
from twinset.contracts.errors import WrongUse
from twinset.evaluation.scorers.kinds import KINDS, MODELS, open_model
from twinset.models.encoders.checkpoints import read_weights
from twinset.models.files import ModelMissing


def test_a_pickle_with_code_is_refused_and_not_run(tmp_path: Path) -> None:
    target = tmp_path / "was_run"

    class Touches:
        def __reduce__(self) -> Any:
            return Path.touch, (target,)

    torch.save({"state_dict": {"a": torch.ones(1)}, "args": Touches()}, tmp_path / "w.pt")
    with pytest.raises(
        WrongUse, match=r"w.pt: is not loaded, as it needs getattr, which could run code; .*safetensors"
    ):
        read_weights(tmp_path / "w.pt")
    assert not target.exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda w: w | {"text_projection": torch.ones(16, 9)},
            r"text_projection has the shape \(16, 9\).*\(16, 8\) in",
        ),
        (lambda w: {name: v for name, v in w.items() if "conv1" not in name}, r"has visual.conv1.weight \(64, 3"),
        (lambda w: w | {"visual.more": torch.ones(1)}, "1 tensors that .* lacks, first visual.more"),
        (lambda w: w | {"ln_final.bias": torch.ones(16, dtype=torch.int8)}, "ln_final.bias holds numbers .*torch.int8"),
        (lambda w: w | {"ln_final.bias": torch.ones(16, dtype=torch.complex64)}, "ln_final.bias .*torch.complex64"),
        (lambda w: w | {"ln_final.bias": torch.ones(16).to_sparse()}, "ln_final.bias .*torch.sparse_coo"),
        (lambda w: w | {"ln_final.bias": torch.ones(16, device="meta")}, "ln_final.bias .*on meta"),
        (lambda w: w | {"ln_final.bias": torch.full((16,), torch.nan)}, "ln_final.bias holds NaN"),
        (lambda w: {"state_dict": w | {"epoch": 4}}, "'epoch' a value that is not a tensor"),
        (lambda w: [1, 2], "no tensors by name"),
        (
            lambda w: {"loss.scale": torch.ones(1), **{f"net.clip.{name}": v for name, v in w.items()}},
            r"or of more than the model: .*such as net\.clip\.positional_embedding.*save the model's part alone",
        ),
        (
            lambda w: {
                "model.logit_scale": torch.ones(1),
                "model.text_model.embeddings.token_embedding.weight": w["ln_final.bias"],
            },
            r"w\.pt: weights in transformers' layout, and .*tiny\.json is of open_clip; name the folder .*clip:FOLDER",
        ),
        (lambda w: w | {"best": np.float64(0.3)}, "under 'best' a value that is not a tensor"),
    ],
)
def test_weights_of_another_model_are_refused_by_the_first_that_differs(tmp_path: Path, change: Any, said: str) -> None:
    torch.save(change(open_clip_network().state_dict()), tmp_path / "w.pt")
    with pytest.raises(WrongUse, match=said):
        open_model(f"open_clip:{open_clip_config(tmp_path)}:{tmp_path / 'w.pt'}", FAST)


def test_what_is_no_tensor_is_refused_in_a_sentence_without_colours(tmp_path: Path) -> None:
    torch.save({"state_dict": {"a": torch.ones(1)}, "args": Namespace(lr=1)}, tmp_path / "w.pt")
    with pytest.raises(WrongUse) as refused:
        read_weights(tmp_path / "w.pt")
    assert "argparse.Namespace" in str(refused.value) and str(refused.value).isprintable()


def test_damaged_checkpoints_are_refused(tmp_path: Path) -> None:
    torch.save(open_clip_network().state_dict(), tmp_path / "w.pt")
    whole = (tmp_path / "w.pt").read_bytes()
    for name, data in {"cut.pt": whole[: len(whole) // 2], "empty.pt": b"", "text.safetensors": b"not tensors"}.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(WrongUse, match=name):
            read_weights(tmp_path / name)
    torch.jit.save(torch.jit.script(torch.nn.Linear(1, 1)), tmp_path / "archive.pt")  # as OpenAI's files are
    with pytest.raises(WrongUse, match=r"TorchScript archive.*open_clip:ViT-B-32:openai"):
        read_weights(tmp_path / "archive.pt")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("openclip:ViT-B-32:openai", "no kind of model 'openclip' here; did you mean 'open_clip'.* Write KIND:"),
        ("what", "no kind of model 'what' here.* name one of blip-itc, .*, vilt"),
        ("clip:", "names no model; write clip:FOLDER"),
        ("open_clip:ViT-B-23:openai", "is called 'ViT-B-23': near are .*ViT-B-32"),
        ("open_clip:zzzzzz:openai", "is called 'zzzzzz': such as"),
        ("open_clip:ViT-B-32", "names no weights; write open_clip:ViT-B-32:TAG with one of openai, .*random:ViT-B-32"),
        ("open_clip:ViT-B-32:opnai", "neither a tag of ViT-B-32 nor a file here; near are the tags openai"),
        ("open_clip:ViT-B-32:/nowhere/w.pt", "neither a tag"),
        ("random:ViT-B-32:one", "'one' is not a seed"),
        (f"random:ViT-B-32:{10**18}", "is not a seed"),
        ("clip:/nowhere", "no model folder /nowhere"),
        ("combiner:/nowhere", "write combiner:FILE:ENCODER"),
        ("image+text:vit:x", "no kind of model 'vit' here"),
    ],
)
def test_wrong_models_are_named_with_what_to_write(text: str, said: str) -> None:
    with pytest.raises(WrongUse, match=said):
        open_model(text, FAST)


def test_models_of_another_kind_are_refused(saved: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="model_type is 'siglip', and must be clip"):
        open_model(f"clip:{saved['siglip']}", FAST)
    with pytest.raises(WrongUse, match="is not a dual encoder"):
        open_model(f"image+text:blip-itm:{saved['blip-itm']}", FAST)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ModelMissing, match=r"lacks model\.safetensors or pytorch_model\.bin, preprocessor_config.json"):
        open_model(f"vilt:{tmp_path}", FAST)


def test_every_kind_can_be_imported() -> None:
    assert all(callable(MODELS.find(kind).open) for kind in KINDS)


def test_a_model_that_would_be_downloaded_is_refused(tmp_path: Path) -> None:
    text = {"hf_model_name": "roberta-base", "hf_tokenizer_name": "roberta-base"}
    with pytest.raises(WrongUse, match="text tower is built from another model's files"):
        open_model(f"random:{open_clip_config(tmp_path, text_cfg=text)}", FAST)
    text = {**json.loads(open_clip_config(tmp_path).read_text())["text_cfg"], "hf_tokenizer_name": "nobody/nothing"}
    with pytest.raises(ModelMissing, match="nobody/nothing"):
        open_model(f"random:{open_clip_config(tmp_path, text_cfg=text)}", FAST)


def test_open_clips_own_warnings_come_back_after_a_model_is_built(tmp_path: Path) -> None:
    open_model(f"random:{open_clip_config(tmp_path)}", FAST)
    assert logging.root.manager.disable == logging.NOTSET


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
