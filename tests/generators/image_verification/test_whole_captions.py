"""One question a caption: its probability is the score of an image; which stages are refused."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.generators.image_verification.finished_images import HOME, Drawn, finish
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.samples import TableRows
from twinset.generators.image_verification.questions import LONGEST
from twinset.generators.image_verification.source import ImageVerification
from twinset.generators.negative_images import NegativeImages
from twinset.generators.screened_pairs import ScreenedPairs
from twinset.models.language_models.answers import Answer, Request, by_images
from twinset.models.visual_questions.settings import VisualQuestions
from twinset.shards.contracts import Context

DOG, CAT = "A red dog on a bench.", "A red cat on a bench."
Told = Callable[[int, str], float]


def made(folder: Path, drawn: Sequence[Drawn], patch: pytest.MonkeyPatch, yes: Told, **given: Any) -> list[Any]:
    """What is made of images whose engine is told how likely yes is, by the number of the image and the question."""

    def ask(requests: Sequence[Request]) -> list[Answer]:
        shown = enumerate(by_images(requests))
        return [Answer(probability=yes(number, request.text)) for number, about in shown for request in about]

    earlier, engine = finish(folder, drawn), VisualQuestions(kind="vqa", model="told")
    patch.setattr(VisualQuestions, "open", lambda _: SimpleNamespace(ask=ask))
    source = ImageVerification(kind="image-verification", images=HOME, engine=engine, **given)
    generator = source.open(Context("verified", earlier=lambda _: earlier))
    return list(generator.make(list(generator.plan())))


def test_the_score_is_the_probability_of_yes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def yes(number: int, question: str) -> float:
        return 0.7 - number / 2 if "dog" in question else 0.4

    drawn = [Drawn(DOG, CAT, 0), Drawn(DOG, CAT, 1), Drawn(" ", DOG, 2), Drawn("x" * (LONGEST + 1), CAT, 3)]
    first, second, *unasked = made(tmp_path, drawn, monkeypatch, yes)
    (row,) = first.rows
    assert (row["caption_score"], row["original_score"], row["question_count"]) == (0.7, 0.4, 1)
    assert [asked["question"] for asked in json.loads(row["questions"])] == [f'Does this figure show "{DOG}"?']
    assert second.rows[0]["caption_score"] == pytest.approx(0.2)
    assert [rejected.reason for rejected in unasked] == ["no-question", "caption-too-long"]
    kept, rejected, *_ = made(tmp_path, drawn, monkeypatch, yes, threshold=0.6)
    assert isinstance(kept, TableRows)
    assert (rejected.reason, rejected.detail[:11]) == ("wrong-caption", "score 0.200")
    low, *_ = made(tmp_path, drawn, monkeypatch, yes, threshold=0.8)
    assert low.reason == "wrong-caption"


def test_stages_of_pairs_and_images_that_are_not_there_are_refused(tmp_path: Path) -> None:
    source = ImageVerification(kind="image-verification", images=HOME, engine={"kind": "vqa", "model": "told"})
    assert "edited makes pairs" in source.misfit(ScreenedPairs.model_construct(kind="edited"))
    assert source.misfit(NegativeImages.model_construct()) == ""
    earlier = finish(tmp_path, [Drawn(DOG, CAT)], with_images=False)
    with pytest.raises(WrongUse, match="has no image; name a stage with images"):
        list(source.open(Context("verified", earlier=lambda _: earlier)).plan())
