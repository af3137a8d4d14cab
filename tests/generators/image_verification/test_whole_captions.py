"""The dependency rule of questions (Cho et al. 2023).

One question a caption: its probability is the score of an image; a pair must answer both of its own rightly.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.generators.image_verification.finished_images import HOME, Drawn, DrawnPair, finish
from twinset.contracts.kinds.samples import Rejected, TableRows
from twinset.generators.image_verification.questions import LONGEST, ImageQuestion, counted
from twinset.generators.image_verification.source import ImageVerification
from twinset.models.visual_questions.settings import Answers, Inquiry, Transformers
from twinset.shards.contracts import Context


@pytest.mark.parametrize(("yes", "expected"), [("1111", "1111"), ("1011", "1000"), ("0111", "0110"), ("1101", "1101")])
def test_a_child_counts_only_if_its_parents_are_yes(yes: str, expected: str) -> None:
    # dog, ball, red (of the ball), dog on ball; no question has the number 9.
    parents: list[tuple[int, ...]] = [(), (9,), (2,), (1, 2)]
    questions = [ImageQuestion(n, about, "", (), str(n), ()) for n, about in enumerate(parents, 1)]
    found = counted(questions, {str(n): float(value) for n, value in enumerate(yes, 1)})
    assert "".join(str(int(one)) for one in found) == expected


DOG, CAT = "A red dog on a bench.", "A red cat on a bench."
Told = Callable[[int, str], float]


def made(
    folder: Path, drawn: Sequence[Drawn | DrawnPair], patch: pytest.MonkeyPatch, yes: Told, **given: Any
) -> list[Any]:
    """What is made of images whose engine is told how likely yes is, by the number of the image and the question."""

    def answers(inquiries: Sequence[Inquiry]) -> list[Answers]:
        return [[yes(number, asked) for asked in one.questions] for number, one in enumerate(inquiries)]

    earlier, engine = finish(folder, drawn), Transformers(kind="transformers", model="told")
    patch.setattr(Transformers, "open", lambda _: SimpleNamespace(answers=answers))
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
    assert [one["question"] for one in json.loads(row["questions"])] == [f'Does this figure show "{DOG}"?']
    assert second.rows[0]["caption_score"] == pytest.approx(0.2)
    assert [one.reason for one in unasked] == ["no-question", "caption-too-long"]
    kept, rejected, *_ = made(tmp_path, drawn, monkeypatch, yes, threshold=0.6)
    assert isinstance(kept, TableRows)
    assert (rejected.reason, rejected.detail[:11]) == ("wrong-caption", "score 0.200")
    low, *_ = made(tmp_path, drawn, monkeypatch, yes, threshold=0.8)
    assert low.reason == "wrong-caption"


@pytest.mark.parametrize(
    ("shown", "threshold", "detail"),
    [
        (((0.9, 0.1), (0.2, 0.8)), 0.5, None),
        (((0.9, 0.6), (0.2, 0.8)), 0.5, "of caption 1"),  # image 0 fits both
        (((0.9, 0.1), (0.2, 0.4)), 0.3, "of caption 1"),
        (((0.9, 0.1), (0.2, 0.6)), 0.7, "of caption 1"),  # right, but not sure enough
        (((0.1, 0.9), (0.9, 0.1)), None, None),
    ],
)
def test_each_image_of_a_pair_shows_its_own_caption_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shown: Any, threshold: float | None, detail: str | None
) -> None:
    def yes(number: int, question: str) -> float:
        return float(shown[number]["cat" in question])

    (found,) = made(tmp_path, [DrawnPair((DOG, CAT))], monkeypatch, yes, threshold=threshold)
    if detail is None:
        (row,) = found.rows
        assert (row["score0"], row["score1"]) == (shown[0][0], shown[1][1])
        assert row["distinguishing_score"] == float(threshold is not None)
    else:
        assert isinstance(found, Rejected)
        assert (found.reason, found.detail[: len(detail)]) == ("wrong-caption", detail)
