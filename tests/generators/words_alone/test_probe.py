"""The probes on captions whose negatives are as likely as themselves, and on those with a word that tells them."""

import random

import pytest

from twinset.generators.words_alone.probe import LEAST, probed

NOUNS = ["dog", "cat", "horse", "car", "bus", "tree", "house", "man", "woman", "child", "boat", "lake"]
COLOURS = ["red", "blue", "green", "black", "white", "brown"]


def captions(count: int, seed: int) -> list[tuple[str, str]]:
    """Captions of five to seven words, each with another colour in the negative."""
    draw = random.Random(seed)
    found = []
    for _ in range(count):
        first, second = draw.sample(COLOURS, 2)
        rest = f"{draw.choice(NOUNS)} beside a {draw.choice(NOUNS)}{draw.choice(('', ' here', ' at noon'))}"
        found.append((f"a {first} {rest}", f"a {second} {rest}"))
    return found


def test_words_that_are_dealt_anew_tell_nothing() -> None:
    found = probed(*zip(*captions(600, 0), strict=True), seed=0)
    assert found.pairs == 600
    assert found.auc == pytest.approx(0.5, abs=0.08)
    assert found.paired == pytest.approx(0.5, abs=0.08)


def test_a_word_of_negatives_alone_tells_them() -> None:
    pairs = [(caption, caption.replace("beside a", "beside a masked")) for caption, _ in captions(600, 1)]
    found = probed(*zip(*pairs, strict=True), seed=0)
    assert found.auc is not None and found.auc > 0.99
    assert found.paired == 1


def test_captions_are_asked_about_beside_as_long_ones() -> None:
    # A negative has one filler more than its caption; among captions of as many fillers nothing tells it.
    draw = random.Random(4)
    fillers = ["here", "there", "now", "again"]
    pairs = []
    for caption, negative in captions(1500, 2):
        said = draw.choices(fillers, k=draw.randint(0, 9))
        pairs.append((" ".join([caption, *said]), " ".join([negative, *said, draw.choice(fillers)])))
    assert probed(*zip(*pairs, strict=True), seed=0).auc == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize("pairs", [[], captions(LEAST - 1, 0), [("a dog", "a cat")] * 500])
def test_few_pairs_or_captions_give_no_figure(pairs: list[tuple[str, str]]) -> None:
    found = probed([one for one, _ in pairs], [other for _, other in pairs], seed=0)
    assert (found.auc, found.paired) == (None, None)
