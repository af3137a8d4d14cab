"""Models on a server on loopback: what is asked, how it becomes choices and scores, faults, and nothing paid twice."""

import base64
import io
import json
import logging
import math
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

from tests.evaluation.features.small_benchmark import SmallBenchmark
from tests.models.language_models.chat_server import Body, Reply, completion, failure, serving
from twinset.evaluation.examples import Matching, Picture
from twinset.evaluation.run import run
from twinset.evaluation.scorers.kinds import check_model, open_model, with_prompts
from twinset.evaluation.scorers.openai_server import ADDRESS, KEY, SETTINGS
from twinset.evaluation.scorers.prompted import PromptedChooser, PromptedYes
from twinset.manifests.errors import BuildFailed, WrongUse
from twinset.models.encoders.contract import Question, Running

CHECKOUT = Path(__file__).resolve().parents[3]
RED, BLUE = (Image.new("RGB", (8, 6), colour) for colour in ("red", "blue"))
CAPTIONS = ("a red wall without windows", "a blue wall without windows")


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Sets the variables that lead to a server."""

    def lead(url: str, **settings: Any) -> None:
        chosen = {"answers": str(tmp_path), "longest_wait": 0.01, "timeout": 5, **settings}
        monkeypatch.setenv(ADDRESS, url)
        monkeypatch.setenv(SETTINGS, json.dumps(chosen))
        monkeypatch.delenv(KEY, raising=False)

    return lead


def chooser(text: str = "openai-chooser:m") -> PromptedChooser:
    found = open_model(text, Running())
    assert isinstance(found, PromptedChooser)
    return found


def yes_no(text: str = "openai-yesno:m") -> PromptedYes:
    found = open_model(text, Running())
    assert isinstance(found, PromptedYes)
    return found


def asked(images: Sequence[Image.Image], captions: Sequence[tuple[str, str]] = ()) -> list[Question]:
    """Which caption fits each image."""
    return [
        Question("text", (one,), two) for one, two in zip(images, captions or [CAPTIONS] * len(images), strict=True)
    ]


def seen(body: Body) -> tuple[tuple[int, int, int], str]:
    """The colour of the image of a request, and its text."""
    image, text = body["messages"][0]["content"]
    kind, _, encoded = image["image_url"]["url"].partition(";base64,")
    assert kind == "data:image/png"
    with Image.open(io.BytesIO(base64.b64decode(encoded))) as opened:
        assert opened.size == (8, 6)
        return opened.getpixel((0, 0)), text["text"]  # type: ignore[return-value]


def looks(body: Body, _: int) -> Reply:
    """A model that sees: it chooses the caption with the colour of the image."""
    colour, text = seen(body)
    right = CAPTIONS[colour != (255, 0, 0)]
    return completion("Caption (1)." if f"(1) {right}" in text else "The second one fits best.")


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
from tests.evaluation.scorers.test_openai_server import asked, chooser, shades
chooser().choose(asked(shades()))
"""


def shades() -> list[Image.Image]:
    return [Image.new("RGB", (8, 6), (255, 0, number)) for number in range(6)]


@pytest.mark.slow  # answers on disk and kills: tests/models/language_models/test_answers.py
def test_what_was_answered_before_a_kill_is_not_paid_for_again(environment: Callable[..., None]) -> None:
    reached, killed = threading.Event(), threading.Event()

    def reply(body: Body, number: int) -> Reply:
        if number == 4:
            reached.set()
            killed.wait(60)
            return failure(500, "nobody waits for this")
        return completion("(1)")

    with serving(reply) as server:
        environment(server.url, concurrency=1)
        process = subprocess.Popen([sys.executable, "-c", KILLED], cwd=CHECKOUT)
        assert reached.wait(60)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        killed.set()
        assert chooser().choose(asked(shades())) == [(0,)] * 6
        assert len(server.answered) == 6 and set(server.answered.values()) == {1}


