import pytest

from twinset.generators.video.frame_pairs import as_sentence


@pytest.mark.parametrize(
    ("phrases", "sentence"),
    [
        (("chop a stalk of parsley",), "Chop a stalk of parsley."),
        (("Stir the pot.",), "Stir the pot."),
        (("man in yellow t-shirt", "take back one leg"), "Man in yellow t-shirt take back one leg."),
        (("both the knees\nwhile\ttouching  her",), "Both the knees while touching her."),
        (("man in printed shirt , grey pant",), "Man in printed shirt, grey pant."),
        ((" add 1 tbls mustard ",), "Add 1 tbls mustard."),
        (("add the onion to the pand]",), "Add the onion to the pand."),
        (("boil for some time but not too long/",), "Boil for some time but not too long."),
        (("heat tortillas with the green onions '",), "Heat tortillas with the green onions."),
        (("stir it...",), "Stir it."),
        (("stir it .",), "Stir it."),
        (("is it done ?",), "Is it done?"),
        (("add salt,",), "Add salt."),
        (("add salt (a pinch)",), "Add salt (a pinch)."),
        (("call it 'done'",), "Call it 'done'."),
        (("- peel the potato",), "Peel the potato."),
        (("bake at 200\N{DEGREE SIGN}C",), "Bake at 200\N{DEGREE SIGN}C."),
        (("\xe9mincer l'oignon",), "\xc9mincer l'oignon."),
        (("nul\x00byte",), "Nul byte."),
        (("  ",), ""),
        (("...",), ""),
        (("",), ""),
    ],
)  # fmt: skip
def test_phrases_become_sentences(phrases: tuple[str, ...], sentence: str) -> None:
    assert as_sentence(*phrases) == sentence


@pytest.mark.parametrize("sentence", ["Chop 2 onions.", "Is it done?", "Add salt (a pinch)."])
def test_a_sentence_stays_as_it_is(sentence: str) -> None:
    assert as_sentence(sentence) == sentence
