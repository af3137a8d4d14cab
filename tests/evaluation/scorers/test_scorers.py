"""Models on a server on loopback: where it is, faults, kills, and nothing paid twice.

Encoders and fusion models of open_clip and transformers, as published and as their own code computes them.
"""

import json
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from tests.evaluation.features.small_benchmark import SmallBenchmark
from tests.evaluation.scorers.opened import FAST, TEXTS, encoder
from tests.evaluation.scorers.shown_images import (
    BLUE,
    CAPTIONS,
    RED,
    asked,
    chooser,
    likely,
    looks,
    matching,
    seen,
    shades,
)
from tests.evaluation.scorers.tiny_models import images, open_clip_config, open_clip_network
from tests.models.language_models.chat_server import Body, Reply, completion, failure, serving
from tests.waiting import wait_until
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.evaluation.run import run
from twinset.evaluation.scorers.kinds import open_model
from twinset.evaluation.scorers.asking import ADDRESS, KEY, SETTINGS
from twinset.models.encoders.contract import DualEncoder, Matcher

CHECKOUT = Path(__file__).resolve().parents[3]


def test_faults_that_pass_are_waited_out(environment: Callable[..., None]) -> None:
    faults = [
        failure(429, "slow down", retry_after="0"),
        failure(500, "oops"),
        Reply(completion("(2)").content, cut=40),
        Reply(b'{"choices": ['),
    ]

    def reply(body: Body, number: int) -> Reply:
        return faults[number] if number < len(faults) else looks(body, number)

    with serving(reply) as server:
        environment(server.url, concurrency=1)
        assert chooser().choose(asked([RED, BLUE])) == [(0,), (1,)]
        assert len(server.bodies) == 6 and set(server.answered.values()) == {1}


KILLED = """
from tests.evaluation.scorers.shown_images import asked, chooser, shades
from tests.waiting import wait_until
chooser().choose(asked(shades()))
"""


@pytest.mark.slow  # answers on disk and kills: tests/models/language_models/test_answers.py
def test_what_was_answered_before_a_kill_is_not_paid_for_again(environment: Callable[..., None]) -> None:
    reached, killed = threading.Event(), threading.Event()

    def reply(body: Body, number: int) -> Reply:
        if number == 4:
            reached.set()
            killed.wait()
            return failure(500, "nobody waits for this")
        return completion("(1)")

    with serving(reply) as server:
        environment(server.url, concurrency=1)
        process = subprocess.Popen([sys.executable, "-c", KILLED], cwd=CHECKOUT)
        wait_until(reached.is_set, process)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        killed.set()
        assert chooser().choose(asked(shades())) == [(0,)] * 6
        assert len(server.answered) == 6 and set(server.answered.values()) == {1}


def test_of_a_server_that_dies_what_was_answered_is_kept_and_the_wait_is_shown_at_once(
    environment: Callable[..., None], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    dead = True

    def reply(body: Body, number: int) -> Reply:
        return failure(503, "gone") if dead and number >= 3 else completion("(1)")

    def score() -> Path:
        return run([SmallBenchmark(lambda: [matching("both")])], ["openai-chooser:m"], tmp_path, tmp_path)[0].path

    with serving(reply) as server, caplog.at_level(logging.WARNING):
        environment(server.url, concurrency=1, retries=1)
        with pytest.raises(BuildFailed, match=r"tried 2 times, last: 503: gone.*what was answered stays"):
            score()
        assert "503: gone; asked again in 0.01 s, at most 1 times more" in caplog.text
        assert not [*tmp_path.glob("scores/*/*")]
        dead, asked_before = False, len(server.bodies)
        assert pq.read_table(score()).column("ipos2t").to_pylist() == [0.5]
        assert len(server.bodies) == asked_before + 5, "of 8 questions 3 were answered"


def test_the_environment_leads_to_the_server(environment: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(looks) as server:
        environment(server.url, max_cost=1e-9, price_in=1)
        monkeypatch.setenv(KEY, "sesame")
        with pytest.raises(BuildFailed, match="max_cost is 1e-09"):
            chooser().choose(asked([RED]))
        monkeypatch.setenv(SETTINGS, json.dumps({"answers": json.loads(os.environ[SETTINGS])["answers"]}))
        chooser().choose(asked([RED]))
        assert server.keys == ["Bearer sesame"]


@pytest.mark.parametrize(
    ("variable", "value", "problem"),
    [
        (ADDRESS, "", f"--model openai-chooser:m: there is no environment variable {ADDRESS}; set it to"),
        (ADDRESS, "here", "base_url: .*write the address of a server"),
        (SETTINGS, "{", f"{SETTINGS} is not JSON"),
        (SETTINGS, "[1]", f"{SETTINGS} is not a JSON object"),
        (SETTINGS, '{"prize_in": 1}', "prize_in: unknown key; did you mean 'price_in'"),
        (SETTINGS, '{"max_cost": 1}', "max_cost needs price_in"),
        (SETTINGS, '{"model": "n"}', f"{SETTINGS} has model, which --model"),
        (SETTINGS, '{"temperature": 1}', "temperature: Input should be 0"),
    ],
)
def test_a_wrong_environment_is_said(
    environment: Callable[..., None], monkeypatch: pytest.MonkeyPatch, variable: str, value: str, problem: str
) -> None:
    environment("http://127.0.0.1:1/v1")
    monkeypatch.setenv(variable, value)
    with pytest.raises(WrongUse, match=problem):
        chooser()


def test_servers_are_models_of_a_run(environment: Callable[..., None], tmp_path: Path) -> None:
    examples = [matching("both"), matching("swapped", CAPTIONS[::-1])]

    def reply(body: Body, number: int) -> Reply:
        if len(body["messages"][0]["content"]) == 3:
            return completion("(1)")  # of two images it takes the first
        colour, text = seen(body)
        if "Does" in text:
            return likely(Yes=0.6, No=0.2) if ("red" in text) == (colour[0] == 255) else likely(yes=0.1, no=0.9)
        return looks(body, number) if colour[0] == 255 else completion("(1)")  # of blue it says what comes first

    models = ["openai-chooser:m", "openai-yesno:m", "openai-vqascore:m"]
    with serving(reply) as server:
        environment(server.url)
        for _ in range(2):
            found = run([SmallBenchmark(lambda: examples)], models, tmp_path / "out", tmp_path / "cache")
            assert len(server.bodies) == 4 + 4 + 2 * 4, "each order of each image and each caption, each pair, once"
    names = [["ipos2t", "ineg2t", "tpos2i", "tneg2i"], *[["s00", "s01", "s10", "s11"]] * 2]
    tables = [pq.read_table(one.path).select(some).to_pylist() for one, some in zip(found, names, strict=True)]
    likelihood = {"s00": 0.75, "s01": pytest.approx(0.1), "s10": pytest.approx(0.1), "s11": 0.75}
    turned = {"s00": pytest.approx(0.1), "s01": 0.75, "s10": 0.75, "s11": pytest.approx(0.1)}
    tied = {"ineg2t": 0.5, "tpos2i": 0.5, "tneg2i": 0.5}
    assert tables[0] == [{"ipos2t": 1, **tied}, {"ipos2t": 0, **tied}]
    assert tables[1:] == [[likelihood, turned]] * 2


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


# --- transformers ------------------------------------------------------------------------------------------------


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