def test_of_a_server_that_dies_what_was_answered_is_kept_and_the_wait_is_shown_at_once(
    environment: Callable[..., None], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pictures = [Picture(name, lambda image=image: png(image)) for name, image in (("red", RED), ("blue", BLUE))]
    both = Matching(key="both", subset="s", group="g", images=tuple(pictures), captions=CAPTIONS)
    dead = True

    def reply(body: Body, number: int) -> Reply:
        return failure(503, "gone") if dead and number >= 3 else completion("(1)")

    def score() -> Path:
        return run([SmallBenchmark(lambda: [both])], ["openai-chooser:m"], tmp_path, tmp_path)[0].path

    with serving(reply) as server, caplog.at_level(logging.WARNING):
        environment(server.url, concurrency=1, retries=1)
        with pytest.raises(BuildFailed, match=r"tried 2 times, last: 503: gone.*what was answered stays"):
            score()
        assert "503: gone; asked again in 0.01 s, at most 1 times more" in caplog.text
        assert not [*tmp_path.glob("scores/*/*")]
        dead, asked_before = False, len(server.bodies)
        assert pq.read_table(score()).column("ipos2t").to_pylist() == [0.5]
        assert len(server.bodies) == asked_before + 5, "of 8 questions 3 were answered"


def likely(**probabilities: float) -> Reply:
    """A completion with alternatives to its first token."""
    reply = completion("Yes")
    body = json.loads(reply.content)
    top = [{"token": token, "logprob": math.log(share)} for token, share in probabilities.items()]
    body["choices"][0]["logprobs"] = {"content": [{"token": "Yes", "logprob": 0, "top_logprobs": top}]}
    reply.content = json.dumps(body).encode()
    return reply


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
        found = yes_no(kind).score([RED, RED, BLUE, RED], [*CAPTIONS, CAPTIONS[1], CAPTIONS[0]])
        assert found.dtype == np.float32 and found.tolist() == pytest.approx(
            np.array([[0.75, 0], [0.1, 0], [0.75, 0], [0.75, 0]])
        )
        assert len(server.bodies) == 3


def test_a_pair_without_yes_or_no_has_no_score_in_any_run_and_its_example_is_a_tie(
    environment: Callable[..., None], tmp_path: Path
) -> None:
    def reply(body: Body, _: int) -> Reply:
        return completion("It depends" if "red" in seen(body)[1] and seen(body)[0] == (255, 0, 0) else "no")

    pictures = [Picture(name, lambda image=image: png(image)) for name, image in (("red", RED), ("blue", BLUE))]
    both = Matching(key="both", subset="s", group="g", images=tuple(pictures), captions=CAPTIONS)
    with serving(reply) as server:
        environment(server.url)
        for _ in range(2):  # the second one takes answers from disk
            (path,) = [
                one.path for one in run([SmallBenchmark(lambda: [both])], ["openai-yesno:m"], tmp_path, tmp_path)
            ]
            row = pq.read_table(path).select(["s00", "s01", "s10", "s11"]).to_pylist()
            assert row == [dict.fromkeys(("s00", "s01", "s10", "s11"), 0.5)]
            told = json.loads(pq.read_schema(path).metadata[b"twinset"])
            assert told["unanswered"] == {"no-answer": 1} and told["prompt"] == "yes-no 1"
        assert len(server.bodies) == 4
    assert json.loads(path.with_suffix(".unanswered.jsonl").read_text()) == {
        **{"key": "both", "reason": "no-answer"},
        "what": "red with 'a red wall without windows'",
    }


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
        ("openai-chooser/options:m", "a server does not say how likely options are"),
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
    assert chooser(texts[-1]).speaker.identity[1] == "n:7b"


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
        (SETTINGS, '{"prize_in": 1}', "prize_in: Extra inputs"),
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


def png(image: Image.Image) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


def test_servers_are_models_of_a_run(environment: Callable[..., None], tmp_path: Path) -> None:
    pictures = [Picture(name, lambda image=image: png(image)) for name, image in (("red", RED), ("blue", BLUE))]
    examples = [
        Matching(key="both", subset="s", group="g", images=tuple(pictures), captions=CAPTIONS),
        Matching(key="swapped", subset="s", group="g", images=tuple(pictures), captions=CAPTIONS[::-1]),
    ]

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
