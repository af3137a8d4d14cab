from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from evaluation.scorers.checkpoints import read_weights
from evaluation.scorers.contract import Composer, DualEncoder, PairScorer, Running, unit
from evaluation.scorers.kinds import KINDS, open_model
from manifests.errors import WrongUse
from shards.models.files import ModelMissing
from tests.evaluation.scorers.tiny_models import images, open_clip_config, open_clip_network, save_transformers

TEXTS = ["a cat on the mat.", "the red dog", "a blue cat " * 20]
FAST = Running(batch=4, threads=1)


def encoder(text: str) -> DualEncoder:
    found = open_model(text, FAST)
    assert isinstance(found, DualEncoder) and not isinstance(found, PairScorer | Composer)
    return found


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    kinds = {"clip": "clip", "siglip": "siglip", "blip-itm": "blip", "vilt": "vilt", "flava": "flava"}
    return {kind: save_transformers(folder / kind, name) for kind, name in kinds.items()}


# --- open_clip ---------------------------------------------------------------------------------------------------


LAYOUTS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "plain": lambda weights: weights,
    "BiVLC": lambda weights: {
        "epoch": 1,
        "model_state_dict": weights,
        "optimizer_state_dict": {},
        "loss": torch.ones(()),
    },
    "NegCLIP": lambda weights: {
        "epoch": 1,
        "name": "run",
        "state_dict": {f"module.{name}": value for name, value in weights.items()},
        "optimizer": {},
    },
    "GeneCIS": lambda weights: {"clip_model": {f"module.{name}": v for name, v in weights.items()}, "combiner": {}},
    "CLIP4Cir": lambda weights: {"epoch": 1, "CLIP": weights},
    "OpenAI's numbers": lambda weights: weights | {"input_resolution": torch.tensor(32), "vocab_size": torch.tensor(9)},
    "one number as a vector": lambda weights: weights | {"logit_scale": weights["logit_scale"].reshape(1)},
    "half": lambda weights: {name: value.half() for name, value in weights.items()},
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_published_layouts_of_checkpoints_give_the_features_of_their_weights(tmp_path: Path, layout: str) -> None:
    network, config = open_clip_network(3).eval(), open_clip_config(tmp_path)
    torch.save(LAYOUTS[layout](network.state_dict()), tmp_path / "weights.pt")
    if layout == "half":
        network = network.half().float()
    found = encoder(f"open_clip:{config}:{tmp_path / 'weights.pt'}")
    prepared = [found.prepare(image) for image in images(3)]
    with torch.inference_mode():
        expected = network.encode_image(torch.from_numpy(np.stack(prepared))).numpy()
    assert np.array_equal(found.image_features(prepared), expected)
    assert np.allclose(np.linalg.norm(found.encode_images(images(3)), axis=1), 1, atol=1e-6)
    assert found.encode_texts(TEXTS).dtype == np.float32


