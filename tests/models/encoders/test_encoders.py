"""Encoders and fusion models of transformers give what their own code computes; two names of one model are one.

Names, configurations and checkpoints of open_clip: what opens, what is warned of, and what is refused.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import open_clip
import pytest
import torch
import transformers
from PIL import Image

from tests.evaluation.scorers.opened import FAST, TEXTS, encoder
from tests.models.model_kinds import HOSTILE, evaluated, filtered, save_open_clip
from tests.tiny_encoders import SIZE, images, open_clip_config, open_clip_network, save_tokenizer, save_transformers
from twinset.contracts.errors import WrongUse
from twinset.evaluation.features.similarities import cosines
from twinset.evaluation.scorers.kinds import open_model
from twinset.models.encoders.contract import DualEncoder, Matcher, unit
from twinset.models.encoders.fusion_models import FusionScorer
from twinset.models.encoders.image_towers import THUMBNAIL, InBuild, open_tower, tower_files

#: Class of transformers, tokens that it reads, and how its own forward pass is asked for its scores.
NETWORKS: dict[str, tuple[str, int, dict[str, Any]]] = {
    "clip": ("CLIPModel", 77, {}),
    "siglip": ("SiglipModel", 64, {}),
    "blip": ("BlipForImageTextRetrieval", 48, {}),
    "blip-2": ("Blip2ForImageTextRetrieval", 48, {}),
    "vilt": ("ViltForImageAndTextRetrieval", 40, {}),
    "flava": ("FlavaForPreTraining", 77, {"return_loss": False}),
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    return {kind: save_transformers(folder / kind, kind) for kind in NETWORKS}


def forward(kind: str, folder: Path, image: Any, text: str, padding: bool = False, **options: Any) -> Any:
    """The output of the network's own forward pass for one pair, by its own processor and tokenizer."""
    name, length, more = NETWORKS[kind]
    read = transformers.AutoTokenizer.from_pretrained(folder)(
        [text], padding="max_length" if padding else False, truncation=True, max_length=length, return_tensors="pt"
    )
    asked = {key: read[key] for key in ("input_ids", "attention_mask") if kind != "siglip" or key == "input_ids"}
    asked |= {"input_ids_masked": read["input_ids"]} if kind == "flava" else {}
    pixels = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")([image], return_tensors="pt")
    with torch.inference_mode():
        return getattr(transformers, name).from_pretrained(folder).eval()(**asked, **pixels, **more, **options)


@pytest.mark.parametrize("kind", ["clip", "siglip"])
def test_encoders_give_the_cosines_of_their_own_forward_pass(saved: dict[str, Path], kind: str) -> None:
    opened = encoder(f"{kind}:{saved[kind]}")
    texts = TEXTS if kind == "clip" else [text.replace(".", "") for text in TEXTS]  # SigLIP reads no punctuation
    for image, text in zip(images(3), texts, strict=True):
        out = forward(kind, saved[kind], image, text, padding=True)
        expected = (out.image_embeds @ out.text_embeds.T).numpy()
        assert np.allclose(opened.encode_images([image]) @ opened.encode_texts([text]).T, expected, atol=1e-5)
    tower = open_tower(str(saved[kind]), InBuild("cpu", 3, 1))
    with torch.inference_mode():
        assert np.allclose(tower(images(3)), opened.encode_images(images(3)), atol=1e-6)


@pytest.mark.parametrize(
    ("model", "kind"), [("blip-itm", "blip"), ("blip2-itm", "blip-2"), ("vilt", "vilt"), ("flava", "flava")]
)
def test_log_odds_of_matching(saved: dict[str, Path], model: str, kind: str) -> None:
    opened = open_model(f"{model}:{saved[kind]}", FAST)
    assert isinstance(opened, FusionScorer) and isinstance(opened, Matcher) and not isinstance(opened, DualEncoder)
    shown = images(3)
    scores = opened.score(shown, TEXTS)
    expected = []
    for image, text in zip(shown, TEXTS, strict=True):
        out = forward(kind, saved[kind], image, text, **({"use_image_text_matching_head": True} if "2" in kind else {}))
        logits = {"blip": "itm_score", "blip-2": "logits_per_image", "vilt": "logits", "flava": "itm_logits"}[kind]
        row = out[logits][0].double()
        expected.append(float(row[0] if kind == "vilt" else row[1] - row[0]))
    assert scores.dtype == np.float32 and scores == pytest.approx(expected, abs=1e-5)
    order = [2, 0, 0]
    assert np.array_equal(opened.score([shown[n] for n in order], [TEXTS[n] for n in order]), scores[order])
    again = opened.score([shown[0]] * 10, ["a cat"] * 9 + ["the dog"])
    assert np.array_equal(again[-1:], opened.score([shown[0]] * 10, ["the dog"] * 10)[:1])


