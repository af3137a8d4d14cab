"""Files that are no weights of their model, and names of no model, are refused."""

import json
import logging
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.evaluation.scorers.opened import FAST
from tests.evaluation.scorers.tiny_models import open_clip_config, open_clip_network
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
    with pytest.raises(WrongUse, match="model_type 'siglip', not clip"):
        open_model(f"clip:{saved['siglip']}", FAST)
    with pytest.raises(WrongUse, match="is not a dual encoder"):
        open_model(f"image+text:blip-itm:{saved['blip-itm']}", FAST)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ModelMissing, match=r"lacks model\.safetensors or pytorch_model\.bin, preprocessor_config.json"):
        open_model(f"vilt:{tmp_path}", FAST)


def test_every_kind_can_be_imported() -> None:
    assert all(callable(MODELS.get(kind).open) for kind in KINDS)


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
