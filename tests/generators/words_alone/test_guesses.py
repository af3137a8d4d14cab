"""Blind guesses and their clustered intervals against brute force, ties that count half, and what is solved blind."""

import numpy as np
import polars as pl
import pytest

from twinset.cards.sheet import words_of
from twinset.generators.words_alone.guesses import (
    LEAST_GROUPS,
    Guess,
    guess,
    guesses,
    same_bag,
)


def clustered(sizes: np.ndarray, share: float, seed: int, within: float = 0.8) -> tuple[np.ndarray, np.ndarray]:
    """Signs and groups; most pairs of a group are answered alike."""
    random = np.random.default_rng(seed)
    groups = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
    alike = random.random(len(sizes)) < share
    own = random.random(len(groups)) < share
    right = np.where(random.random(len(groups)) < within, alike[groups], own)
    return np.where(right, 1, -1).astype(np.int8), groups


@pytest.mark.parametrize("share", [0.5, 0.72, 0.9])
def test_the_interval_is_that_of_a_bootstrap_over_groups(share: float) -> None:
    signs, groups = clustered(np.tile([1, 2, 5, 12], 60), share, seed=1)
    sums, counts = np.bincount(groups, weights=signs > 0), np.bincount(groups)
    weights = np.random.default_rng(0).multinomial(len(counts), np.full(len(counts), 1 / len(counts)), 4000)
    low, high = np.quantile((weights @ sums) / (weights @ counts), [0.025, 0.975])
    found = guess(signs, groups)
    assert (found.low, found.high) == (pytest.approx(low, abs=0.012), pytest.approx(high, abs=0.012))
    alone = guess(signs, np.arange(len(signs), dtype=np.int32))
    assert alone.high - alone.low < 0.6 * (found.high - found.low), "groups make no difference"


def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    held = 0
    for seed in range(400):
        signs, groups = clustered(np.tile([1, 3, 6], 8), 0.7, seed, within=0.5)
        found = guess(signs, groups)
        held += found.low <= 0.7 <= found.high
    assert 0.92 <= held / 400 <= 0.985


def test_ties_count_half_and_only_ties_are_exactly_chance() -> None:
    groups = np.arange(20, dtype=np.int32)
    some = guess(np.array([1] * 10 + [0] * 6 + [-1] * 4, np.int8), groups)
    assert (some.n, some.groups, some.right, some.ties, some.expected) == (20, 20, 10, 6, 0.65)
    tied = guess(np.zeros(20, np.int8), groups)
    assert (tied.expected, tied.low, tied.high, tied.solved) == (0.5, 0.5, 0.5, False)


def test_what_is_always_right_is_solved_when_there_are_groups_enough() -> None:
    def perfect(groups: int) -> Guess:
        return guess(np.ones(4 * groups, np.int8), np.repeat(np.arange(groups, dtype=np.int32), 4))

    assert perfect(LEAST_GROUPS).solved and 0.6 < perfect(LEAST_GROUPS).low < 0.75 and perfect(10).high == 1.0
    assert perfect(200).low > 0.97
    few = perfect(LEAST_GROUPS - 1)
    assert (few.low, few.high, few.solved) == (None, None, False)


def test_more_than_chance_but_within_the_margin_is_not_solved() -> None:
    signs = np.where(np.arange(100_000) % 100 < 54, 1, -1).astype(np.int8)
    found = guess(signs, np.arange(100_000, dtype=np.int32))
    assert found.low > 0.53 and not found.solved


@pytest.mark.parametrize(
    "caption, other, same",
    [
        ("A dog bites a man.", "A man bites a dog!", True),
        ("two men on four-wheelers", "four men on two-wheelers", True),
        ("a dog and a dog", "a dog and dog", False),
        ("the woman's hat", "the woman hat's", False),
        ("", "", True),
        ("ÉTÉ rouge", "rouge été", True),
    ],
)
def test_bags_of_words(caption: str, other: str, same: bool) -> None:
    assert same_bag(words_of(caption), words_of(other)) is same


def test_guesses_are_by_length_and_by_each_score() -> None:
    rows = {
        "group": [f"g{n // 2}" for n in range(40)],
        "characters": [-3, -1] * 15 + [2, 0] * 5,
        "vera": [None] * 40,
        "cola": [None] * 20 + [1.0] * 10 + [-1.0] * 10,
    }
    found = guesses(pl.DataFrame(rows, schema_overrides={"vera": pl.Float64}))
    assert list(found) == ["shorter", "longer", "higher CoLA"]
    shorter, cola = found["shorter"], found["higher CoLA"]
    assert (shorter.n, shorter.groups, shorter.right, shorter.ties, shorter.solved) == (40, 20, 30, 5, True)
    assert (cola.n, cola.groups, cola.expected, cola.solved) == (20, 10, 0.5, False)
    assert guesses(pl.DataFrame(schema={"group": pl.String, "characters": pl.Int64})) == {}
