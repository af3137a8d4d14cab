import pytest

from twinset.generators.prompt_to_prompt.alignment import Edit, EditError, occurrences

CAPTIONS = ("A photo of a cat.", "A photo of a dog, a big Dog.")


def test_words_are_found_whole_in_any_case_and_before_punctuation() -> None:
    assert [CAPTIONS[1][slice(*span)] for span in occurrences(CAPTIONS[1], "dog")] == ["dog", "Dog"]
    assert occurrences(CAPTIONS[0], "photo of") == [(2, 10)]
    with pytest.raises(EditError, match="'pho' is not a word of the caption"):
        occurrences(CAPTIONS[0], "pho")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"cross_replace_steps": 1.2}, "cross_replace_steps is 1.2"),
        ({"self_replace_steps": float("nan")}, "self_replace_steps is nan"),
        ({"word_replace_steps": {"dog": -0.1}}, "word_replace_steps"),
        ({"word_replace_steps": {"cat": 0.1}}, "'cat' is not a word of the caption 'A photo of a dog"),
        ({"blend": ("dog", "dog")}, "'dog' is not a word of the caption 'A photo of a cat"),
        ({"blend": ("cat", " ")}, "' ' is not a word"),
        ({"region": ("dog", "dog")}, "'dog' is not a word of the caption 'A photo of a cat"),
        ({"region": ("cat", "dog"), "blend": ("photo", "photo")}, "the change is in one place, leave region out"),
        ({"weights": {"cat": 2.0}}, "'cat' is not a word of the caption"),
        ({"weights": {"dog": float("inf")}}, "give a finite factor"),
    ],
)
def test_an_edit_that_cannot_be_made_says_why(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(EditError, match=message):
        Edit(CAPTIONS, **wrong)  # type: ignore[arg-type]
