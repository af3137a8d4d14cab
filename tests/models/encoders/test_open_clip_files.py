"""Names, configurations and checkpoints of open_clip: what opens, what is warned of, and what is refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import open_clip
import pytest
import torch

from tests.evaluation.scorers.opened import FAST, TEXTS, encoder
from tests.models.model_kinds import HOSTILE, evaluated, filtered, save_open_clip
from tests.tiny_encoders import images, open_clip_config, open_clip_network, save_tokenizer
from twinset.contracts.errors import WrongUse
from twinset.evaluation.scorers.kinds import open_model
from twinset.models.encoders.checkpoints import read_weights
from twinset.models.encoders.open_clip_files import find_checkpoint


def saved(at: Path, part: str, settings: dict[str, Any]) -> Path:
    """A folder of open_clip with further settings in a part of its configuration."""
    save_open_clip(at)
    path = at / "open_clip_config.json"
    config = json.loads(path.read_bytes())
    (config if part in config else config["model_cfg"])[part] |= settings
    path.write_text(json.dumps(config))
    return at


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("text_cfg", {"tokenizer_kwargs": {"trust_remote_code": True}}, "tokenizer_kwargs is .'trust_remote_code'"),
    ("text_cfg", {"tokenizer_kwargs": {"bpe_path": "/etc/hostname"}}, "tokenizer_kwargs is .'bpe_path'"),
    ("text_cfg", {"tokenizer_kwargs": ["clean"]}, "tokenizer_kwargs is "),
    ("text_cfg", {"hf_model_name": "own/bert"}, "hf_model_name"),
    ("vision_cfg", {"timm_model_name": "hf-hub:own/vit"}, "timm_model_name is 'hf-hub:own/vit'"),
    ("vision_cfg", {"timm_model_name": "vit_tiny", "timm_model_pretrained": True}, "timm_model_pretrained"),
    ("text_cfg", {"hf_tokenizer_name": "words/../../elsewhere"}, "hf_tokenizer_name is 'words/../../elsewhere'"),
    ("text_cfg", {"hf_tokenizer_name": "hf-hub:own/words"}, "there is no model folder hf-hub:own/words"),
    ("vision_cfg", {"unknown": 1}, "cannot be loaded"),
    ("preprocess_cfg", {"interpolation": "evil"}, "cannot be loaded"),
]


@pytest.mark.parametrize(("part", "settings", "words"), REFUSED)
def test_a_configuration_runs_no_code(tmp_path: Path, part: str, settings: dict[str, Any], words: str) -> None:
    """S1: ``tokenizer_kwargs`` of a filter's open_clip_config.json ran a Python file of its folder."""
    code = {"auto_map": {"AutoTokenizer": ["evil.Evil", "evil.Evil"]}, "tokenizer_class": "Evil"}
    if "tokenizer_kwargs" in settings:
        settings = {"hf_tokenizer_name": "own/words", **settings}
    at = saved(tmp_path / "model", part, settings)
    if "tokenizer_kwargs" in settings:
        (at / "tokenizer_config.json").write_text(json.dumps(code))
        (at / "evil.py").write_text(HOSTILE.format(marker=tmp_path / "was_run"))
    for opened in (filtered, evaluated("open_clip")):
        with pytest.raises(WrongUse, match=words):
            opened(at)
    assert not (tmp_path / "was_run").exists()


def test_a_tokenizer_beside_a_configuration_is_read(tmp_path: Path) -> None:
    words = {"hf_tokenizer_name": "own/words", "tokenizer_kwargs": {"clean": "canonicalize"}}
    at = saved(tmp_path / "model", "text_cfg", words)
    save_tokenizer(at, "siglip")
    first, second = evaluated("open_clip")(at).text_features(["a red cat", "A  red, cat!"])
    assert first.tolist() == second.tolist()
    before, written = evaluated("open_clip")(at).digest(), json.loads((at / "tokenizer.json").read_bytes())
    (at / "tokenizer.json").write_text(json.dumps({**written, "normalizer": {"type": "Lowercase"}}))
    assert evaluated("open_clip")(at).digest() != before


