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
from collections.abc import Callable
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
from twinset.evaluation.scorers.openai_server import (
    ADDRESS,
    KEY,
    SETTINGS,
    UNDECIDED,
    ServerChooser,
    ServerYesNo,
    open_chooser,
    open_vqa_score,
    open_yes_no,
)
from twinset.manifests.errors import WrongUse
from twinset.models.encoders.contract import Chooser, Matcher, Running

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


def chooser() -> ServerChooser:
    return open_chooser("openai-chooser:m", ["m"], Running())


def yes_no(kind: Callable[..., ServerYesNo] = open_yes_no) -> ServerYesNo:
    return kind("openai-yesno:m", ["m"], Running())


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
    images, captions = [RED, BLUE, RED], [CAPTIONS, CAPTIONS, CAPTIONS[::-1]]
    with serving(looks) as server:
        environment(server.url)
        asking = chooser()
        assert isinstance(asking, Chooser)
        assert asking.choose(images, captions) == [0, 1, 1]
        assert chooser().choose(images[::-1], captions[::-1]) == [1, 1, 0]  # as after a run that was killed
        assert len(server.bodies) == 3 and server.keys == ["Bearer none"] * 3
    sent = {seen(body) for body in server.bodies}
    question = "Which caption best describes the image?\n(1) {}\n (2) {}\nOutput (1) or (2)."
    assert ((255, 0, 0), question.format(*CAPTIONS)) in sent and ((0, 0, 255), question.format(*CAPTIONS)) in sent
    assert {(body["temperature"], body["max_tokens"]) for body in server.bodies} == {(0, 300)}


def test_an_answer_without_a_choice_and_a_refused_request_choose_nothing(
    environment: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    def reply(body: Body, _: int) -> Reply:
        colour, text = seen(body)
        return failure(400, "content policy") if colour == (0, 0, 255) else completion(text)

    with serving(reply) as server, caplog.at_level(logging.WARNING):
        environment(server.url, concurrency=1)
        asking = chooser()
        assert asking.choose([RED, BLUE], [CAPTIONS] * 2) == [None, None] and asking.unparsed == 2
    assert "2 answers so far name no caption" in caplog.text


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
        assert chooser().choose([RED, BLUE], [CAPTIONS] * 2) == [0, 1]
        assert len(server.bodies) == 6 and set(server.answered.values()) == {1}


KILLED = """
from tests.evaluation.scorers.test_openai_server import CAPTIONS, chooser, shades
chooser().choose(shades(), [CAPTIONS] * 6)
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
        assert chooser().choose(shades(), [CAPTIONS] * 6) == [0] * 6
        assert len(server.answered) == 6 and set(server.answered.values()) == {1}


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
        (open_yes_no, "Does this image show: '{}'? Answer the question about the image with one word, yes or no."),
        (open_vqa_score, 'Does this figure show "{}"? Please answer yes or no.'),
    ],
)
def test_pairs_are_scored_by_the_probability_of_yes(
    environment: Callable[..., None], kind: Callable[..., ServerYesNo], question: str
) -> None:
    texts = [*CAPTIONS, "a wall"]

    def reply(body: Body, _: int) -> Reply:
        colour, text = seen(body)
        assert text in [question.format(one) for one in texts]
        return likely(Yes=0.6, No=0.2) if ("red" in text) == (colour[0] == 255) else likely(yes=0.1, no=0.9)

    with serving(reply) as server:
        environment(server.url)
        scorer = yes_no(kind)
        assert isinstance(scorer, Matcher)
        found = scorer.score([RED, RED, BLUE, RED], [*CAPTIONS, CAPTIONS[1], CAPTIONS[0]])
        assert found.dtype == np.float32 and found.tolist() == pytest.approx([0.75, 0.1, 0.75, 0.75])
        assert len(server.bodies) == 3


def test_a_pair_without_yes_or_no_is_undecided_and_counted(
    environment: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    def reply(body: Body, _: int) -> Reply:
        return completion("It depends" if "red" in seen(body)[1] else "no")

    with serving(reply) as server, caplog.at_level(logging.WARNING):
        environment(server.url)
        scorer = yes_no()
        assert scorer.score([RED, RED], CAPTIONS).tolist() == [UNDECIDED, 0] and scorer.unanswered == 1
    assert "1 pairs so far are neither yes nor no (no-answer" in caplog.text


def test_models_are_told_apart_by_what_is_asked(environment: Callable[..., None]) -> None:
    environment("http://127.0.0.1:1/v1")
    models = [chooser(), yes_no(), yes_no(open_vqa_score), open_chooser("openai-chooser:n:7b", ["n:7b"], Running())]
    assert len({one.digest() for one in models}) == 4 and models[3].settings.model == "n:7b"


def test_the_environment_leads_to_the_server(environment: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(looks) as server:
        environment(server.url, max_cost=1e-9, price_in=1)
        monkeypatch.setenv(KEY, "sesame")
        assert chooser().settings.max_cost == 1e-9
        monkeypatch.setenv(SETTINGS, json.dumps({"answers": json.loads(os.environ[SETTINGS])["answers"]}))
        chooser().choose([RED], [CAPTIONS])
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
        colour, text = seen(body)
        if "Which caption" not in text:
            return likely(Yes=0.6, No=0.2) if ("red" in text) == (colour[0] == 255) else likely(yes=0.1, no=0.9)
        return looks(body, number) if colour[0] == 255 else completion("(1)")  # of blue it says what comes first

    models = ["openai-chooser:m", "openai-yesno:m", "openai-vqascore:m"]
    with serving(reply) as server:
        environment(server.url)
        for _ in range(2):
            found = run([SmallBenchmark(lambda: examples)], models, tmp_path / "out", tmp_path / "cache")
            assert len(server.bodies) == 4 + 2 * 4, "each order of each image, each pair, once"
    tables = [pq.read_table(one.path).select(["s00", "s01", "s10", "s11"]).to_pylist() for one in found]
    likelihood = {"s00": 0.75, "s01": pytest.approx(0.1), "s10": pytest.approx(0.1), "s11": 0.75}
    turned = {"s00": pytest.approx(0.1), "s01": 0.75, "s10": 0.75, "s11": pytest.approx(0.1)}
    assert tables[0] == [{"s00": 1, "s01": 0, "s10": 0.5, "s11": 0.5}, {"s00": 0, "s01": 1, "s10": 0.5, "s11": 0.5}]
    assert tables[1:] == [[likelihood, turned]] * 2
