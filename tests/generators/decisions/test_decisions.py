"""From answers to decisions: majority, ties, agreement of annotators, and the protocol of a survey."""

from dataclasses import replace

import pytest
from sklearn.metrics import cohen_kappa_score

from tests.generators.decisions.tasks import answer, task
from twinset.contracts.errors import WrongUse
from twinset.generators.decisions.agreement import agreement_among, kappa
from twinset.generators.decisions.pairs import HumanBaseline, PairScreening
from twinset.generators.decisions.question import BestImage, question_of


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ([[20, 5], [10, 15]], 0.4),  # p_o = 35/50; p_e = (25 * 30 + 25 * 20) / 2500 = 0.5
        ([[0, 10], [10, 0]], -1.0),
        ([[3, 0, 1], [0, 2, 0], [1, 0, 3]], (0.8 - 0.36) / 0.64),
    ],
)
def test_kappa_is_that_of_tables_made_by_hand_and_of_scikit_learn(table: list[list[int]], expected: float) -> None:
    pairs = [(str(n), str(m)) for n, counts in enumerate(table) for m, count in enumerate(counts) for _ in range(count)]
    first, second = ([pair[side] for pair in pairs] for side in (0, 1))
    assert kappa(first, second) == pytest.approx(expected)
    assert kappa(first, second) == pytest.approx(cohen_kappa_score(first, second))


def test_annotators_are_compared_on_the_tasks_that_they_share() -> None:
    given = {"a": ["0", "1", "none", "none"], "b": ["1", "none", "none", "none"]}
    answered = [(2, [answer(task(number=n), name, given[name][n]) for name in given]) for n in range(4)]
    answered[1][1].append(replace(answer(task(number=1), "c", "1"), at="9"))  # it breaks the tie
    agreement = agreement_among(BestImage(), [*answered, (1, [answer(task(number=9), "c", "1")])])
    (pair,) = agreement["pairs"]
    # Any image counts as one: p_o = 3/4, p_e = 2/4 * 1/4 + 2/4 * 3/4 = 1/2
    assert (pair["annotators"], pair["tasks"], pair["kappa"]) == (("a", "b"), 4, pytest.approx(0.5))
    assert agreement["mean"] == pair["kappa"]
    # Of eight answers three name an image: p_e = (3/8)² + (5/8)² = 34/64.
    assert agreement["pooled"] == pytest.approx((0.75 - 34 / 64) / (1 - 34 / 64))


def test_pairs_of_one_task_each_are_pooled() -> None:
    """As of a study with many people: 19 of 20 pairs agree, whose kappas are none, and the other has 0."""
    names = [[f"p{2 * n}", f"p{2 * n + 1}"] for n in range(20)]
    values = [("none", "none" if n else "0") if n % 2 == 0 else ("0", "0") for n in range(20)]
    answered = [
        (2, [answer(task(number=n), name, value) for name, value in zip(names[n], values[n], strict=True)])
        for n in range(20)
    ]
    agreement = agreement_among(BestImage(), answered)
    assert agreement["mean"] == 0 and agreement["pooled"] == pytest.approx(0.9, abs=0.01)


@pytest.mark.parametrize(
    ("question", "given", "choice", "reason"),
    [
        ("best-image", "3 1", "1", ""),  # both took an image: the first of equal ones
        ("best-image", "none 3 1 3", "3", ""),
        ("best-image", "none none 1", "none", "none-fits"),
        ("fits-caption", "generated both", "both", "ambiguous"),  # ambiguous either way
        ("keep-pair", "drop keep drop", "drop", "screened-out"),
        ("match", "0 1", None, ""),
    ],
)
def test_the_majority_decides(question: str, given: str, choice: str | None, reason: str) -> None:
    answers = [answer(task(question), f"person-{n}", value) for n, value in enumerate(given.split())]
    made = question_of(question).decide(answers)
    assert choice == (made and made.choice)
    assert made is None or (made.reason, len(made.annotators)) == (reason, len(answers))


def test_a_protocol_says_in_which_blocks_a_question_is_asked() -> None:
    match = HumanBaseline(kind="human-baseline", pairs="mine", protocol="bivlc").survey
    assert match.instances == 25 and "word order" in match.blocks[0].instructions[-1]
    assert [match.block_of(asked) for asked in (task("match", images=("a",)), task("match"))] == [0, 1]
    with pytest.raises(WrongUse, match="protocol bivlc does not say how keep-pair is asked"):
        _ = PairScreening(kind="pair-screening", pairs="mine", protocol="bivlc").survey
