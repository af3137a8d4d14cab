"""What captions tell without images: probes of words, guesses with their clustered intervals, ties that count half."""

import random

import numpy as np
import pytest

from twinset.cards.sheet import words_of
from twinset.generators.words_alone.guesses import LEAST_GROUPS, Guess, guess, same_bag
from twinset.generators.words_alone.probe import probed

NOUNS = ["dog", "cat", "horse", "car", "bus", "tree", "house", "man", "woman", "child", "boat", "lake"]
COLOURS = ["red", "blue", "green", "black", "white", "brown"]


def captions(count: int, seed: int) -> list[tuple[str, str]]:
    """Captions of five to seven words, each with another colour in the negative."""
    draw = random.Random(seed)
    pairs = []
    for _ in range(count):
        first, second = draw.sample(COLOURS, 2)
        rest = f"{draw.choice(NOUNS)} beside a {draw.choice(NOUNS)}{draw.choice(('', ' here', ' at noon'))}"
        pairs.append((f"a {first} {rest}", f"a {second} {rest}"))
    return pairs


def test_a_word_of_negatives_alone_tells_them() -> None:
    pairs = captions(600, 0)
    alike = probed(*zip(*pairs, strict=True), seed=0)
    assert alike.pairs == 600
    assert (alike.auc, alike.paired) == (pytest.approx(0.5, abs=0.08), pytest.approx(0.5, abs=0.08))
    marked = [(caption, caption.replace("beside a", "beside a masked")) for caption, _ in pairs]
    probe = probed(*zip(*marked, strict=True), seed=0)
    assert probe.auc is not None and probe.auc > 0.99 and probe.paired == 1


def test_captions_are_asked_about_beside_as_long_ones() -> None:
    # A negative has four fillers more than its caption; among captions of as many fillers nothing tells it.
    draw, pairs = random.Random(4), []
    for caption, negative in captions(1000, 2):
        fillers = draw.choices(["here", "there", "now", "again"], k=draw.randint(4, 12))
        pairs.append((" ".join([caption, *fillers[4:]]), " ".join([negative, *fillers])))
    assert probed(*zip(*pairs, strict=True), seed=0).auc == pytest.approx(0.5, abs=0.1)


def test_the_interval_is_that_of_a_bootstrap_over_groups() -> None:
    """Most pairs of a group are answered alike."""
    share = 0.72
    drawn, sizes = np.random.default_rng(1), np.tile([1, 2, 5, 12], 60)
    groups = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
    alike = drawn.random(len(sizes)) < share
    own = drawn.random(len(groups)) < share
    right = np.where(drawn.random(len(groups)) < 0.8, alike[groups], own)
    signs = np.where(right, 1, -1).astype(np.int8)
    sums, counts = np.bincount(groups, weights=signs > 0), np.bincount(groups)
    weights = np.random.default_rng(0).multinomial(len(counts), np.full(len(counts), 1 / len(counts)), 4000)
    low, high = np.quantile((weights @ sums) / (weights @ counts), [0.025, 0.975])
    guessed, alone = guess(signs, groups), guess(signs, np.arange(len(signs), dtype=np.int32))
    assert (guessed.low, guessed.high) == (pytest.approx(low, abs=0.012), pytest.approx(high, abs=0.012))
    assert alone.high - alone.low < 0.6 * (guessed.high - guessed.low), "groups make no difference"


def test_ties_count_half_and_only_ties_are_exactly_chance() -> None:
    groups = np.arange(20, dtype=np.int32)
    mixed = guess(np.array([1] * 10 + [0] * 6 + [-1] * 4, np.int8), groups)
    assert (mixed.n, mixed.groups, mixed.right, mixed.ties, mixed.expected) == (20, 20, 10, 6, 0.65)
    tied = guess(np.zeros(20, np.int8), groups)
    assert (tied.expected, tied.low, tied.high, tied.solved) == (0.5, 0.5, 0.5, False)


def test_what_is_always_right_is_solved_when_there_are_groups_enough() -> None:
    def perfect(groups: int) -> Guess:
        return guess(np.ones(4 * groups, np.int8), np.repeat(np.arange(groups, dtype=np.int32), 4))

    assert perfect(LEAST_GROUPS).solved and 0.6 < perfect(LEAST_GROUPS).low < 0.75 and perfect(10).high == 1.0
    few = perfect(LEAST_GROUPS - 1)
    assert (few.low, few.high, few.solved) == (None, None, False)


@pytest.mark.parametrize(
    ("caption", "negative", "same"),
    [
        ("A dog bites a man.", "A man bites a dog!", True),
        ("two men on four-wheelers", "four men on two-wheelers", True),
        ("a dog and a dog", "a dog and dog", False),
        ("ÉTÉ rouge", "rouge été", True),
    ],
)
def test_bags_of_words(caption: str, negative: str, same: bool) -> None:
    assert same_bag(words_of(caption), words_of(negative)) is same