LAYOUTS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "BiVLC": lambda weights: {"epoch": 1, "model_state_dict": weights, "optimizer_state_dict": {}},
    "NegCLIP": lambda weights: {"name": "run", "state_dict": {f"module.{name}": v for name, v in weights.items()}},
    "GeneCIS": lambda weights: {"clip_model": {f"module.{name}": v for name, v in weights.items()}, "combiner": {}},
    "CLIP4Cir": lambda weights: {"epoch": 1, "CLIP": weights},
    "OpenAI's numbers": lambda weights: weights | {"input_resolution": torch.tensor(32), "vocab_size": torch.tensor(9)},
    "one number as a vector": lambda weights: weights | {"logit_scale": weights["logit_scale"].reshape(1)},
    "Lightning": lambda weights: {"state_dict": {f"model.{name}": value for name, value in weights.items()}},
    "compiled and shared": lambda weights: {f"module._orig_mod.{name}": value for name, value in weights.items()},
    "numbers of NumPy": lambda weights: {"state_dict": weights, "best": np.float64(0.3), "losses": np.arange(3.0)},
    "half": lambda weights: {name: value.half() for name, value in weights.items()},
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_published_layouts_of_checkpoints_give_the_features_of_their_weights(tmp_path: Path, layout: str) -> None:
    network, config = open_clip_network(3).eval(), open_clip_config(tmp_path)
    torch.save(LAYOUTS[layout](network.state_dict()), tmp_path / "weights.pt")
    if layout == "half":
        network = network.half().float()
    opened = encoder(f"open_clip:{config}:{tmp_path / 'weights.pt'}")
    prepared = [opened.prepare(image) for image in images(3)]
    with torch.inference_mode():
        expected = network.encode_image(torch.from_numpy(np.stack(prepared))).numpy()
    assert np.array_equal(opened.image_features(prepared), expected)
    assert opened.encode_texts(TEXTS).dtype == np.float32


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda w: w | {"text_projection": torch.ones(16, 9)}, r"another architecture.*size mismatch for text_proj"),
        (lambda w: {name: v for name, v in w.items() if "conv1" not in name}, "another architecture.*visual.conv1"),
        (lambda w: w | {"visual.more": torch.ones(1)}, "another architecture.*visual.more"),
        (lambda w: w | {"ln_final.bias": torch.ones(16, dtype=torch.int8)}, "ln_final.bias .*torch.int8"),
        (lambda w: w | {"ln_final.bias": torch.ones(16).to_sparse()}, "ln_final.bias .*torch.sparse_coo"),
        (lambda w: w | {"ln_final.bias": torch.ones(16, device="meta")}, "ln_final.bias .*on meta"),
        (lambda w: w | {"ln_final.bias": torch.full((16,), torch.nan)}, "ln_final.bias .*NaN"),
        (lambda w: {"state_dict": w | {"epoch": 4}}, "'epoch' a value that is not a tensor"),
        (lambda w: [1, 2], "no tensors by name"),
        (lambda w: {"loss.scale": torch.ones(1), **{f"net.clip.{name}": v for name, v in w.items()}}, "model's part"),
        (lambda w: {"model.text_model.final.weight": torch.ones(1)}, r"transformers' layout.*clip:FOLDER"),
    ],
)
def test_weights_of_another_model_are_refused(tmp_path: Path, change: Any, words: str) -> None:
    torch.save(change(open_clip_network().state_dict()), tmp_path / "w.pt")
    with pytest.raises(WrongUse, match=words) as refused:
        open_model(f"open_clip:{open_clip_config(tmp_path)}:{tmp_path / 'w.pt'}", FAST)
    assert str(refused.value).isprintable()


