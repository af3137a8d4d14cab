"""Blind guesses and their clustered intervals against brute force, ties that count half, and what is solved blind."""

import math

import numpy as np
import polars as pl
import pytest

from twinset.cards.sheet import words_of
from twinset.generators.negative_captions.changes import words
from twinset.generators.words_alone.guesses import (
    LEAST_GROUPS,
    WORD,
    Guess,
    Guesses,
    gaps,
    guess,
    kind_of_row,
    same_bag,
)

PAIRS = [
    ("A dog.", "A big dog.", "add", "att", 0.9, 0.1),
    ("A cat sat.", "A mat sat.", "replace", "obj", 0.2, 0.2),
    ("A man on a bus.", "A bus.", "replace", "obj", 0.3, 0.6),
    ("A kite.", "A red, old kite.", "", "", None, 0.6),
    ("A lamp.", "A ramp.", "replace", "obj", math.nan, 0.5),
]
NAMES = ("caption", "negative_caption", "type", "subtype", "vera_caption", "vera_negative")


def test_shares_of_attacks_count_half_of_ties_and_leave_out_pairs_without_the_score() -> None:
    rows = pl.LazyFrame(PAIRS, schema=NAMES, orient="row")
    rows = rows.select(group="caption", kind=kind_of_row(), **gaps("caption", "negative_caption", ["vera"]))
    lines = Guesses(rows).table("true", ["replace_obj", "add_att", "unknown"]).splitlines()
    assert "| fewer words | 60.0% | – | 40.0% | 33.3% | 100.0% | 100.0% |" in lines
    assert "| more words | 40.0% | – | 40.0% | 66.7% | 0.0% | 0.0% |" in lines
    assert "| higher VERA | 50.0% | – | 33.3% | 25.0% | 100.0% | – |" in lines


@pytest.mark.parametrize(
    "text", ["A T-shirt's on_1 'top', isn't it?", "二人の男 été – naïve", "", " 3.5 x", "a--b co-op’s"]
)
def test_words_are_those_of_negative_captions(text: str) -> None:
    assert pl.Series([text]).str.count_matches(WORD)[0] == len(words(text))


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
    assert (few.low, few.high, few.solved, few.interval) == (None, None, False, "–")


@pytest.mark.parametrize(
    "caption, other, same",
    [
        ("A dog bites a man.", "A man bites a dog!", True),
        ("two men on four-wheelers", "four men on two-wheelers", True),
        ("a dog and a dog", "a dog and dog", False),
        ("", "", True),
        ("ÉTÉ rouge", "rouge été", True),
    ],
)
def test_bags_of_words(caption: str, other: str, same: bool) -> None:
    assert same_bag(words_of(caption), words_of(other)) is same


@pytest.fixture(scope="module")
def tally() -> Guesses:
    """Forty pairs of twenty groups: kind ``a`` is solved by the shorter caption, ``b`` by nothing."""
    rows = {
        "group": [f"g{n // 2}" for n in range(40)],
        "kind": ["a"] * 20 + ["b"] * 20,
        "characters": [-3.0, -1.0] * 10 + [2.0, -2.0] * 10,
        "lm": [None] * 20 + [1.0] * 10 + [-1.0] * 10,
    }
    return Guesses(pl.LazyFrame(rows))


def test_kinds_that_are_solved_are_named_and_bold(tally: Guesses) -> None:
    assert tally.judged
    ((_, words, counted),) = [each for each in tally.solved(["a", "b", "c"]) if each[0] != "all"]
    assert (words, counted.right, counted.n, counted.groups) == ("shorter", 20, 20, 10)
    heads, _, *rows = tally.table("true", ["a", "b", "c"]).splitlines()
    assert heads == "| guessed true: the caption that has | all | 95 % interval | ties | a | b | c |"
    shorter = next(row for row in rows if row.startswith("| shorter "))
    assert shorter.endswith("| **100.0%** | 50.0% | – |")
    assert next(row for row in rows if "language-model" in row).endswith("| 0.0% | – | 50.0% | – |")
    assert tally.guess("vera") is None and tally.guess("lm", "a") is None


def test_no_pairs_have_no_table() -> None:
    none = Guesses(pl.LazyFrame(schema={"group": pl.String, "words": pl.Float64}))
    assert (none.table("true", []), none.solved([]), none.judged, none.best()) == ("", [], False, None)
