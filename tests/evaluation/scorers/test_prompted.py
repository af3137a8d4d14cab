"""What a model on a server, or ``vlm:FOLDER``, says about images becomes choices and scores; prompts, their faults."""

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

from tests.evaluation.features.small_benchmark import Shelf, SmallBenchmark, matchings
from tests.evaluation.report.made_scores import picture
from tests.evaluation.scorers.opened import FAST
from tests.models.language_models.chat_server import Body, Reply, completion, failure, serving
from tests.models.visual_questions.tiny_vision_language import save
from twinset.contracts.errors import WrongUse
from twinset.evaluation.examples import Matching, OwnQuestion
from twinset.evaluation.metrics.matching import FINER, SCORES
from twinset.evaluation.metrics.measure import measure
from twinset.evaluation.run import run
from twinset.evaluation.scorers.asking import ADDRESS, KEY, SETTINGS
from twinset.evaluation.scorers.kinds import check_model, open_model, with_prompts
from twinset.evaluation.scorers.prompted import PromptedChooser
from twinset.models.encoders.contract import Question, Running
from twinset.models.visual_questions import vision_language

RED, BLUE = (Image.new("RGB", (40, 30), colour) for colour in ("red", "blue"))
CAPTIONS = ("a red wall without windows", "a blue wall without windows")


def matching(key: str, captions: tuple[str, str] = CAPTIONS) -> Matching:
    """The two images, each with a caption."""
    pictures = (picture("red", "red"), picture("blue", "blue"))
    return Matching(key=key, subset="s", group="g", images=pictures, captions=captions)


def chooser(text: str = "openai-chooser:m") -> PromptedChooser:
    model = open_model(text, Running())
    assert isinstance(model, PromptedChooser)
    return model


def asked(image: Image.Image, captions: tuple[str, str] = CAPTIONS) -> Question:
    """Which caption fits an image."""
    return Question("text", (image,), captions)


def seen(body: Body) -> tuple[tuple[int, int, int], str]:
    """The colour of the image of a request, and its text."""
    image, text = body["messages"][0]["content"]
    kind, _, encoded = image["image_url"]["url"].partition(";base64,")
    assert kind == "data:image/png"
    with Image.open(io.BytesIO(base64.b64decode(encoded))) as opened:
        assert opened.size == RED.size
        return opened.getpixel((0, 0)), text["text"]  # type: ignore[return-value]