def test_a_folder_of_open_clip_and_safetensors_are_read(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    config = json.loads(open_clip_config(tmp_path / "elsewhere").read_text())
    save_file(open_clip_network(4).state_dict(), tmp_path / "open_clip_model.safetensors")
    (tmp_path / "open_clip_config.json").write_text(
        json.dumps({"model_cfg": config, "preprocess_cfg": {"mean": [0, 0, 0]}})
    )
    found = encoder(f"open_clip:{tmp_path}")
    by_name = encoder(f"open_clip:{tmp_path / 'elsewhere/tiny.json'}:{tmp_path / 'open_clip_model.safetensors'}")
    assert np.array_equal(found.text_features(TEXTS), by_name.text_features(TEXTS))
    assert not np.array_equal(found.prepare(images(1)[0]), by_name.prepare(images(1)[0]))  # its own transform
    assert found.digest() != by_name.digest()


def test_features_do_not_depend_on_the_other_inputs_of_a_pass(tmp_path: Path) -> None:
    found = encoder(f"random:{open_clip_config(tmp_path)}")
    prepared = [found.prepare(image) for image in images(8)]
    features = found.image_features(prepared)
    order = [5, 2, 2, 2, 0, 7, 5, 5]
    assert np.array_equal(found.image_features([prepared[n] for n in order]), features[order])


def test_quick_gelu_changes_the_digest_and_a_file_that_may_need_it_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    import open_clip  # type: ignore[import-untyped]

    plain = json.loads(open_clip_config(tmp_path).read_text())
    sizes = {"Tiny": plain, "Tiny-quickgelu": plain | {"quick_gelu": True}}
    monkeypatch.setattr(open_clip, "get_model_config", lambda name: json.loads(json.dumps(sizes[name])))
    monkeypatch.setattr(open_clip, "list_models", lambda: [*sizes])
    torch.save({"model_state_dict": open_clip_network(5).state_dict()}, tmp_path / "w.pt")
    gelu = encoder(f"open_clip:Tiny:{tmp_path / 'w.pt'}")
    assert "write open_clip:Tiny-quickgelu:FILE" in caplog.text
    caplog.clear()
    quick = encoder(f"open_clip:Tiny-quickgelu:{tmp_path / 'w.pt'}")
    assert caplog.text == ""
    assert gelu.digest() != quick.digest()
    assert not np.array_equal(gelu.text_features(TEXTS), quick.text_features(TEXTS))


def test_a_tag_brings_its_activation_and_is_looked_for_in_the_cache_only(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evaluation.scorers import open_clip_files
    from evaluation.scorers.open_clip_files import find_architecture, tagged

    looked_up: list[str] = []
    monkeypatch.setattr(open_clip_files, "local_folder", lambda name, layout: looked_up.append(name) or tmp_path)
    (tmp_path / "open_clip_model.safetensors").touch()
    found = tagged(find_architecture("ViT-B-32"), "ViT-B-32", "openai")
    assert found is not None and found[0].model["quick_gelu"] and found[1].parent == tmp_path
    assert looked_up == ["timm/vit_base_patch32_clip_224.openai"]
    assert "open_clip:ViT-B-32:openai: runs with QuickGELU" in caplog.text
    other = tagged(find_architecture("ViT-B-32-quickgelu"), "ViT-B-32-quickgelu", "openai")
    assert other is not None and other[0].model["quick_gelu"]


def test_random_weights_come_from_their_seed_and_are_said_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    config = open_clip_config(tmp_path)
    first, again, other = (encoder(f"random:{config}{seed}") for seed in ("", ":0", ":1"))
    assert np.array_equal(first.text_features(TEXTS), again.text_features(TEXTS))
    assert first.digest() == again.digest() != other.digest()
    assert not np.array_equal(first.text_features(TEXTS), other.text_features(TEXTS))
    assert "random weights" in caplog.text


def test_texts_are_too_long_from_the_token_on_that_is_not_read(tmp_path: Path, saved: dict[str, Path]) -> None:
    import transformers

    # CLIP reads 77 tokens, two of which mark the ends: "a" is one token.
    fits, longer = " ".join(["a"] * 75), " ".join(["a"] * 76)
    assert encoder(f"random:{open_clip_config(tmp_path)}").too_long([fits, longer, "a", "é" * 400]) == [
        longer,
        "é" * 400,
    ]
    for kind, most in (("clip", 77), ("siglip", 64), ("vilt", 40)):
        read = transformers.AutoTokenizer.from_pretrained(saved[kind])
        whole = {text: len(read(text)["input_ids"]) for text in (" ".join(["a"] * n) for n in range(30, 80))}
        found = open_model(f"{kind}:{saved[kind]}", FAST).too_long([*whole])
        assert found == [text for text, tokens in whole.items() if tokens > most] != [], kind


# --- transformers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["clip", "siglip"])
def test_encoders_of_transformers_give_the_cosines_of_its_own_forward_pass(saved: dict[str, Path], kind: str) -> None:
    import transformers

    found = encoder(f"{kind}:{saved[kind]}")
    model = (
        getattr(transformers, {"clip": "CLIPModel", "siglip": "SiglipModel"}[kind]).from_pretrained(saved[kind]).eval()
    )
    tokenizer = transformers.AutoTokenizer.from_pretrained(saved[kind])
    length = {"clip": 77, "siglip": 64}[kind]
    read = tokenizer(TEXTS, padding="max_length", truncation=True, max_length=length, return_tensors="pt")
    masked = {"attention_mask": read["attention_mask"]} if kind == "clip" else {}
    pixels = transformers.AutoImageProcessor.from_pretrained(saved[kind], backend="pil")(images(3), return_tensors="pt")
    with torch.inference_mode():
        made = model(input_ids=read["input_ids"], pixel_values=pixels["pixel_values"], **masked)
    expected = (made.image_embeds @ made.text_embeds.T).numpy()
    assert np.allclose(found.encode_images(images(3)) @ found.encode_texts(TEXTS).T, expected, atol=1e-5)


def reference(kind: str, folder: Path, image: Any, text: str) -> float:
    """The log-odds of a match from the model's own forward pass, one pair at a time."""
    import transformers

    names = {
        "blip-itm": "BlipForImageTextRetrieval",
        "vilt": "ViltForImageAndTextRetrieval",
        "flava": "FlavaForPreTraining",
    }
    model = getattr(transformers, names[kind]).from_pretrained(folder).eval()
    most = {"blip-itm": 48, "vilt": 40, "flava": 77}[kind]
    read = transformers.AutoTokenizer.from_pretrained(folder)(
        [text], return_tensors="pt", truncation=True, max_length=most
    )
    pixels = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")([image], return_tensors="pt")
    names_of_text = [name for name in ("input_ids", "attention_mask") if name in read]
    asked = {name: read[name] for name in names_of_text} | dict(pixels)
    with torch.inference_mode():
        if kind == "vilt":
            return float(model(**asked).logits[0, 0])
        if kind == "blip-itm":
            logits = model(**asked).itm_score
        else:
            logits = model(**asked, input_ids_masked=asked["input_ids"], return_loss=False).itm_logits
    chances = torch.softmax(logits.double(), dim=1)[0, 1]
    return float(torch.log(chances / (1 - chances)))


@pytest.mark.parametrize("kind", ["blip-itm", "vilt", "flava"])
def test_fusion_models_give_the_log_odds_of_their_own_forward_pass(saved: dict[str, Path], kind: str) -> None:
    found = open_model(f"{kind}:{saved[kind]}", FAST)
    assert isinstance(found, PairScorer) and not isinstance(found, DualEncoder)
    shown = images(3)
    scores = found.score(shown, TEXTS)
    assert scores.dtype == np.float32
    expected = [reference(kind, saved[kind], image, text) for image, text in zip(shown, TEXTS, strict=True)]
    assert scores == pytest.approx(expected, abs=1e-5)
    order = [2, 0, 0]
    assert np.array_equal(found.score([shown[n] for n in order], [TEXTS[n] for n in order]), scores[order])


# --- GeneCIS's baselines -----------------------------------------------------------------------------------------


def test_baselines_combine_features_that_are_not_normalised(tmp_path: Path) -> None:
    config = open_clip_config(tmp_path)
    inner = encoder(f"random:{config}")
    image = inner.image_features([inner.prepare(one) for one in images(3)])
    text = inner.text_features(TEXTS)
    for kind, expected in {"image-only": image, "text-only": text, "image+text": (image + text) / 2}.items():
        rule = open_model(f"{kind}:random:{config}", FAST)
        assert isinstance(rule, Composer) and rule.encoder.digest() == inner.digest()
        assert np.allclose(rule.queries(images(3), TEXTS), unit(expected), atol=1e-6)
    assert not np.allclose(unit((unit(image) + unit(text)) / 2), unit((image + text) / 2), atol=1e-3)


def combiner(features: int = 8, seed: int = 0) -> dict[str, torch.Tensor]:
    """Weights of a Combiner by their published names."""
    drawn = torch.Generator().manual_seed(seed)
    sizes = {
        "text_projection_layer": (12, features),
        "image_projection_layer": (12, features),
        "combiner_layer": (20, 24),
        "output_layer": (features, 20),
        "dynamic_scalar.0": (20, 24),
        "dynamic_scalar.3": (1, 20),
    }
    return {
        f"{name}.{part}": torch.randn(shape if part == "weight" else shape[:1], generator=drawn)
        for name, shape in sizes.items()
        for part in ("weight", "bias")
    }


@pytest.mark.parametrize("layout", ["plain", "GeneCIS", "CLIP4Cir"])
def test_a_published_combiner_gives_its_formula(tmp_path: Path, layout: str) -> None:
    weights, clip = combiner(), open_clip_network(6)
    both = {
        "plain": {f"module.{name}": value for name, value in weights.items()},
        "GeneCIS": {"clip_model": clip.state_dict(), "combiner": weights, "epoch": 3},
        "CLIP4Cir": {"epoch": 3, "Combiner": weights},
    }[layout]
    torch.save(both, tmp_path / "combiner.pt")
    torch.save(clip.state_dict(), tmp_path / "clip.pt")
    clip_file = tmp_path / ("combiner.pt" if layout == "GeneCIS" else "clip.pt")
    rule = open_model(f"combiner:{tmp_path / 'combiner.pt'}:open_clip:{open_clip_config(tmp_path)}:{clip_file}", FAST)
    assert isinstance(rule, Composer)
    image, text = np.random.default_rng(0).standard_normal((2, 5, 8)).astype(np.float32)
    layer = {name: value.numpy() for name, value in weights.items()}

    def linear(name: str, read: Any) -> Any:
        return read @ layer[f"{name}.weight"].T + layer[f"{name}.bias"]

    def relu(read: Any) -> Any:
        return np.maximum(read, 0)

    z = np.concatenate([relu(linear("text_projection_layer", text)), relu(linear("image_projection_layer", image))], 1)
    share = 1 / (1 + np.exp(-linear("dynamic_scalar.3", relu(linear("dynamic_scalar.0", z)))))
    expected = linear("output_layer", relu(linear("combiner_layer", z))) + share * text + (1 - share) * image
    assert np.allclose(rule.compose(image, text), unit(expected.astype(np.float32)), atol=1e-5)


def test_a_combiner_of_another_clip_is_refused(tmp_path: Path) -> None:
    torch.save(combiner(features=9), tmp_path / "c.pt")
    rule = open_model(f"combiner:{tmp_path / 'c.pt'}:random:{open_clip_config(tmp_path)}", FAST)
    with pytest.raises(WrongUse, match=r"reads features of 9 numbers, and random:.* gives 8"):
        assert isinstance(rule, Composer) and rule.queries(images(1), TEXTS[:1])


# --- wrong use ---------------------------------------------------------------------------------------------------


def test_a_pickle_with_code_is_refused_and_not_run(tmp_path: Path) -> None:
    target = tmp_path / "was_run"

    class Touches:
        def __reduce__(self) -> Any:
            return Path.touch, (target,)

    torch.save({"state_dict": {"a": torch.ones(1)}, "args": Touches()}, tmp_path / "w.pt")
    with pytest.raises(WrongUse, match=r"w.pt: holds objects other than tensors.*safetensors"):
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
    ],
)
def test_weights_of_another_model_are_refused_by_the_first_that_differs(tmp_path: Path, change: Any, said: str) -> None:
    torch.save(change(open_clip_network().state_dict()), tmp_path / "w.pt")
    with pytest.raises(WrongUse, match=said):
        open_model(f"open_clip:{open_clip_config(tmp_path)}:{tmp_path / 'w.pt'}", FAST)


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
        ("openclip:ViT-B-32:openai", "'openclip' is not a kind of model; write open_clip:NAME:TAG"),
        ("what", "not a kind of model; write open_clip:.*random:NAME"),
        ("clip:", "names no model; write clip:FOLDER"),
        ("open_clip:ViT-B-23:openai", "no model 'ViT-B-23': near are .*ViT-B-32"),
        ("open_clip:zzzzzz:openai", "no model 'zzzzzz': such as"),
        ("open_clip:ViT-B-32", "names no weights; write open_clip:ViT-B-32:TAG with one of openai, .*random:ViT-B-32"),
        ("open_clip:ViT-B-32:opnai", "neither a tag of ViT-B-32 nor a file here; near are the tags openai"),
        ("open_clip:ViT-B-32:/nowhere/w.pt", "neither a tag"),
        ("random:ViT-B-32:one", "'one' is not a seed"),
        (f"random:ViT-B-32:{10**18}", "is not a seed"),
        ("clip:/nowhere", "no model folder /nowhere"),
        ("combiner:/nowhere", "write combiner:FILE:ENCODER"),
        ("image+text:vit:x", "'vit' is not a kind"),
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
    from importlib import import_module

    for kind in KINDS.values():
        module, _, function = kind.place.partition(":")
        assert callable(getattr(import_module(module), function))


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
