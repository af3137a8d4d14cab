"""What engines of other people answer is checked, whoever asks."""

import math
from typing import Any
from unittest.mock import Mock

import pytest

from twinset.contracts.errors import BuildFailed
from twinset.models.visual_questions.settings import Inquiry, Unanswered, answers_of

ASKED = [Inquiry(name, b"", "image/png", ("Is there a dog?", "Is it red?")) for name in ("first", "second")]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([[1.0, 0.0]], "mine: gives 1 results for 2 images"),
        ([[1.0, 0.0]] * 3, "mine: gives 3 results for 2 images"),
        ([[1.0, 0.0], [1.0]], r"mine: second: answers \[1.0\] to 2 questions"),
        ([[1.0, math.nan]] * 2, r"mine: first: answers \[1.0, nan\]"),
        ([[1.0, math.inf]] * 2, "mine: first"),
        ([[-0.1, 1.0]] * 2, "mine: first"),
        ([["yes", "no"]] * 2, "mine: first"),
        ([None, [0.0, 1.0]], "mine: first: answers None"),
    ],
)
def test_what_is_no_probability_for_each_question_names_the_engine(given: Any, said: str) -> None:
    with pytest.raises(BuildFailed, match=f"{said}.*correct its package"):
        answers_of(Mock(answers=lambda _: given), "mine", ASKED)


def test_probabilities_and_reasons_are_given_back() -> None:
    given = [Unanswered("refused", "so"), [0.25, 1]]
    assert answers_of(Mock(answers=lambda _: given), "mine", ASKED) == given
