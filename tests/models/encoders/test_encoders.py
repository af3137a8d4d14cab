"""Encoders and fusion models of open_clip and transformers, as published and as their own code computes them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from tests.evaluation.features.small_benchmark import Shelf, SmallBenchmark
from tests.evaluation.scorers.opened import FAST, TEXTS, encoder
from tests.evaluation.scorers.tiny_models import images, open_clip_config, open_clip_network, save_tokenizer
from twinset.contracts.errors import WrongUse
from twinset.evaluation.examples import Matching, Query
from twinset.evaluation.features.pictures import decode
from twinset.evaluation.features.similarities import cosines
from twinset.evaluation.run import run
from twinset.evaluation.scorers.kinds import open_model
from twinset.models.encoders.contract import DualEncoder, Matcher
from twinset.models.encoders.fusion_models import FusionScorer
from twinset.training.fusion.data import open_start
from twinset.training.fusion.settings import FusionSettings

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
    "Lightning": lambda weights: {
        "pytorch-lightning_version": "2.2",
        "state_dict": {f"model.{name}": value for name, value in weights.items()},
    },
    "compiled": lambda weights: {f"_orig_mod.{name}": value for name, value in weights.items()},
    "compiled and shared": lambda weights: {f"module._orig_mod.{name}": value for name, value in weights.items()},
    "numbers of NumPy": lambda weights: {
        "state_dict": weights,
        "best": np.float64(0.3),
        "step": np.int64(7),
        "losses": np.arange(3.0),
    },
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
    plain = json.loads(open_clip_config(tmp_path).read_text())
    monkeypatch.setattr("twinset.models.encoders.open_clip_files._library", lambda: tmp_path)
    (tmp_path / "model_configs").mkdir()
    for name, sizes in {"Tiny": plain, "Tiny-quickgelu": plain | {"quick_gelu": True}}.items():
        (tmp_path / f"model_configs/{name}.json").write_text(json.dumps(sizes))
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
    from twinset.models.encoders import open_clip_files
    from twinset.models.encoders.open_clip_files import find_architecture, tagged

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


@pytest.mark.parametrize("kind", ["clip", "siglip", "siglip2"])
def test_encoders_of_transformers_give_the_cosines_of_its_own_forward_pass(saved: dict[str, Path], kind: str) -> None:
    import transformers

    found = encoder(f"{kind.removesuffix('2')}:{saved[kind]}")
    names = {"clip": "CLIPModel", "siglip": "SiglipModel", "siglip2": "Siglip2Model"}
    model = getattr(transformers, names[kind]).from_pretrained(saved[kind]).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(saved[kind])
    length = 77 if kind == "clip" else 64
    texts = TEXTS if kind == "clip" else [text.replace(".", "") for text in TEXTS]  # SigLIP reads no punctuation
    read = tokenizer(texts, padding="max_length", truncation=True, max_length=length, return_tensors="pt")
    masked = {"attention_mask": read["attention_mask"]} if kind == "clip" else {}
    pixels = transformers.AutoImageProcessor.from_pretrained(saved[kind], backend="pil")(images(3), return_tensors="pt")
    with torch.inference_mode():
        made = model(input_ids=read["input_ids"], **pixels, **masked)
    expected = (made.image_embeds @ made.text_embeds.T).numpy()
    assert np.allclose(found.encode_images(images(3)) @ found.encode_texts(TEXTS).T, expected, atol=1e-5)
    if kind == "siglip2":  # 40 x 56 and 48 x 56 pixels in at most 12 patches
        assert [found.prepare(image).shape for image in images(2)] == [(3, 4, 768)] * 2


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
    assert isinstance(found, Matcher) and not isinstance(found, DualEncoder)
    shown = images(3)
    scores = found.score(shown, TEXTS)
    assert scores.dtype == np.float32
    expected = [reference(kind, saved[kind], image, text) for image, text in zip(shown, TEXTS, strict=True)]
    assert scores == pytest.approx(expected, abs=1e-5)
    order = [2, 0, 0]
    assert np.array_equal(found.score([shown[n] for n in order], [TEXTS[n] for n in order]), scores[order])


NETWORKS = {"blip": "BlipForImageTextRetrieval", "blip2": "Blip2ForImageTextRetrieval"}


def blip_reference(kind: str, folder: Path, image: Any, text: str, matching: bool) -> torch.Tensor:
    """The output of the network for one pair, by its own processor and tokenizer."""
    import transformers

    model = getattr(transformers, NETWORKS[kind]).from_pretrained(folder).eval()
    read = transformers.AutoTokenizer.from_pretrained(folder)(
        [text], return_tensors="pt", truncation=True, max_length=48
    )
    pixels = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")([image], return_tensors="pt")
    asked = {"input_ids": read["input_ids"], "attention_mask": read["attention_mask"], **pixels}
    with torch.inference_mode():
        if kind == "blip":
            return model(**asked, use_itm_head=matching).itm_score[0]
        return model(**asked, use_image_text_matching_head=matching).logits_per_image[0]


@pytest.mark.parametrize("kind", NETWORKS)
def test_both_heads_score_as_transformers_own_forward_pass(saved: dict[str, Path], kind: str) -> None:
    folder, shown = saved[f"{kind}-itm"], images(3)
    matcher, contrast = open_model(f"{kind}-itm:{folder}", FAST), encoder(f"{kind}-itc:{folder}")
    assert isinstance(matcher, Matcher)
    found = [matcher.score([image] * len(TEXTS), TEXTS) for image in shown]
    logits = [[blip_reference(kind, folder, image, text, True) for text in TEXTS] for image in shown]
    assert np.allclose(found, [[float(one[1] - one[0]) for one in row] for row in logits], atol=1e-5)
    similar = cosines(contrast.image_features([contrast.prepare(one) for one in shown]), contrast.encode_texts(TEXTS))
    if kind == "blip":
        similar = contrast.encode_images(shown) @ contrast.encode_texts(TEXTS).T
    expected = [[float(blip_reference(kind, folder, image, text, False)) for text in TEXTS] for image in shown]
    assert np.allclose(similar, expected, atol=1e-5)
    assert np.array_equal(contrast.text_features(TEXTS[::-1])[::-1], contrast.text_features(TEXTS))
    assert contrast.too_long([*TEXTS, "a " * 46]) == TEXTS[2:] and contrast.digest() != matcher.digest()


@pytest.mark.parametrize("kind", ["blip-itm", "blip2-itm"])
def test_an_image_is_seen_once_for_the_texts_that_it_is_scored_with(
    saved: dict[str, Path], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, (one, two) = open_model(f"{kind}:{saved[kind]}", FAST), images(2)
    assert isinstance(found, FusionScorer)
    texts = [f"a {word} on the mat" for word in ("cat", "dog", "red", "blue")]
    alone = np.array([found.score([one] * 10, [text] * 10)[0] for text in texts])
    seen, see = list[int](), found.see
    monkeypatch.setattr(found, "see", lambda pixels: seen.append(len(pixels["pixel_values"])) or see(pixels))
    scores = found.score([one, one, one, one, two, two, two, two, two, two], [*texts, *texts, *texts[:2]])
    assert seen == [8] and np.array_equal(scores[:4], alone) and np.array_equal(scores[8:], scores[4:6])


def test_pairs_and_galleries_are_scored_by_the_nearest_of_several_features(
    saved: dict[str, Path], tmp_path: Path
) -> None:

    model, shelf = f"blip2-itc:{saved['blip2-itm']}", Shelf()
    pictures, texts = [shelf.picture(n) for n in range(4)], ["a cat", "the red dog"]
    found = encoder(model)
    features = found.image_features([found.prepare(decode(one.where, one.read())) for one in pictures])
    assert features.shape == (4, 24) and found.text_features(texts).shape == (2, 8)
    each = features.reshape(4, 3, 8)
    each = each / np.linalg.norm(each, axis=2, keepdims=True)
    by_hand = (each @ found.encode_texts(texts).T).max(1)
    assert np.allclose(cosines(features, found.encode_texts(texts)), by_hand, atol=1e-6)
    pair = Matching(
        key="m", subset="s", group="g", images=(pictures[0], pictures[1]), captions=("a cat", "the red dog")
    )
    captions = Query(
        key="i", subset="s", group="g", image=pictures[0], text=None, gallery=texts, targets=frozenset({0})
    )
    shown = Query(key="t", subset="s", group="g", image=None, text="a cat", gallery=pictures, targets=frozenset({2}))
    tables = []
    for name, examples in (("pairs", [pair]), ("queries", [captions, shown])):
        (written,) = run([SmallBenchmark(examples.copy)], [model], tmp_path / name, tmp_path / "cache", FAST)
        tables.append(pq.read_table(written.path).to_pylist())
    assert [tables[0][0][f"s{n}{m}"] for n in (0, 1) for m in (0, 1)] == pytest.approx(by_hand[:2].ravel(), abs=1e-6)
    assert tables[1][0]["higher"] == int(by_hand[0, 1] > by_hand[0, 0])
    assert tables[1][1]["higher"] == int((by_hand[:, 0] > by_hand[2, 0]).sum())
    with pytest.raises(WrongUse, match="one feature an image"):
        open_model(f"image+text:{model}", FAST)


def test_a_tokenizer_of_another_model_and_a_training_are_refused(saved: dict[str, Path], tmp_path: Path) -> None:
    import json
    import shutil

    folder = shutil.copytree(saved["blip2-itm"], tmp_path / "other")
    save_tokenizer(folder, "blip")
    tokens = json.loads((folder / "tokenizer.json").read_text())
    tokens["model"]["vocab"]["purple"] = len(tokens["model"]["vocab"])
    (folder / "tokenizer.json").write_text(json.dumps(tokens))
    with pytest.raises(WrongUse, match="15 tokens and its Q-Former 14"):
        open_model(f"blip2-itc:{folder}", FAST)
    with pytest.raises(WrongUse, match="is not trained by its matching head"):
        open_start(FusionSettings(model=f"blip2-itm:{saved['blip2-itm']}", data=("x",)))