@pytest.mark.parametrize(("model", "kind"), [("blip-itc", "blip"), ("blip2-itc", "blip-2")])
def test_contrastive_heads_score_as_their_own_forward_pass(saved: dict[str, Path], model: str, kind: str) -> None:
    opened, head = encoder(f"{model}:{saved[kind]}"), "use_image_text_matching_head" if "2" in kind else "use_itm_head"
    features = opened.image_features([opened.prepare(image) for image in images(3)])
    assert features.shape == ((3, 24) if opened.several else (3, 8))
    # Of BLIP-2's 3 features of an image the nearest counts.
    similar = cosines(features if opened.several else unit(features), opened.encode_texts(TEXTS))
    for row, image in zip(similar, images(3), strict=True):
        outs = [forward(kind, saved[kind], image, text, **{head: False}) for text in TEXTS]
        assert row == pytest.approx([float(out[1 if "2" in kind else 0][0]) for out in outs], abs=1e-5)
    assert np.array_equal(opened.text_features(TEXTS[::-1])[::-1], opened.text_features(TEXTS))
    assert opened.too_long([*TEXTS, "a " * 46]) == TEXTS[2:]
    if opened.several:
        with pytest.raises(WrongUse, match="one feature an image"):
            open_model(f"image+text:{model}:{saved[kind]}", FAST)


def test_texts_are_too_long_from_the_token_on_that_is_not_read(tmp_path: Path, saved: dict[str, Path]) -> None:
    # CLIP reads 77 tokens, two of which mark the ends: "a" is one token.
    fits, longer = " ".join(["a"] * 75), " ".join(["a"] * 76)
    assert encoder(f"random:{open_clip_config(tmp_path)}").too_long([fits, longer, "a", "é" * 400])[0] == longer
    for kind in ("clip", "siglip", "vilt"):
        read = transformers.AutoTokenizer.from_pretrained(saved[kind])
        counts = {text: len(read(text)["input_ids"]) for text in (" ".join(["a"] * n) for n in range(30, 80))}
        too_long = open_model(f"{kind}:{saved[kind]}", FAST).too_long([*counts])
        assert too_long == [text for text, tokens in counts.items() if tokens > NETWORKS[kind][1]] != []


def test_models_of_another_kind_are_refused(saved: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="is not a dual encoder"):
        open_model(f"image+text:blip-itm:{saved['blip']}", FAST)
    folder = save_transformers(tmp_path / "blip-2", "blip-2")
    tokens = (folder / "tokenizer.json").read_text()
    (folder / "tokenizer.json").write_text(tokens.replace('"a": 5', '"a": 5, "purple": 14'))
    with pytest.raises(WrongUse, match="15 tokens and its network 14"):
        open_model(f"blip2-itc:{folder}", FAST)


#: Capitals, full stops, entities, curly quotation marks and stray blanks: what captions of the web hold.
ODD = ["A red Cat on the mat.", "a cat &amp; a dog", "the dog’s  “mat”", "A\tCAT , a dog!", "l&#228;uft"]


def save_clip_with_its_vocabulary(folder: Path) -> None:
    """A tiny CLIP that reads as the published ones do."""
    words = open_clip.SimpleTokenizer()
    marks = {"<start_of_text>": "<|startoftext|>", "<end_of_text>": "<|endoftext|>"}  # as OpenAI calls them
    vocabulary = {marks.get(word, word): at for word, at in words.encoder.items()}
    merges = sorted(words.bpe_ranks, key=words.bpe_ranks.__getitem__)
    transformers.CLIPTokenizer(vocab=vocabulary, merges=merges).save_pretrained(folder)
    transformers.CLIPImageProcessor(size={"shortest_edge": SIZE}, crop_size=SIZE).save_pretrained(folder)
    small = {"num_hidden_layers": 1, "num_attention_heads": 2, "hidden_size": 16, "intermediate_size": 32}
    vision = {**small, "image_size": SIZE, "patch_size": 16}
    text = {**small, "vocab_size": len(vocabulary), "eos_token_id": vocabulary["<|endoftext|>"]}
    config = transformers.CLIPConfig(text_config=text, vision_config=vision, projection_dim=8)
    transformers.CLIPModel(config).save_pretrained(folder)


def test_clip_and_siglip_read_as_open_clip_does(tmp_path: Path, saved: dict[str, Path]) -> None:
    """open_clip's configurations of SigLIP and SigLIP 2 have ``clean: canonicalize``."""
    save_clip_with_its_vocabulary(tmp_path / "clip")
    siglip: Any = open_model(f"siglip:{saved['siglip']}", FAST)
    of_siglip = open_clip.tokenizer.HFTokenizer(str(saved["siglip"]), 64, clean="canonicalize")
    assert torch.equal(siglip.tokens(ODD, 64)["input_ids"], of_siglip(ODD))
    clip: Any = open_model(f"clip:{tmp_path / 'clip'}", FAST)
    texts = [*ODD, "a cat on the mat", "word " * 100]
    read = clip.tokens(texts, 77)
    assert torch.equal(read["input_ids"] * read["attention_mask"], open_clip.SimpleTokenizer()(texts))
    own = encoder(f"random:{open_clip_config(tmp_path)}")
    assert own.too_long(texts) == clip.too_long(texts) == texts[-1:]
    for image in images(3):
        assert np.allclose(own.prepare(image), clip.prepare(image), atol=1e-6)


