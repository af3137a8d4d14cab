import time

import pytest

from twinset.generators.negative_captions.changes import formatted, problem, same_words, spans, unchanged


@pytest.mark.parametrize(
    ("caption", "made"),
    [
        ("a TV on a desk ", "A tv on a desk."),
        ("A cat.", "A cat."),
        ("WII REMOTES", "Wii remotes."),
        ("is it a dog?", "Is it a dog?."),
    ],
)
def test_captions_are_formatted_as_bivlc_has_them(caption: str, made: str) -> None:
    assert formatted(caption) == made and formatted(made) == formatted(caption)


def test_differences_are_of_words_alone() -> None:
    assert unchanged("A man's  hat.", "a MAN'S hat") and not unchanged("a hat", "a hut")
    assert spans("A dog on a red mat.", "A cat on a blue mat") == [(["dog"], ["cat"]), (["red"], ["blue"])]
    assert same_words("a dog and an old cat", "an old dog and a cat") and not same_words("a dog", "a dog dog")


@pytest.mark.parametrize(
    ("type_", "negative", "said"),
    [
        ("replace", "An elephant sleeps on the mat.", ""),
        ("replace", "A dog sleeps far away from the mat.", ""),
        ("replace", "A dog sleeps on the mat", "unchanged"),
        ("replace", "A dog sleeps on the old mat.", "changed-elsewhere"),
        ("replace", "A cat sleeps on the rug.", "changed-elsewhere"),
        ("replace", "A dog of the neighbours from across sleeps on the mat.", "changed-elsewhere"),
        ("replace", "A very big and most unhappy cat sleeps on the mat.", "too-much-changed"),
        ("add", "An old dog sleeps on the mat.", ""),
        ("add", "A dog sleeps on the mat next to a drum.", ""),
        ("add", "A cat sleeps on the mat.", "changed-elsewhere"),
        ("add", "A dog on the mat.", "changed-elsewhere"),
        ("add", "A dog sleeps on the mat, and nobody dares to wake it up again.", "too-much-changed"),
        ("swap", "A mat sleeps on the dog.", ""),
        ("swap", "A mat sleeps on the cat.", "other-words"),
    ],
)
def test_a_negative_differs_as_its_kind_says(type_: str, negative: str, said: str) -> None:
    assert problem(type_, "A dog sleeps on the mat.", negative) == said


def test_answers_that_repeat_themselves_are_judged_at_once() -> None:
    # Comparing all words of both took 20 seconds, of twice as many some minutes.
    began = time.process_time()
    assert problem("replace", "a dog sees " * 900, "a cat sees " * 900) == "changed-elsewhere"
    assert time.process_time() - began < 10
    long = "a dog sees " * 900
    assert problem("add", long, f"{long} a cat") == "" == problem("replace", f"big {long}", f"cold {long}")
