"""Questions to a server on loopback: what is sent, how yes and no are read, and that nothing is asked for twice."""

import base64
import json
import math
from pathlib import Path
from typing import Any

import pytest

from tests.models.language_models.chat_server import Body, Reply, completion, failure, serving
from twinset.models.visual_questions.server_model import ALTERNATIVES, VisionServer, _probability
from twinset.models.visual_questions.settings import Inquiry, Server, Unanswered

IMAGES = (b"\xff\xd8 one", b"\xff\xd8 another")


def inquiry(*questions: str, image: bytes = IMAGES[0]) -> Inquiry:
    return Inquiry("a", image, "image/jpeg", questions)


def engine(url: str, folder: Path, **settings: Any) -> VisionServer:
    chosen = {"base_url": url, "answers": folder, "longest_wait": 0.01, **settings}
    return VisionServer(Server(kind="openai", model="m", **chosen))


def likely(text: str, **probabilities: float) -> Reply:
    """A completion with alternatives to its first token."""
    reply = completion(text)
    body = json.loads(reply.content)
    top = [{"token": token, "logprob": math.log(share)} for token, share in probabilities.items()]
    body["choices"][0]["logprobs"] = {"content": [{"token": text, "logprob": 0, "top_logprobs": top}]}
    reply.content = json.dumps(body).encode()
    return reply


def test_images_and_questions_are_sent_and_each_once(tmp_path: Path) -> None:
    def reply(body: Body, _: int) -> Reply:
        question = body["messages"][0]["content"][1]["text"]
        return likely("Yes", Yes=0.6, yes=0.1, No=0.2, perhaps=0.1) if "dog" in question else likely("no", no=0.9)

    with serving(reply) as server:
        asking = engine(server.url, tmp_path)
        both = [inquiry("Is there a dog?", "Is there a cat?"), inquiry("Is there a dog?", image=IMAGES[1])]
        found = asking.answers(both)
        assert found[0] == [pytest.approx(0.7 / 0.9), 0.0] and found[1] == [pytest.approx(0.7 / 0.9)]
        assert engine(server.url, tmp_path).answers(both) == found  # as after a build that was killed
        assert len(server.bodies) == 3
        sent = {
            (content[0]["image_url"]["url"], content[1]["text"].partition("?")[0])
            for body in server.bodies
            for content in [body["messages"][0]["content"]]
        }
        urls = [f"data:image/jpeg;base64,{base64.b64encode(image).decode()}" for image in IMAGES]
        assert sent == {(urls[0], "Is there a dog"), (urls[0], "Is there a cat"), (urls[1], "Is there a dog")}
        for body in server.bodies:
            assert (body["temperature"], body["max_tokens"], body["logprobs"]) == (0, 1, True)
            assert body["top_logprobs"] == ALTERNATIVES


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (completion("Yes, there is."), [1.0]),
        (completion("no."), [0.0]),
        (likely(" yes", **{" yes": 0.3, "▁no": 0.1}), [1.0]),
        (likely("A", A=0.9), None),
        (completion(""), None),
        (completion(None), None),
        (completion("I cannot see it"), None),
        (likely("no", Yes=1e-30, no=1.0), [pytest.approx(1e-30)]),
        (Reply(likely("yes", yes=0.9).content.replace(b"-0.1", b"-1" + b"0" * 400)), [1.0]),
    ],
)
def test_how_an_answer_is_read(tmp_path: Path, sent: Reply, expected: list[float] | None) -> None:
    with serving(lambda *_: sent) as server:
        (found,) = engine(server.url, tmp_path).answers([inquiry("Is there a dog?")])
    assert found == expected if expected is not None else isinstance(found, Unanswered) and found.reason == "no-answer"


def test_faults_are_waited_out_and_a_refused_image_is_said(tmp_path: Path) -> None:
    tried: list[str] = []

    def reply(body: Body, number: int) -> Reply:
        question = body["messages"][0]["content"][1]["text"]
        if "gun" in question:
            return failure(400, "content policy")
        tried.append(question)
        return failure(503, "busy") if len(tried) < 3 else completion("yes")

    with serving(reply) as server:
        found = engine(server.url, tmp_path, concurrency=1).answers(
            [inquiry("Is there a dog?"), inquiry("Is there a gun?", image=IMAGES[1])]
        )
    assert found[0] == [1.0] and isinstance(found[1], Unanswered)
    assert found[1].reason == "refused" and "content policy" in found[1].detail and len(tried) == 3


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *(
            (text, 1.0)
            for text in ("A", "a.", "(a)", "A: a ball", "[A]", "**A**", '"A"', "Option A", "The answer is A.")
        ),
        *((text, 0.0) for text in ("B) in a street", "the correct answer is (B)", "Answer: b")),
        *((text, None) for text in ("A kite is held", "A man", "Both", "", "C")),
    ],
)
def test_a_letter_in_words_is_no_article(text: str, expected: float | None) -> None:
    assert _probability({}, text, ("a", "b")) == expected
