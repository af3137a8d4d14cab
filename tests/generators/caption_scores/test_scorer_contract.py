"""The contract of caption scorers: what it finds, and that sound ones pass."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from tests.generators.caption_scores.commas import Commas, count_commas
from twinset import check_scorer
from twinset.contracts.parts import BrokenContract
from twinset.generators.caption_scores.scorers.scorer import Scored

FAULTS: dict[str, tuple[Callable[[Sequence[str], int], object], str]] = {
    "fewer": (lambda texts, size: Scored(np.zeros(1), np.zeros(len(texts), np.bool_)), "1 values for 4 texts"),
    "marks": (lambda texts, size: Scored(np.zeros(len(texts)), np.zeros(len(texts))), "truncated is not a bool"),
    "none": (lambda texts, size: None, "a call gives a NoneType; return Scored"),
    "nan": (lambda texts, size: shifted(texts, np.nan), "a value is not finite"),
    "place": (lambda texts, size: shifted(texts, np.arange(len(texts))), "other scores in another order"),
    "pass": (
        lambda texts, size: shifted(texts, size),
        "other scores one text a pass; a score depends on its text alone",
    ),
    "shape": (
        lambda texts, size: Scored(np.zeros((len(texts), 2)), np.zeros(len(texts), np.bool_)),
        "one number a text",
    ),
}


def shifted(texts: Sequence[str], by: object) -> Scored:
    found = count_commas(texts, 1)
    return Scored(found.values + by, found.truncated)


@pytest.mark.parametrize("fault", FAULTS)
def test_what_breaks_the_contract_is_said(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scorer, problem = FAULTS[fault]
    monkeypatch.setattr(Commas, "open", lambda self, device: scorer)
    with pytest.raises(BrokenContract, match=problem):
        check_scorer(Commas(kind="mylab-commas"))


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("score", "vera", "vera gives a score 'vera' too; rename Commas.score"),
        ("score", "Commas!", "'Commas!' is no name of columns"),
        ("title", " ", "Commas.title is not set"),
        ("reach", 0.0, "Commas.reach is 0.0"),
        ("probability", True, "probability: a value is not between 0 and 1"),
        ("of_pairs", True, "not unit embeddings"),
    ],
)
def test_what_a_class_says_of_itself_is_checked(
    name: str, value: object, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Commas, name, value)
    with pytest.raises(BrokenContract, match=problem):
        check_scorer(Commas(kind="mylab-commas"))


def test_a_scorer_of_another_package_keeps_it() -> None:
    check_scorer(Commas(kind="mylab-commas"))
