import pytest

from twinset.contracts.candidate import CaptionedCandidate
from twinset.contracts.kinds.samples import Drop
from twinset.filters.equal_captions import EqualCaptionsFilter, words
from twinset.filters.motion_words import MotionWords, MotionWordsFilter


def candidate(captions0: tuple[str, ...], captions1: tuple[str, ...]) -> CaptionedCandidate:
    return CaptionedCandidate(key="eq-gebc-a", group="v", captions0=captions0, captions1=captions1)


@pytest.mark.parametrize(
    "caption",
    [
        "Man pick up a ball.",
        "Up goes the man.",
        "Man sits UP.",
        "Man look (down).",
        "Man do push-up now.",
        "Walk towards it.",
    ],
)
def test_motion_words_are_taken_away(caption: str) -> None:
    moves = MotionWordsFilter(MotionWords(kind="motion-words"))
    assert moves(candidate((caption,), ("Man stands.",))) == Drop("motion-word")
    assert moves(candidate(("Man stands.",), (caption,))) == Drop("motion-word")
    kept = moves(candidate((caption, "Man sits."), ("Dog sits.", caption)))
    assert kept == candidate(("Man sits.",), ("Dog sits.",))


@pytest.mark.parametrize(
    "caption", ["Man holds a cup.", "The upper lip.", "An upside-downer hat.", "Pickup truck.", "Supdown."]
)
def test_parts_of_words_do_not_count(caption: str) -> None:
    still = candidate((caption,), (caption,))
    assert MotionWordsFilter(MotionWords(kind="motion-words"))(still) == still


def test_the_list_of_words_is_the_recipes() -> None:
    both = candidate(("Man go up.",), ("Man pick   Up it.", "Man is in."))
    assert MotionWordsFilter(MotionWords(kind="motion-words", words=("pick up",)))(both) == candidate(
        ("Man go up.",), ("Man is in.",)
    )
    assert MotionWordsFilter(MotionWords(kind="motion-words", words=("M.n", "(")))(both) == both
    for words_ in ((), ("",), (" ",)):
        assert MotionWordsFilter(MotionWords(kind="motion-words", words=words_))(both) == both


@pytest.mark.parametrize(
    ("captions0", "captions1", "led0", "led1"),
    [
        (("A.",), ("B.",), ("A.",), ("B.",)),
        (("A.", "B."), ("B.", "A."), ("A.", "B."), ("B.", "A.")),
        (("A.", "B."), ("a", "C."), ("B.", "A."), ("C.", "a")),
        (("A.",), ("A.", "B.", "C."), ("A.",), ("B.", "A.", "C.")),
        (("A.", "B.", "C."), ("A.",), ("B.", "A.", "C."), ("A.",)),
    ],
)
def test_captions_that_differ_take_the_lead(
    captions0: tuple[str, ...], captions1: tuple[str, ...], led0: tuple[str, ...], led1: tuple[str, ...]
) -> None:
    assert EqualCaptionsFilter()(candidate(captions0, captions1)) == candidate(led0, led1)


@pytest.mark.parametrize(
    ("caption0", "caption1"),
    [
        ("Stir it.", "stir  it"),
        ("A t-shirt, red.", "A t shirt red!"),
        ("Add 1 egg.", "ADD 1 EGG"),
        ("Fish & chips.", "Fish & chips"),
    ],
)
def test_case_spacing_and_punctuation_make_no_difference(caption0: str, caption1: str) -> None:
    assert EqualCaptionsFilter()(candidate((caption0, caption1), (caption1,))) == Drop("equal-captions")


@pytest.mark.parametrize(
    ("caption0", "caption1"),
    [
        ("Add 1.5 cups.", "Add 15 cups."),
        ("Add 1 egg.", "Add 2 eggs."),
        ("Put it on.", "Put it in."),
        ("कि", "की"),
        ("2+2", "2=2"),
    ],
)
def test_words_numbers_and_marks_do(caption0: str, caption1: str) -> None:
    assert words(caption0) != words(caption1)
    assert isinstance(EqualCaptionsFilter()(candidate((caption0,), (caption1,))), CaptionedCandidate)