def looks(body: Body, _: int) -> Reply:
    """A model that sees: it chooses the caption with the colour of the image."""
    colour, text = seen(body)
    right = CAPTIONS[colour != (255, 0, 0)]
    return completion("Caption (1)." if f"(1) {right}" in text else "The second one fits best.")


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Sets the variables that lead to a server."""

    def lead(url: str, **settings: Any) -> None:
        chosen = {"answers": str(tmp_path), "longest_wait": 0.01, "timeout": 300, **settings}
        monkeypatch.setenv(ADDRESS, url)
        monkeypatch.setenv(SETTINGS, json.dumps(chosen))
        monkeypatch.setenv(KEY, "sesame")

    return lead


def test_it_chooses_is_asked_once_and_says_why_it_does_not(environment: Callable[..., None]) -> None:
    questions = [asked(RED), asked(BLUE), asked(RED, CAPTIONS[::-1])]
    with serving(looks) as server:
        environment(server.url)
        assert chooser().choose(questions) == [(0,), (1,), (1,)]
        assert chooser().choose(questions[::-1]) == [(1,), (1,), (0,)]  # as after a run that was killed
        assert len(server.bodies) == 3 and {*server.keys} == {"Bearer sesame"}
    question = "Which caption best describes the image?\n(1) {}\n (2) {}\nOutput (1) or (2)."
    assert ((255, 0, 0), question.format(*CAPTIONS)) in {seen(body) for body in server.bodies}
    replies = {(255, 0, 0): completion("(1) or (2)", "length"), (0, 0, 255): failure(400, "content policy")}
    with serving(lambda body, _: replies[seen(body)[0]]) as server:
        environment(server.url, concurrency=1)
        assert chooser().choose([asked(RED), asked(BLUE)]) == ["cut", "refused"]


@pytest.mark.parametrize(
    ("prompt", "direction", "answer", "chosen", "sizes"),
    [
        ("choose", "image", "The second image.", (1,), [(40, 30), (40, 60)]),
        ("choose-joined", "image", "(2), the one on the right", (1,), [(60, 30)]),
        ("eqben", "pairing", "2;1", (1, 0), [(60, 30)]),
    ],
)
def test_two_images_are_sent_as_two_or_side_by_side_and_captions_never_read_as_places(
    environment: Callable[..., None], prompt: str, direction: Any, answer: str, chosen: Any, sizes: Any
) -> None:
    captions = ("{caption2}", "b")[: 2 if direction == "pairing" else 1]
    with serving(lambda body, _: completion(answer)) as server:
        environment(server.url)
        question = Question(direction, (RED, Image.new("RGB", (40, 60), "blue")), captions)
        assert chooser(f"openai-chooser/{prompt}:m").choose([question]) == [chosen]
    *images, text = server.bodies[-1]["messages"][0]["content"]
    shown = [base64.b64decode(image["image_url"]["url"].partition(",")[2]) for image in images]
    assert [Image.open(io.BytesIO(png)).size for png in shown] == sizes and "{caption2}" in text["text"]


def test_a_cached_score_of_the_question_as_a_caption_is_not_used_again(
    environment: Callable[..., None], tmp_path: Path
) -> None:
    own = (OwnQuestion(CAPTIONS[0], "Is it red?"), OwnQuestion(CAPTIONS[1], "Is it blue?"))
    with serving(lambda body, _: completion("Yes", likely={"yes" if "show" in seen(body)[1] else "no": 1.0})) as server:
        environment(server.url)
        for asks, score in ((CAPTIONS, 1.0), (own, 0.0)):
            benchmark = SmallBenchmark(partial(lambda captions: [matching("k", captions)], asks))
            (scored,) = run([benchmark], ["openai-yesno:m"], tmp_path, tmp_path)
            assert pq.read_table(scored.path)["s00"].to_pylist() == [score]


def test_a_pair_without_yes_or_no_has_no_score_in_any_run_and_its_example_is_a_tie(
    environment: Callable[..., None], tmp_path: Path
) -> None:
    def reply(body: Body, _: int) -> Reply:
        return completion("It depends" if "red" in seen(body)[1] and seen(body)[0] == (255, 0, 0) else "no")

    with serving(reply) as server:
        environment(server.url)
        for _ in range(2):  # the second one takes answers from disk
            (scored,) = run([SmallBenchmark(lambda: [matching("k")])], ["openai-yesno:m"], tmp_path, tmp_path)
            (row,) = pq.read_table(scored.path).select(SCORES).to_pylist()
            assert {*row.values()} == {0.5}
            about = json.loads(pq.read_schema(scored.path).metadata[b"twinset"])
            assert about["unanswered"] == {"no-answer": 1} and about["prompt"] == "yes-no 1"
        assert len(server.bodies) == 4


def test_each_prompt_is_a_model_and_others_are_left_as_they_are(
    environment: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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
        "openai-chooser/none:m": "there is no prompt 'none'",
        "random/vqascore:ViT-B-32": "random is not asked by a prompt",
    }.items():
        with pytest.raises(WrongUse, match=problem):
            check_model(text)
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
            right = ("red" in text) == (colour[0] == 255)
            return completion("Yes", likely={"Yes": 0.6, "No": 0.2} if right else {"yes": 0.1, "no": 0.9})
        return looks(body, number) if colour[0] == 255 else completion("(1)")  # of blue it says what comes first

    models = ["openai-chooser:m", "openai-yesno:m", "openai-vqascore:m"]
    with serving(reply) as server:
        environment(server.url)
        tables = [pq.read_table(scored.path) for scored in run([SmallBenchmark(lambda: examples)], models, tmp_path)]
        assert len(server.bodies) == 4 + 4 + 2 * 4, "each order of each image and each caption, each pair, once"
    texts = {body["messages"][0]["content"][-1]["text"] for body in server.bodies}
    assert f'Does this figure show "{CAPTIONS[0]}"? Please answer yes or no.' in texts
    tied = {"ineg2t": 0.5, "tpos2i": 0.5, "tneg2i": 0.5}
    assert tables[0].select(FINER).to_pylist() == [{"ipos2t": 1, **tied}, {"ipos2t": 0, **tied}]
    for table in tables[1:]:
        straight, turned = ([*row.values()] for row in table.select(SCORES).to_pylist())
        assert straight == pytest.approx([0.75, 0.1, 0.1, 0.75]) and turned == pytest.approx([0.1, 0.75, 0.75, 0.1])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("vlm") / "llava", "llava")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TWINSET_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(vision_language, "LIKELY", 0)


@pytest.mark.slow
@pytest.mark.usefixtures("cache")
def test_every_way_to_ask_gives_scores_and_a_second_run_the_same_without_the_network(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = with_prompts([f"vlm:{folder}"], ["vqascore", "yes-no"])
    benchmark = SmallBenchmark(lambda: matchings(Shelf(), 2, 2))
    first = run([benchmark], models, tmp_path / "out", tmp_path / "cache", FAST)
    kept = {scored.path: scored.path.read_bytes() for scored in first}
    prompts = [json.loads(pq.read_schema(path).metadata[b"twinset"])["prompt"] for path in kept]
    assert [scored.model for scored in first] == models and prompts == ["vqascore 1", "yes-no 1"]
    assert all({"text", "image", "group"} <= measure(path, resamples=0).all.figures.keys() for path in kept)
    monkeypatch.setattr(vision_language.VisionLanguageModel, "ask", None)
    run([benchmark], models, tmp_path / "out", tmp_path / "cache", FAST)
    assert {path: path.read_bytes() for path in kept} == kept
