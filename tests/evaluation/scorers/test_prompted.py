"""BLIP's and BLIP-2's two heads: their scores are those of transformers' own forward pass, an image is seen once.

Models of an image and a text together: baselines and published Combiners.
What a model on a server says about images becomes choices and scores.
A model that is asked by a prompt is another model with each prompt; wrong prompts are named.
"""

import base64
import io
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image

from tests.evaluation.features.small_benchmark import Shelf, SmallBenchmark
from tests.evaluation.scorers.opened import FAST, TEXTS, encoder
from tests.evaluation.scorers.shown_images import BLUE, CAPTIONS, RED, asked, chooser, likely, looks, matching, seen
from tests.evaluation.scorers.tiny_models import images, open_clip_config, open_clip_network, save_tokenizer
from tests.models.language_models.chat_server import Body, Reply, completion, failure, serving
from twinset.contracts.errors import WrongUse
from twinset.evaluation.examples import Matching, OwnQuestion, Query
from twinset.evaluation.features.pictures import decode
from twinset.evaluation.features.similarities import cosines
from twinset.evaluation.run import run
from twinset.evaluation.scorers.kinds import check_model, open_model, with_prompts
from twinset.evaluation.scorers.prompted import PromptedYes
from twinset.models.encoders.contract import Composer, Matcher, Question, Running, unit
from twinset.models.encoders.fusion_models import FusionScorer
from twinset.training.fusion.models import open_start
from twinset.training.fusion.settings import FusionSettings

NETWORKS = {"blip": "BlipForImageTextRetrieval", "blip2": "Blip2ForImageTextRetrieval"}


def reference(kind: str, folder: Path, image: Any, text: str, matching: bool) -> torch.Tensor:
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
    logits = [[reference(kind, folder, image, text, True) for text in TEXTS] for image in shown]
    assert np.allclose(found, [[float(one[1] - one[0]) for one in row] for row in logits], atol=1e-5)
    similar = cosines(contrast.image_features([contrast.prepare(one) for one in shown]), contrast.encode_texts(TEXTS))
    if kind == "blip":
        similar = contrast.encode_images(shown) @ contrast.encode_texts(TEXTS).T
    expected = [[float(reference(kind, folder, image, text, False)) for text in TEXTS] for image in shown]
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
    import pyarrow.parquet as pq

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


def test_it_chooses_in_both_orders_and_is_asked_once(environment: Callable[..., None]) -> None:
    questions = asked([RED, BLUE, RED], [CAPTIONS, CAPTIONS, CAPTIONS[::-1]])
    with serving(looks) as server:
        environment(server.url)
        assert chooser().choose(questions) == [(0,), (1,), (1,)]
        assert chooser().choose(questions[::-1]) == [(1,), (1,), (0,)]  # as after a run that was killed
        assert len(server.bodies) == 3 and server.keys == ["Bearer none"] * 3
    sent = {seen(body) for body in server.bodies}
    question = "Which caption best describes the image?\n(1) {}\n (2) {}\nOutput (1) or (2)."
    assert ((255, 0, 0), question.format(*CAPTIONS)) in sent and ((0, 0, 255), question.format(*CAPTIONS)) in sent
    assert {(body["temperature"], body["max_tokens"]) for body in server.bodies} == {(0, 300)}


def test_an_answer_without_a_choice_and_a_refused_request_say_why(environment: Callable[..., None]) -> None:
    def reply(body: Body, _: int) -> Reply:
        colour, text = seen(body)
        return failure(400, "content policy") if colour == (0, 0, 255) else completion(text)

    with serving(reply) as server:
        environment(server.url, concurrency=1)
        assert chooser().choose(asked([RED, BLUE])) == ["both", "refused"]


def test_two_images_are_sent_as_two_or_side_by_side_and_captions_never_read_as_places(
    environment: Callable[..., None],
) -> None:
    def sizes(body: Body) -> list[tuple[int, int]]:
        parts = [one for one in body["messages"][0]["content"] if one["type"] == "image_url"]
        found = [base64.b64decode(one["image_url"]["url"].partition(",")[2]) for one in parts]
        return [Image.open(io.BytesIO(one)).size for one in found]

    said = {"choose": "The second image.", "choose-joined": "(2), the one on the right", "eqben": "2;1"}
    tall = Image.new("RGB", (8, 12), "blue")
    with serving(lambda body, _: completion(said[prompt])) as server:
        environment(server.url)
        for prompt, sent in (("choose", [(8, 6), (8, 12)]), ("choose-joined", [(12, 6)]), ("eqben", [(12, 6)])):
            asking = chooser(f"openai-chooser/{prompt}:m")
            direction, captions = ("pairing", ("{caption2}", "b")) if prompt == "eqben" else ("image", ("{caption1}",))
            assert asking.choose([Question(direction, (RED, tall), captions)]) == [
                (1, 0) if prompt == "eqben" else (1,)
            ]
            assert sizes(server.bodies[-1]) == sent
            text = server.bodies[-1]["messages"][0]["content"][-1]["text"]
            assert captions[0] in text and ("caption 2: b." in text) == (prompt == "eqben")


