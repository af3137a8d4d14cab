"""Scorers against `transformers serve`, with a real architecture that reads images."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from tests.transformers_server import serving
from twinset.evaluation.scorers.kinds import open_model
from twinset.evaluation.scorers.asking import ADDRESS, SETTINGS
from twinset.models.encoders.contract import Chooser, Matcher, Question
from twinset.models.language_models.answers import Answers

pytestmark = pytest.mark.slow
IMAGES = [Image.new("RGB", (40, 30), colour) for colour in ("red", "blue")]
CAPTIONS = ("a red wall", "a blue wall")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tests.evaluation.scorers.tiny_llava import save_llava

    made = tmp_path_factory.mktemp("llava")
    for name, says in (("first", ["1"]), ("yes", ["yes"])):
        save_llava(made / name, says)
    return made


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    with serving(folder / "log") as found:
        yield found


def test_a_real_server_reads_images_and_is_asked_once(
    folder: Path, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ADDRESS, address)
    settings = {"answers": str(tmp_path), "max_tokens": 1, "concurrency": 2}
    monkeypatch.setenv(SETTINGS, json.dumps(settings))
    first, yes = str(folder / "first"), str(folder / "yes")
    for _ in range(2):
        chooser, scorer = open_model(f"openai-chooser:{first}"), open_model(f"openai-vqascore:{yes}")
        assert isinstance(chooser, Chooser) and isinstance(scorer, Matcher)
        assert chooser.choose([Question("text", (one,), CAPTIONS) for one in IMAGES]) == [(0,), (0,)]
        assert scorer.score(IMAGES, CAPTIONS)[:, 0].tolist() == [1, 1]
    answers = Answers(tmp_path)
    for model in (first, yes):
        # An image is four tokens, the question more than ten.
        assert answers.spent(model).answers == 2 and answers.spent(model).prompt_tokens >= 2 * 14
        assert answers.spent(model).completion_tokens == 2
