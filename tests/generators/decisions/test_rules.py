"""From answers to decisions: the rules of BiVLC, majority, ties and those who settle them."""

from dataclasses import replace

import pytest

from tests.generators.decisions.tasks import answer, task
from twinset.generators.decisions.agreement import answers_needed, decided, decisions_needed, is_tie
from twinset.generators.decisions.questions import QUESTIONS, question_of


@pytest.mark.parametrize(
    ("question", "given", "choice", "reason", "agreement"),
    [
        ("best-image", ["2"], "2", "", 1.0),
        ("best-image", ["none"], "none", "none-fits", 1.0),
        ("best-image", ["3", "1"], "1", "", 0.5),  # both took an image: the first of equal ones
        ("best-image", ["none", "3", "1", "3"], "3", "", 0.5),
        ("best-image", ["none", "none", "1"], "none", "none-fits", 2 / 3),
        ("fits-caption", ["photo"], "photo", "", 1.0),
        ("fits-caption", ["both"], "both", "ambiguous", 1.0),
        ("fits-caption", ["generated"], "generated", "ambiguous", 1.0),
        ("fits-caption", ["generated", "both"], "both", "ambiguous", 0.5),  # ambiguous either way
        ("keep-pair", ["keep"], "keep", "", 1.0),
        ("keep-pair", ["drop", "keep", "drop"], "drop", "screened-out", 2 / 3),
        ("match", ["1", "1", "0"], "1", "", 2 / 3),
    ],
)
def test_the_majority_decides(question: str, given: list[str], choice: str, reason: str, agreement: float) -> None:
    one = task(question)
    found = decided(one, [answer(one, f"person-{n}", value) for n, value in enumerate(given)])
    assert found is not None
    assert (found.choice, found.reason, found.agreement, found.votes) == (choice, reason, agreement, len(given))
    assert found.kept == (not reason) and not found.adjudicated


@pytest.mark.parametrize(
    ("question", "given"), [("best-image", ["none", "2"]), ("fits-caption", ["photo", "both"]), ("match", ["0", "1"])]
)
def test_a_tie_waits_for_somebody_who_settles_it(question: str, given: list[str]) -> None:
    one = task(question)
    answers = [answer(one, f"person-{n}", value) for n, value in enumerate(given)]
    assert decided(one, answers, 2) is None and is_tie(one, answers, 2)
    settled = decided(one, [*answers, answer(one, "admin", given[1], adjudicated=True)], 2)
    assert settled is not None and settled.choice == given[1] and settled.adjudicated
    assert (settled.votes, settled.agreement, settled.annotators) == (2, 0.5, ("admin", "person-0", "person-1"))


def test_answers_to_what_is_no_longer_shown_do_not_count() -> None:
    one = task()
    again = replace(one, image_sha256s=(*one.image_sha256s[:3], "f" * 64))
    answers = [answer(one, "person", "2")]
    assert again.binding != one.binding
    assert decided(one, answers) is not None and decided(again, answers) is None
    assert decided(one, [answer(one, "person", "7")]) is None, "it has no eighth image"
    assert decided(task(number=1), answers) is None, "another task"


def test_only_a_change_of_what_is_shown_changes_the_binding() -> None:
    one = task()
    same = replace(one, priority=0.5, truth="1", group="other", split="train", image_tars=("x",) * 4)
    assert same.binding == one.binding
    changed = [replace(one, question="match"), replace(one, texts=("else",)), replace(one, images=one.images[::-1])]
    assert one.binding not in {other.binding for other in changed}


def test_overlap_waits_for_enough_people() -> None:
    one = task()
    first, second = answer(one, "a", "2"), answer(one, "b", "2")
    assert decided(one, [first], 2) is None and not is_tie(one, [first], 2)
    assert decided(one, [first, second], 2) is not None
    share = sum(answers_needed(f"people-{n}", 0.3, 3) == 3 for n in range(2000)) / 2000
    assert 0.25 < share < 0.35
    assert {answers_needed(f"people-{n}", 0.0, 3) for n in range(100)} == {1}
    assert {answers_needed(f"people-{n}", 1.0, 3) for n in range(100)} == {3}


def test_of_several_who_settle_a_tie_the_last_word_counts_unless_it_is_stale() -> None:
    one = task()
    again = replace(one, images=one.images[::-1])
    tie = [answer(one, "a", "none"), answer(one, "b", "2")]
    settled = [
        answer(one, "admin", "2", adjudicated=True, at="1"),
        answer(one, "boss", "none", adjudicated=True, at="2"),
    ]
    found = decided(one, [*tie, *settled[::-1]], 2)
    assert found is not None and (found.choice, found.reason, found.agreement) == ("none", "none-fits", 0.5)
    stale = answer(again, "admin", "2", adjudicated=True)
    assert decided(one, [*tie, stale], 2) is None and is_tie(one, [*tie, stale], 2)


def test_a_tie_on_a_gold_task_is_settled_by_what_is_known() -> None:
    one = task()
    tie = [answer(one, "a", "none"), answer(one, "b", "2")]
    assert is_tie(one, tie, 2) and not is_tie(one, tie, 2, gold="2")
    for gold, reason in (("2", ""), ("none", "none-fits")):
        found = decided(one, tie, 2, gold)
        assert found is not None
        assert (found.choice, found.reason, found.agreement, found.adjudicated) == (gold, reason, 0.5, False)
    most = decided(one, [*tie, answer(one, "c", "1")], 2, "none")
    assert most is not None and most.choice == "1", "a majority decides as of any task"


def test_a_share_of_decisions_is_enough_whatever_rounding_does() -> None:
    assert [decisions_needed(*of) for of in ((0.1, 30), (0.1, 31), (1.0, 7), (0.001, 5), (1.0, 0))] == [3, 4, 7, 1, 0]


def test_the_reason_most_people_gave_is_told() -> None:
    one = task("keep-pair")
    why = ("fits-both", "bad-image", "fits-both")
    found = decided(one, [answer(one, f"person-{n}", "drop", reason=code) for n, code in enumerate(why)])
    assert found is not None and found.detail == "fits-both"
    tie = [answer(one, "a", "drop", reason="bad-image"), answer(one, "b", "keep")]
    settled = {"annotator": "admin", "value": "drop", "adjudicated": True}
    details = [decided(one, [*tie, answer(one, **settled, reason=reason)], 2) for reason in ("", "offensive")]
    assert [made and made.detail for made in details] == ["bad-image", "offensive"], "the admin's own comes first"


@pytest.mark.parametrize("name", QUESTIONS.kinds())
def test_every_question_can_be_shown(name: str) -> None:
    question, one = question_of(name), task(name)
    layout = question.layout(one)
    assert question.name == name and question.title and question.instructions and question.examples
    assert len(set(layout.values)) == len(layout.values) >= 2
    assert {*question.drops} <= {*layout.values}
    shown = [*layout.images, *(option.image for option in layout.options if option.image is not None)]
    assert sorted(shown) == list(range(len(one.images))), "every image is shown once"
    texts = [*layout.texts, *(option.text for option in layout.options if option.text is not None)]
    assert sorted(texts) == list(range(len(one.texts)))


def test_a_match_asks_for_captions_or_for_images() -> None:
    two = {"images": ("photo",), "image_tars": ("",), "image_sha256s": ("",), "texts": ("one", "other")}
    layout = question_of("match").layout(task("match", **two))
    assert layout.images == (0,) and [one.text for one in layout.options] == [0, 1]
