"""How free answers are read: the forms that models write, and anything else without an error."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinset.evaluation.answers.parser import LONGEST, ONE, Reading, parse, parse_pairing

DOG, CAT = "A dog chases a cat across the yard.", "A cat chases a dog across the yard"

FIRST = (
    *("(1)", "1", " (1).\n", "One", "Caption 1", "caption one", "Caption #1", "**(1)**", r"$\boxed{1}$", "①", "（１）"),
    *("first", "The first one is right.", "I would go with the former.", "Output (1).", "Answer: **1**.", "(1)\n(1)"),
    *('{"answer": "(1)"}', "I'd say 1", "(1) rather than (2)", "(1), not (2)", "Not (2) but (1).", "=> (1)"),
    *("(1) is correct and (2) is incorrect.", "(2) is incorrect, (1) is correct", "While (2) is close, (1) is better."),
    *("The first caption describes the image better than the second.", "(1) is right, but (2) is similar."),
    *("Neither is right. If forced, I would pick caption 1.", "Neither caption is exact, but caption 1 fits best."),
    "(1). The dog is neither black nor white.",
    "The image does not match caption 2; it matches caption 1.",
    "<think>It may be (1), or (2).</think>(1)",
    *("The caption that best fits is: 1", "The best match is 1", "The caption that fits the image best is 1, not 2."),
    DOG,
    f"1. {DOG}",
    f"Which caption best describes the image?\n(1) {DOG}\n (2) {CAT}\nOutput (1) or (2).\n\n(1)",
)
#: By reason, answers without a choice.
NONE = {
    "empty": ("", " \n\t", "\0\x07", ONE),
    "unfinished": ("<think>It may be (1)",),
    "neither": (
        *("Neither.", "None of the above", "neither 1 nor 2", "Both captions are incorrect.", "I'd choose neither."),
        "If the material is meant: (2). However, nobody is there: neither (1) nor (2) is accurate.",
        f"Thus, neither (1) {DOG} nor (2) {CAT} describes the image.",
    ),
    "both": (
        *("Both.", "Both captions fit equally.", "I'd rate (1) 8/10 and (2) 3/10.", "(1) or (2)"),
        *(f"(1) {DOG}\n(2) {CAT}\nOutput (1) or (2).", f"(1) {CAT}", f"The answer is option 2: {DOG}"),
    ),
    "refusal": ("I'm sorry, I can't help with that.", "As an AI model I have no opinion."),
    "no choice": (
        *("It's not (2).", "I don't think it's (1).", "(2) is wrong.", "The wrong caption is (2).", "A cow.", "(3)"),
        *("1.5", "2 men", "On the first floor a dog is seen.", "Caption A", f"a{ONE}b"),
    ),
}


@pytest.mark.parametrize("answer", FIRST)
def test_a_choice_is_read_in_every_form_and_for_both_numbers(answer: str) -> None:
    assert parse(answer, (DOG, CAT)) == Reading((1,))
    swapped = answer.translate({ord(a): b for a, b in zip("12１①", "21２②", strict=True)})
    for words in (("first", "second"), ("First", "Second"), ("former", "latter"), ("one", "two"), ("One", "Two")):
        if "one is" not in swapped:
            swapped = _exchanged(swapped, *words)
    if swapped != answer:
        assert parse(swapped, (CAT, DOG)) == Reading((2,)), swapped


def _exchanged(text: str, a: str, b: str) -> str:
    return text.replace(a, "\ufff0").replace(b, a).replace("\ufff0", b)


@pytest.mark.parametrize("reason", NONE)
def test_an_answer_without_a_choice_says_why(reason: str) -> None:
    for answer in NONE[reason]:
        assert parse(answer, (DOG, CAT)) == Reading((), reason), answer


def test_a_quoted_caption_is_told_from_the_other_one_and_its_words_are_not_read() -> None:
    short, long = "A dog and a cat on a couch.", "A dog and a cat on a couch under a blanket."
    assert parse(long, (short, long)) == parse(long, (short, long)) == Reading((2,))
    assert parse(short, (short, long)) == parse(f"I see this: {short}", (short, long)) == Reading((1,))
    assert parse(short, (short, short)) == Reading((), "no choice")
    assert parse("A doge", ("a dog", "a cat")) == Reading((), "no choice")
    assert parse("A dog.", ("a dog", "a cat")) == Reading((1,))
    captions = ("Neither man wears the first (2) hats", "The second man is not in option 2")
    assert parse("Neither man wears the first (2) hats.", captions) == Reading((1,))
    assert parse("(2) The second man is not in option 2", captions) == Reading((2,))


@pytest.mark.parametrize("piece", ["(1) is ", "neither (1) or ", "no " * 40])
def test_long_answers_are_read_without_backtracking(piece: str) -> None:
    """... or this would not end."""
    parse(piece * (LONGEST // len(piece)), (DOG, CAT))
    assert parse(piece * (10_000_000 // len(piece))) == Reading((), "too long")
    parse_pairing((piece + "1;2 not ") * (LONGEST // (len(piece) + 8)))


WORDS = ["(1)", "(2)", "1", "neither", "nor", "both", "not", "first", "caption", "is", "better", "than", "<think>", ONE]
EVERY_CHARACTER = st.text(st.characters(exclude_categories=()))  # halves of surrogate pairs, too


@given(
    st.one_of(EVERY_CHARACTER, st.lists(st.sampled_from(WORDS)).map(" ".join)),
    st.tuples(EVERY_CHARACTER, EVERY_CHARACTER),
)
def test_nothing_raises_and_every_answer_has_a_choice_or_a_reason(answer: str, captions: tuple[str, str]) -> None:
    for reading in (parse(answer, captions), parse(answer), parse_pairing(answer)):
        assert bool(reading.choices) != (reading.reason in {*NONE, "too long"})


PAIRINGS = {
    (1, 2): ("1;2", "#1 for the left image; #2 for the right image"),
    (2, 1): ('The answer is "2;1".', "I think 2;1 is correct, not 1;2", "<think>1;2, or rather not</think> 2;1"),
    (): ("It isn't 1;2.", "1;2 would be wrong", "I cannot see any image.", "<think>1;2", "a ratio of 11;23"),
}


def test_pairings_are_read() -> None:
    for choices, answers in PAIRINGS.items():
        assert {parse_pairing(answer).choices for answer in answers} == {choices}