def test_archives_of_code_and_objects_are_refused_in_a_sentence(tmp_path: Path) -> None:
    torch.jit.save(torch.jit.script(torch.nn.Linear(1, 1)), tmp_path / "archive.pt")  # as OpenAI's files are
    with pytest.raises(WrongUse, match=r"TorchScript archive.*open_clip:ViT-B-32:openai"):
        read_weights(tmp_path / "archive.pt")
    torch.save({"state_dict": {"a": torch.ones(1)}, "args": Path("x")}, tmp_path / "w.pt")
    with pytest.raises(WrongUse, match=r"w\.pt: cannot be loaded .it needs pathlib.*safetensors") as refused:
        read_weights(tmp_path / "w.pt")
    assert str(refused.value).isprintable()  # torch sets its message in colours


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("openclip:ViT-B-32:openai", "no kind of model 'openclip' here; did you mean 'open_clip'.* Write KIND:"),
        ("clip:", "names no model; write clip:FOLDER"),
        ("open_clip:ViT-B-23:openai", "is called 'ViT-B-23'; near are .*ViT-B-32"),
        ("random:hf-hub:own/model", "is called 'hf-hub'|is not a seed"),
        ("open_clip:ViT-B-32", "names no weights.*openai.*random:ViT-B-32"),
        ("open_clip:ViT-B-32:opnai", r"neither a file here nor a tag.*openai"),
        (f"random:ViT-B-32:{10**18}", "is not a seed"),
        ("clip:/nowhere", "no model folder /nowhere"),
        ("combiner:/nowhere", "write combiner:FILE:ENCODER"),
        ("image+text:vit:x", "no kind of model 'vit' here"),
    ],
)
def test_wrong_models_are_named_with_what_to_write(text: str, words: str) -> None:
    with pytest.raises(WrongUse, match=words):
        open_model(text, FAST)


def test_a_file_that_may_need_quick_gelu_is_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    plain = json.loads(open_clip_config(tmp_path).read_text())
    for name, sizes in {"Tiny": plain, "Tiny-quickgelu": plain | {"quick_gelu": True}}.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(sizes))
        open_clip.add_model_config(tmp_path / f"{name}.json")
    torch.save({"model_state_dict": open_clip_network(5).state_dict()}, tmp_path / "w.pt")
    gelu = encoder(f"open_clip:Tiny:{tmp_path / 'w.pt'}")
    assert "write open_clip:Tiny-quickgelu:FILE" in caplog.text
    caplog.clear()
    quick = encoder(f"open_clip:Tiny-quickgelu:{tmp_path / 'w.pt'}")
    assert caplog.text == "" and gelu.digest() != quick.digest()
    assert not np.array_equal(gelu.text_features(TEXTS), quick.text_features(TEXTS))


def test_a_tag_in_the_cache(tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up: list[str] = []
    monkeypatch.setattr("twinset.models.files.local_folder", lambda name, words: looked_up.append(name) or tmp_path)
    (tmp_path / "open_clip_model.safetensors").touch()
    architecture, weights = find_checkpoint("open_clip:ViT-B-32:openai", ("ViT-B-32", "openai"))
    assert architecture.model["quick_gelu"] and weights.parent == tmp_path
    assert looked_up == ["timm/vit_base_patch32_clip_224.openai"]
    assert "open_clip:ViT-B-32:openai: runs with QuickGELU" in caplog.text


def test_features_follow_their_seed_and_file_and_nothing_else(tmp_path: Path) -> None:
    config = open_clip_config(tmp_path)
    first, again, second = (encoder(f"random:{config}{seed}") for seed in ("", ":0", ":1"))
    assert np.array_equal(first.text_features(TEXTS), again.text_features(TEXTS))
    assert first.digest() == again.digest() != second.digest()
    assert not np.array_equal(first.text_features(TEXTS), second.text_features(TEXTS))
    prepared = [first.prepare(image) for image in images(8)]
    order = [5, 2, 2, 2, 0, 7, 5, 5]
    passed = first.image_features([prepared[n] for n in order])
    assert np.array_equal(passed, first.image_features(prepared)[order])
    folder = saved(tmp_path / "folder", "preprocess_cfg", {"mean": [0, 0, 0]})
    whole, by_name = encoder(f"open_clip:{folder}"), encoder(f"open_clip:{config}:{folder}/open_clip_model.safetensors")
    assert np.array_equal(whole.text_features(TEXTS), by_name.text_features(TEXTS))
    assert not np.array_equal(whole.prepare(images(1)[0]), by_name.prepare(images(1)[0]))  # its own transform
    assert whole.digest() != by_name.digest()
