"""What a model on a server says about images becomes choices and scores; prompts and their faults."""

import base64
import io
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from PIL import Image

from tests.evaluation.features.small_benchmark import SmallBenchmark
from tests.evaluation.scorers.shown_images import BLUE, CAPTIONS, RED, asked, chooser, likely, looks, matching, seen
from tests.models.language_models.chat_server import Body, Reply, completion, failure, serving
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.evaluation.examples import OwnQuestion
from twinset.evaluation.run import run
from twinset.evaluation.scorers.asking import KEY, SETTINGS
from twinset.evaluation.scorers.kinds import check_model, open_model, with_prompts
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
    replies = {(255, 0, 0): completion("(1) or (2)"), (0, 0, 255): failure(400, "content policy")}
    with serving(lambda body, _: replies[seen(body)[0]]) as server:
        environment(server.url, concurrency=1)
        assert chooser().choose(asked([RED, BLUE])) == ["both", "refused"]


@pytest.mark.parametrize(
    ("prompt", "direction", "answer", "chosen", "sizes"),
    [
        ("choose", "image", "The second image.", (1,), [(8, 6), (8, 12)]),
        ("choose-joined", "image", "(2), the one on the right", (1,), [(12, 6)]),
        ("eqben", "pairing", "2;1", (1, 0), [(12, 6)]),
    ],
)
def test_two_images_are_sent_as_two_or_side_by_side_and_captions_never_read_as_places(
    environment: Callable[..., None], prompt: str, direction: Any, answer: str, chosen: Any, sizes: Any
) -> None:
    captions = ("{caption2}", "b")[: 2 if direction == "pairing" else 1]
    with serving(lambda body, _: completion(answer)) as server:
        environment(server.url)
        question = Question(direction, (RED, Image.new("RGB", (8, 12), "blue")), captions)
        assert chooser(f"openai-chooser/{prompt}:m").choose([question]) == [chosen]
    *images, text = server.bodies[-1]["messages"][0]["content"]
    shown = [base64.b64decode(image["image_url"]["url"].partition(",")[2]) for image in images]
    assert [Image.open(io.BytesIO(png)).size for png in shown] == sizes and "{caption2}" in text["text"]


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
            (row,) = pq.read_table(found.path).select(["s00", "s01", "s10", "s11"]).to_pylist()
            assert {*row.values()} == {0.5}
            told = json.loads(pq.read_schema(found.path).metadata[b"twinset"])
            assert told["unanswered"] == {"no-answer": 1} and told["prompt"] == "yes-no 1"
        assert len(server.bodies) == 4


def test_each_prompt_is_a_model_and_others_are_left_as_they_are(
    environment: Callable[..., None], tmp_path: Path
) -> None:
    own = tmp_path / "mine.yaml"
    own.write_text("mine: {version: 3, asks: choice, source: me, text: '{caption1} or {caption2}?'}")
    environment("http://127.0.0.1:1/v1")
    prompted = with_prompts(["openai-chooser:m", "random:ViT-B-32"], ["eqben", str(own)])
    assert prompted == ["openai-chooser/eqben:m", f"openai-chooser/{own}:m", "random:ViT-B-32"]
    asking = chooser(prompted[1])
    assert asking.words == "mine 3" and asking.directions == ("text",)
    texts = ["openai-chooser:m", "openai-chooser/eqben:m", "openai-yesno:m", "openai-vqascore:m", "openai-chooser:n:7b"]
    assert len({open_model(text, Running()).digest() for text in texts}) == 5
    own.write_text("mine: {version: 3, asks: choice, source: me, text: '{caption1}?'}")
    for text, problem in {
        f"openai-chooser/{own}:m": "text: must have {caption1} and {caption2}",
        "openai-chooser/none:m": "there is no prompt 'none'; name one of choose, ",
        "random/vqascore:ViT-B-32": "random is not asked by a prompt",
    }.items():
        with pytest.raises(WrongUse, match=problem):
            check_model(text)


def test_the_environment_leads_to_the_server(environment: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(looks) as server:
        environment(server.url, max_cost=1e-9, price_in=1)
        monkeypatch.setenv(KEY, "sesame")
        with pytest.raises(BuildFailed, match="max_cost is 1e-09"):
            chooser().choose(asked([RED]))
        environment(server.url)
        monkeypatch.setenv(KEY, "sesame")
        chooser().choose(asked([RED]))
        assert server.keys == ["Bearer sesame"]
    monkeypatch.setenv(SETTINGS, '{"prize_in": 1}')
    with pytest.raises(WrongUse, match="prize_in: unknown key; did you mean 'price_in'"):
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
    texts = {body["messages"][0]["content"][-1]["text"] for body in server.bodies}
    assert f'Does this figure show "{CAPTIONS[0]}"? Please answer yes or no.' in texts
    names = [["ipos2t", "ineg2t", "tpos2i", "tneg2i"], *[["s00", "s01", "s10", "s11"]] * 2]
    tables = [pq.read_table(one.path).select(some).to_pylist() for one, some in zip(found, names, strict=True)]
    likelihood = {"s00": 0.75, "s01": pytest.approx(0.1), "s10": pytest.approx(0.1), "s11": 0.75}
    turned = {"s00": pytest.approx(0.1), "s01": 0.75, "s10": 0.75, "s11": pytest.approx(0.1)}
    tied = {"ineg2t": 0.5, "tpos2i": 0.5, "tneg2i": 0.5}
    assert tables[0] == [{"ipos2t": 1, **tied}, {"ipos2t": 0, **tied}]
    assert tables[1:] == [[likelihood, turned]] * 2