@pytest.mark.parametrize(
    ("kind", "question"),
    [
        ("openai-yesno:m", "Does this image show: '{}'? Answer the question about the image with one word, yes or no."),
        ("openai-vqascore:m", 'Does this figure show "{}"? Please answer yes or no.'),
    ],
)
def test_pairs_are_scored_by_the_probability_of_yes(environment: Callable[..., None], kind: str, question: str) -> None:
    texts = [*CAPTIONS, "a wall"]

    def reply(body: Body, _: int) -> Reply:
        colour, text = seen(body)
        assert text in [question.format(one) for one in texts]
        return likely(Yes=0.6, No=0.2) if ("red" in text) == (colour[0] == 255) else likely(yes=0.1, no=0.9)

    with serving(reply) as server:
        environment(server.url)
        model = open_model(kind, Running())
        assert isinstance(model, PromptedYes)
        found = model.score([RED, RED, BLUE, RED], [*CAPTIONS, CAPTIONS[1], CAPTIONS[0]])
        assert found.dtype == np.float32 and found.tolist() == pytest.approx(
            np.array([[0.75, 0], [0.1, 0], [0.75, 0], [0.75, 0]])
        )
        assert len(server.bodies) == 3


def test_a_cached_score_of_the_question_as_a_caption_is_not_used_again(
    environment: Callable[..., None], tmp_path: Path
) -> None:
    own = (OwnQuestion(CAPTIONS[0], "Is it red?"), OwnQuestion(CAPTIONS[1], "Is it blue?"))
    with serving(lambda body, _: likely(**{"yes" if "show" in seen(body)[1] else "no": 1.0})) as server:
        environment(server.url)
        for asks, score in ((CAPTIONS, 1.0), (own, 0.0)):
            benchmark = SmallBenchmark(partial(lambda captions: [matching("k", captions)], asks))
            (found,) = run([benchmark], ["openai-yesno:m"], tmp_path, tmp_path)
            assert pq.read_table(found.path)["s00"].to_pylist() == [score]


def test_a_pair_without_yes_or_no_has_no_score_in_any_run_and_its_example_is_a_tie(
    environment: Callable[..., None], tmp_path: Path
) -> None:
    def reply(body: Body, _: int) -> Reply:
        return completion("It depends" if "red" in seen(body)[1] and seen(body)[0] == (255, 0, 0) else "no")

    with serving(reply) as server:
        environment(server.url)
        for _ in range(2):  # the second one takes answers from disk
            (found,) = run([SmallBenchmark(lambda: [matching("both")])], ["openai-yesno:m"], tmp_path, tmp_path)
            path = found.path
            row = pq.read_table(path).select(["s00", "s01", "s10", "s11"]).to_pylist()
            assert row == [dict.fromkeys(("s00", "s01", "s10", "s11"), 0.5)]
            told = json.loads(pq.read_schema(path).metadata[b"twinset"])
            assert told["unanswered"] == {"no-answer": 1} and told["prompt"] == "yes-no 1"
        assert len(server.bodies) == 4
    assert json.loads(path.with_suffix(".unanswered.jsonl").read_text()) == {
        **{"key": "both", "reason": "no-answer"},
        "what": "red with 'a red wall without windows'",
    }


def test_each_prompt_is_a_model_and_others_are_left_as_they_are(
    environment: Callable[..., None], tmp_path: Path
) -> None:
    own = tmp_path / "mine.yaml"
    own.write_text("mine: {version: 3, asks: choice, source: me, text: '{caption1} or {caption2}?'}")
    environment("http://127.0.0.1:1/v1")
    models = ["openai-chooser:m", "random:ViT-B-32"]
    assert with_prompts(models, ["sugarcrepe", str(own)]) == [
        *("openai-chooser/sugarcrepe:m", f"openai-chooser/{own}:m", "random:ViT-B-32")
    ]
    asking = chooser(f"openai-chooser/{own}:m")
    assert asking.words == "mine 3" and asking.directions == ("text",)
    for text, problem in (
        ("openai-chooser/vqascore:m", "the prompt vqascore asks for yes, not choice"),
        ("openai-chooser/visualgptscore:m", "the prompt visualgptscore asks for likelihood, not choice"),
        ("openai-chooser/none:m", "there is no prompt 'none'; name one of choose, "),
        (f"openai-chooser/{tmp_path}/no.yaml:m", "not a file of prompts"),
        ("random/vqascore:ViT-B-32", "random is not asked by a prompt"),
    ):
        with pytest.raises(WrongUse, match=problem):
            check_model(text)
    with pytest.raises(WrongUse, match="--prompt eqben: none of the models is asked by a prompt"):
        with_prompts(models[1:], ["eqben"])
    for wrong, problem in (
        ("a: {version: 1, asks: choice, source: s, text: '{caption1}'}", "text: must have {caption1} and {caption2}"),
        ("a: {version: 1, asks: choice, source: s}", "asks nothing; write text, image or pairing"),
        ("a: {version: 1, asks: 'yes', source: s, text: '{caption}', prize: 1}", "prize: Extra inputs"),
        ("a: &b {version: 1}", "not a file of prompts|Field required|asks"),
        ("[1", "not a file of prompts"),
    ):
        (tmp_path / f"{len(wrong)}.yaml").write_text(wrong)
        with pytest.raises(WrongUse, match=problem):
            check_model(f"openai-chooser/{tmp_path}/{len(wrong)}.yaml:m")


def test_models_are_told_apart_by_what_is_asked(environment: Callable[..., None]) -> None:
    environment("http://127.0.0.1:1/v1")
    texts = ["openai-chooser:m", "openai-chooser/eqben:m", "openai-yesno:m", "openai-vqascore:m", "openai-chooser:n:7b"]
    assert len({open_model(one, Running()).digest() for one in texts}) == 5
    assert chooser(texts[-1]).model.identity[1] == "n:7b"
