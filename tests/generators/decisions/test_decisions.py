"""From answers to decisions: majority, ties, agreement and its intervals, and the protocol of a survey."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sklearn.metrics import cohen_kappa_score

from tests.generators.decisions.tasks import answer, task
from twinset.contracts.errors import WrongUse
from twinset.contracts.recipe import load_recipe
from twinset.generators.decisions.agreement import (
    agreement_among,
    agreement_of,
    decided,
    decisions_needed,
    is_tie,
    of_whole_instances,
    share,
)
from twinset.generators.decisions.pairs import HumanBaseline
from twinset.generators.decisions.question import load_protocol


@pytest.mark.parametrize(
    ("table", "kappa", "low", "high"),
    [
        # p_o = 35/50, by Wilson 0.5625 to 0.8090; p_e = (25 * 30 + 25 * 20) / 2500 = 0.5
        ([[20, 5], [10, 15]], 0.4, 0.1250, 0.6180),
        # Wilson's lower end of n of n is n / (n + z²), and p_e = 0.5: the fewer tasks, the wider.
        ([[2, 0], [0, 2]], 1.0, 0.0202, 1.0),
        ([[0, 10], [10, 0]], -1.0, -1.0, -0.6776),
        ([[3, 0, 1], [0, 2, 0], [1, 0, 3]], (0.8 - 0.36) / 0.64, 0.2034, 0.9114),
    ],
)
def test_kappa_is_that_of_tables_made_by_hand_and_of_scikit_learn(
    table: list[list[int]], kappa: float, low: float, high: float
) -> None:
    said = [(str(n), str(m)) for n, counts in enumerate(table) for m, count in enumerate(counts) for _ in range(count)]
    first, second = ([both[side] for both in said] for side in (0, 1))
    found = agreement_of(("a", "b"), first, second)
    assert (found.kappa, found.low, found.high) == pytest.approx((kappa, low, high), abs=1e-3)
    assert found.kappa == pytest.approx(cohen_kappa_score(first, second))
    assert agreement_of(("a", "b"), first[:1], first[:1]).kappa is None, "where both always say the same"


def test_annotators_are_compared_on_the_tasks_that_they_share_and_with_gold() -> None:
    tasks = [task(number=n) for n in range(4)]
    given = {"a": ["0", "1", "none", "none"], "b": ["1", "none", "none", "none"], "c": ["", "", "0", ""]}
    answers = [answer(asked, name, said[n]) for name, said in given.items() for n, asked in enumerate(tasks) if said[n]]
    answers.append(answer(tasks[0], "admin", "2", adjudicated=True))
    gold = {tasks[0].key: "1", tasks[2].key: "none", "elsewhere": "1"}
    found = agreement_among("best-image", answers, gold)
    pairs = {pair.annotators: pair for pair in found.pairs}
    assert {names: pair.tasks for names, pair in pairs.items()} == {("a", "b"): 4, ("a", "c"): 1, ("b", "c"): 1}
    # Any image counts as one: p_o = 3/4, p_e = 2/4 * 1/4 + 2/4 * 3/4 = 1/2
    assert pairs["a", "b"].kappa == pytest.approx(0.5) and found.mean == pytest.approx((0.5 + 0 + 0) / 3)
    right = {name: (accuracy.count, accuracy.of) for name, accuracy in found.gold.items()}
    assert right == {"a": (1, 2), "b": (2, 2), "c": (0, 1)}
    # Brown, Cai and DasGupta (2001): by Wilson, 0 of 10 gives 0 to z² / (n + z²) = 0.2775.
    assert (share(0, 10).low, share(0, 10).high) == pytest.approx((0, 0.2775), abs=1e-4)


@pytest.mark.parametrize(
    ("question", "given", "choice", "reason", "agreement"),
    [
        ("best-image", ["3", "1"], "1", "", 0.5),  # both took an image: the first of equal ones
        ("best-image", ["none", "3", "1", "3"], "3", "", 0.5),
        ("best-image", ["none", "none", "1"], "none", "none-fits", 2 / 3),
        ("fits-caption", ["generated", "both"], "both", "ambiguous", 0.5),  # ambiguous either way
        ("keep-pair", ["drop", "keep", "drop"], "drop", "screened-out", 2 / 3),
        ("match", ["1", "1", "0"], "1", "", 2 / 3),
    ],
)
def test_the_majority_decides(question: str, given: list[str], choice: str, reason: str, agreement: float) -> None:
    asked = task(question)
    found = decided(asked, [answer(asked, f"person-{n}", value) for n, value in enumerate(given)])
    assert found is not None and not found.adjudicated
    assert (found.choice, found.reason, found.agreement, found.votes) == (choice, reason, agreement, len(given))


@pytest.mark.parametrize(("question", "given"), [("best-image", ["none", "2"]), ("match", ["0", "1"])])
def test_a_tie_waits_for_somebody_who_settles_it(question: str, given: list[str]) -> None:
    asked = task(question)
    answers = [answer(asked, f"person-{n}", value) for n, value in enumerate(given)]
    assert decided(asked, answers[:1], 2) is None and not is_tie(asked, answers[:1], 2)
    assert decided(asked, answers, 2) is None and is_tie(asked, answers, 2)
    first = answer(asked, "boss", given[0], adjudicated=True, at="2025-01-01")
    settled = decided(asked, [*answers, replace(first, annotator="admin", answer=given[1], at="2025-01-02"), first], 2)
    assert settled is not None and settled.choice == given[1] and settled.adjudicated, "the last word counts"
    assert (settled.votes, settled.agreement, settled.annotators) == (2, 0.5, ("admin", "person-0", "person-1"))
    # Where the right answer is known, it settles a tie, and nothing but a tie.
    found = decided(asked, answers, 2, given[0])
    assert found is not None and (found.choice, found.adjudicated) == (given[0], False)
    assert not is_tie(asked, answers, 2, gold=given[0])
    most = decided(asked, [*answers, answer(asked, "third", given[1])], 2, given[0])
    assert most is not None and most.choice == given[1]


def test_answers_to_what_is_no_longer_shown_do_not_count() -> None:
    asked = task()
    again = replace(asked, image_sha256s=(*asked.image_sha256s[:3], "f" * 64))
    given = answer(asked, "person", "2")
    assert decided(asked, [given]) is not None and decided(again, [given]) is None
    assert decided(asked, [answer(asked, "person", "7")]) is None, "a value that the task does not have"
    same = replace(asked, priority=0.5, truth="1", group="other", split="train", image_tars=("x",) * 4)
    changed = [
        replace(asked, question="match"),
        replace(asked, texts=("else",)),
        replace(asked, images=same.images[::-1]),
    ]
    assert same.binding == asked.binding and asked.binding not in {other.binding for other in changed}


def test_a_share_of_tasks_is_answered_by_several_and_a_share_of_decisions_is_enough() -> None:
    asking = HumanBaseline(kind="human-baseline", pairs="mine", overlap=0.3, overlap_answers=3)
    needed = [asking.needed(task("match", n)) for n in range(2000)]
    assert {*needed} == {1, 3} and 0.25 < needed.count(3) / 2000 < 0.35
    # Whatever rounding does: 0.1 * 30 is 3.0000000000000004.
    assert [decisions_needed(*of) for of in ((0.1, 30), (0.1, 31), (1.0, 7), (0.001, 5), (1.0, 0))] == [3, 4, 7, 1, 0]


def test_the_reason_most_people_gave_is_told() -> None:
    asked = task("keep-pair")
    why = ("fits-both", "bad-image", "fits-both", "<script>", "<script>", "<script>")
    found = decided(asked, [answer(asked, f"person-{n}", "drop", reason=code) for n, code in enumerate(why)])
    assert found is not None and found.detail == "fits-both", "of the reasons that the question has"
    tie = [answer(asked, "a", "drop", reason="bad-image"), answer(asked, "b", "keep")]
    for reason, detail in (("", "bad-image"), ("offensive", "offensive")):
        settled = decided(asked, [*tie, answer(asked, "admin", "drop", adjudicated=True, reason=reason)], 2)
        assert settled is not None and settled.detail == detail, "the admin's own comes first"


PROTOCOL = "title: Ours\nquestions:\n  match:\n    instances: 3\n    blocks:\n"
BLOCK = "      - {{tasks: {0}, title: Which {0}, instructions: [Look.]}}\n"
BOTH = PROTOCOL + BLOCK.format("text-to-image") + BLOCK.format("image-to-text")


def test_the_shipped_protocol_has_the_words_of_the_paper_and_25_instances() -> None:
    match, fits, best = (load_protocol("bivlc").of(task(name)) for name in ("match", "fits-caption", "best-image"))
    assert (match.instances, fits.instances) == (25, 0)
    text, image = match.blocks
    assert "word order" in text.instructions[-1] and "Aesthetic defects" in image.instructions[-1]
    assert "equally well" in fits.blocks[0].instructions[0] and best.blocks[0].labels == {"none": "None"}
    assert [match.block_of(asked) for asked in (task("match", images=("a",)), task("match"))] == [0, 1]


def test_a_protocol_beside_a_recipe_replaces_the_words(tmp_path: Path) -> None:
    words = tmp_path / "words.yaml"
    words.write_text(BOTH)
    source = {"kind": "human-baseline", "pairs": "/data/out/mine", "protocol": "./words.yaml"}
    (tmp_path / "r.yaml").write_text(json.dumps({"name": "r", "stages": {"ask": {"source": source}}}))
    asking: Any = load_recipe(tmp_path / "r.yaml").stages["ask"].source
    survey = asking.survey_of(task("match"))
    assert (survey.instances, survey.block_of(task("match"))) == (3, 0)  # the order of the file is the order asked
    assert [block.title for block in survey.blocks] == ["Which text-to-image", "Which image-to-text"]
    with pytest.raises(WrongUse, match="'Ours' does not say how keep-pair is asked"):
        asking.survey_of(task("keep-pair"))
    assert "protocol" in asking.incidental and str(tmp_path) in str([*asking.places()])
    assert "protocol" not in HumanBaseline(kind="human-baseline", pairs="mine", protocol="bivlc").incidental
    for text, problem in (
        (PROTOCOL + BLOCK.format("text-to-image"), "one block each for image-to-text, text-to-image"),
        (BOTH.replace("[Look.]", "[Look.], labels: {neither: Neither}"), "'neither' is not an answer"),
    ):
        words.write_text(text)
        with pytest.raises(WrongUse, match=problem):
            load_protocol(str(words)).of(task("match"))


def test_gold_tasks_are_not_asked_in_whole_instances(tmp_path: Path) -> None:
    (tmp_path / "gold.csv").write_text("key,answer\n")
    asking = {"kind": "human-baseline", "pairs": "mine", "gold": tmp_path / "gold.csv"}
    for protocol, problem in (("bivlc", "gives each annotator instances"), ("paper", "there is no protocol 'paper'")):
        source = HumanBaseline.model_validate({**asking, "protocol": protocol})
        with pytest.raises(WrongUse, match=rf"ask\.protocol: {problem}"):
            source.check_inputs("ask", {"annotations"})


def test_only_who_answered_all_about_an_instance_counts() -> None:
    tasks = [task("match", n, subject=f"pair-{n // 2}") for n in range(4)]
    answered = zip(tasks, ("ab", "a", "b", "ba"), strict=True)
    given = [(asked.subject, [answer(asked, who, "0") for who in annotators]) for asked, annotators in answered]
    given[3][1].append(answer(tasks[3], "admin", "1", adjudicated=True))
    counted = [[one.annotator for one in answers] for answers in of_whole_instances(given)]
    assert counted == [["a"], ["a"], ["b"], ["b", "admin"]]
