"""What a model on a server says about images becomes choices and scores."""

import base64
import io
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

from tests.evaluation.features.small_benchmark import SmallBenchmark
from tests.evaluation.scorers.shown_images import BLUE, CAPTIONS, RED, asked, chooser, likely, looks, matching, seen
from tests.models.language_models.chat_server import Body, Reply, completion, failure, serving
from twinset.evaluation.examples import OwnQuestion
from twinset.evaluation.run import run
from twinset.evaluation.scorers.kinds import open_model
from twinset.evaluation.scorers.prompted import PromptedYes
from twinset.models.encoders.contract import Question, Running


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