def test_thumbnails_are_alike_where_layouts_of_colours_are() -> None:
    picture = Image.fromarray(np.random.default_rng(0).integers(0, 256, (64, 48, 3), np.uint8))
    bright = Image.fromarray((np.asarray(picture) // 2 + 90).astype(np.uint8))
    flat = [Image.new("RGB", (9, 9), colour) for colour in ("red", "black", "white")]
    features = open_tower(THUMBNAIL, InBuild("cpu", 2, 1))([picture, bright, picture.rotate(180), *flat])
    assert tower_files(THUMBNAIL).paths == () and features.dtype == np.float32
    alike = features @ features.T
    assert np.allclose(np.diag(alike), 1, atol=1e-6)
    assert alike[0, 1] > 0.99 and abs(alike[0, 2]) < 0.3 and alike[4, 5] > 0.99 and abs(alike[0, 4]) < 0.01


def configured(at: Path, part: str, settings: dict[str, Any]) -> Path:
    save_open_clip(at)
    path = at / "open_clip_config.json"
    config = json.loads(path.read_bytes())
    (config if part in config else config["model_cfg"])[part] |= settings
    path.write_text(json.dumps(config))
    return at


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("text_cfg", {"tokenizer_kwargs": {"trust_remote_code": True}}, "tokenizer_kwargs is .'trust_remote_code'"),
    ("text_cfg", {"tokenizer_kwargs": {"bpe_path": "/etc/hostname"}}, "tokenizer_kwargs is .'bpe_path'"),
    ("text_cfg", {"hf_model_name": "own/bert"}, "hf_model_name"),
    ("vision_cfg", {"timm_model_name": "hf-hub:own/vit"}, "timm_model_name is 'hf-hub:own/vit'"),
    ("vision_cfg", {"timm_model_name": "vit_tiny", "timm_model_pretrained": True}, "timm_model_pretrained"),
    ("text_cfg", {"hf_tokenizer_name": "words/../../elsewhere"}, "hf_tokenizer_name is 'words/../../elsewhere'"),
    ("text_cfg", {"hf_tokenizer_name": "hf-hub:own/words"}, "there is no model folder hf-hub:own/words"),
    ("preprocess_cfg", {"interpolation": "evil"}, "cannot be loaded"),
]


@pytest.mark.parametrize(("part", "settings", "words"), REFUSED)
def test_a_configuration_runs_no_code(tmp_path: Path, part: str, settings: dict[str, Any], words: str) -> None:
    """S1: ``tokenizer_kwargs`` of a filter's open_clip_config.json ran a Python file of its folder."""
    code = {"auto_map": {"AutoTokenizer": ["evil.Evil", "evil.Evil"]}, "tokenizer_class": "Evil"}
    if "tokenizer_kwargs" in settings:
        settings = {"hf_tokenizer_name": "own/words", **settings}
    at = configured(tmp_path / "model", part, settings)
    if "tokenizer_kwargs" in settings:
        (at / "tokenizer_config.json").write_text(json.dumps(code))
        (at / "evil.py").write_text(HOSTILE.format(marker=tmp_path / "was_run"))
    for opened in (filtered, evaluated("open_clip")):
        with pytest.raises(WrongUse, match=words):
            opened(at)
    assert not (tmp_path / "was_run").exists()


def test_a_tokenizer_beside_a_configuration_is_read(tmp_path: Path) -> None:
    words = {"hf_tokenizer_name": "own/words", "tokenizer_kwargs": {"clean": "canonicalize"}}
    at = configured(tmp_path / "model", "text_cfg", words)
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
        (lambda w: w | {"ln_final.bias": torch.ones(16, dtype=torch.int8)}, "ln_final.bias .*torch.int8"),
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


def test_features_follow_their_seed_and_file_and_nothing_else(tmp_path: Path) -> None:
    config = open_clip_config(tmp_path)
    first, again, second = (encoder(f"random:{config}{seed}") for seed in ("", ":0", ":1"))
    assert np.array_equal(first.text_features(TEXTS), again.text_features(TEXTS))
    assert first.digest() == again.digest() != second.digest()
    prepared, order = [first.prepare(image) for image in images(8)], [5, 2, 2, 2, 0, 7, 5, 5]
    passed = first.image_features([prepared[n] for n in order])
    assert np.array_equal(passed, first.image_features(prepared)[order])
    folder = configured(tmp_path / "folder", "preprocess_cfg", {"mean": [0, 0, 0]})
    whole, by_name = encoder(f"open_clip:{folder}"), encoder(f"open_clip:{config}:{folder}/open_clip_model.safetensors")
    assert np.array_equal(whole.text_features(TEXTS), by_name.text_features(TEXTS))
    assert not np.array_equal(whole.prepare(images(1)[0]), by_name.prepare(images(1)[0]))  # its own transform
    assert whole.digest() != by_name.digest()
