"""Agreement, accuracy and shares, against tables computed by hand and BiVLC's Table 7."""

import pytest

from tests.generators.decisions.tasks import answer, task
from twinset.generators.decisions.agreement import (
    PairAgreement,
    agreement_of,
    by_pair,
    cohens_kappa,
    gold_accuracy,
    mean_kappa,
    share,
)


def both(table: list[list[int]]) -> tuple[list[str], list[str]]:
    """What two annotators said, of a table of counts: rows by the first, columns by the second."""
    said = [(row, column) for row, counts in enumerate(table) for column, n in enumerate(counts) for _ in range(n)]
    return [str(row) for row, _ in said], [str(column) for _, column in said]


@pytest.mark.parametrize(
    ("table", "kappa"),
    [
        ([[20, 5], [10, 15]], 0.4),  # p_o = 35/50, p_e = (25 * 30 + 25 * 20) / 2500 = 0.5
        ([[45, 15], [25, 15]], (0.6 - 0.54) / 0.46),
        ([[10, 0], [0, 10]], 1.0),
        ([[0, 10], [10, 0]], -1.0),
        ([[3, 0, 1], [0, 2, 0], [1, 0, 3]], (0.8 - 0.36) / 0.64),
    ],
)
def test_kappa_of_tables_made_by_hand(table: list[list[int]], kappa: float) -> None:
    first, second = both(table)
    assert cohens_kappa(first, second) == pytest.approx(kappa)
    found = agreement_of(("a", "b"), first, second)
    assert found.low is not None and found.high is not None and found.low <= kappa <= found.high


def test_the_interval_of_kappa() -> None:
    # p_o = 35 of 50, by Wilson 0.5625 to 0.8090; p_e = 0.5, so that kappa = (p_o - 0.5) / 0.5
    found = agreement_of(("a", "b"), *both([[20, 5], [10, 15]]))
    assert (found.low, found.high) == (pytest.approx(0.1250, abs=1e-3), pytest.approx(0.6180, abs=1e-3))


@pytest.mark.parametrize(("tasks", "low"), [(4, 0.02), (20, 0.677), (200, 0.962)])
def test_the_interval_of_full_agreement_is_the_wider_the_fewer_tasks_there_are(tasks: int, low: float) -> None:
    # Wilson's lower end of n of n is n / (n + z²), and p_e = 0.5.
    found = agreement_of(("a", "b"), *both([[tasks // 2, 0], [0, tasks // 2]]))
    assert (found.kappa, found.low, found.high) == (1.0, pytest.approx(low, abs=1e-3), 1.0)


def test_kappa_is_not_defined_where_both_always_say_the_same() -> None:
    assert cohens_kappa(["any"] * 5, ["any"] * 5) is None and cohens_kappa([], []) is None
    assert cohens_kappa(["any"] * 5, ["any"] * 4 + ["none"]) == 0
    assert mean_kappa([PairAgreement(("a", "b"), 5, None)]) is None


def test_the_mean_of_table_7() -> None:
    pairs = [PairAgreement(("a", "b"), 100, kappa) for kappa in (0.66, 0.43, 0.56, 0.43, 0.38)]
    assert mean_kappa([*pairs, PairAgreement(("c", "d"), 9, None)]) == pytest.approx(0.492)


def test_only_tasks_that_two_annotators_share_are_compared() -> None:
    tasks = [task(number=n) for n in range(4)]
    said = {"a": "01nn", "b": "1nnn", "c": "..0."}
    answers = [
        answer(one, name, {"n": "none"}.get(value, value))
        for name, values in said.items()
        for one, value in zip(tasks, values, strict=True)
        if value != "."
    ]
    answers.append(answer(tasks[0], "admin", "2", adjudicated=True))
    categories = {"0": "any", "1": "any", "none": "none"}
    found = {one.annotators: one for one in by_pair(answers, categories)}
    assert {names: one.tasks for names, one in found.items()} == {("a", "b"): 4, ("a", "c"): 1, ("b", "c"): 1}
    assert found["a", "b"].kappa == pytest.approx(0.5)  # p_o = 3/4, p_e = 2/4 * 1/4 + 2/4 * 3/4 = 1/2


def test_accuracy_on_gold_tasks() -> None:
    tasks = [task(number=n) for n in range(3)]
    answers = [answer(one, name, value) for name, value in (("a", "1"), ("b", "none")) for one in tasks]
    found = gold_accuracy(answers, {tasks[0].key: "1", tasks[1].key: "none", "elsewhere": "1"})
    assert {name: (one.count, one.of) for name, one in found.items()} == {"a": (1, 2), "b": (1, 2)}


def test_wilsons_interval() -> None:
    # Brown, Cai and DasGupta (2001): 0 of 10 gives 0 to z² / (n + z²) = 0.2775.
    assert (share(0, 10).low, share(0, 10).high) == (0.0, pytest.approx(0.2775, abs=1e-4))
    assert (share(10, 10).low, share(10, 10).high) == (pytest.approx(0.7225, abs=1e-4), 1.0)
    half = share(50, 100)
    assert (half.low, half.high) == (pytest.approx(0.4038, abs=1e-4), pytest.approx(0.5962, abs=1e-4))
    assert (share(0, 0).low, share(0, 0).high) == (0.0, 1.0)
