"""Words change places within their pool, as often in as out, beside the words that they stand beside in captions."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from twinset.generators.exchanged_negatives.choice import PairCounts, Places, exchanged, swapped

NOTHING = PairCounts(np.empty(0, np.int64), np.empty(0, np.int64), 10)


def places(
    pools: list[int], words: list[int], names: list[int] | None = None, beside: list[int] | None = None
) -> Places:
    pool, word = np.array(pools), np.array(words)
    neighbours = [pool * 100 + np.array(beside)] if beside else []
    return Places(pool, word, np.array(names if names is not None else words), np.arange(len(pool)), neighbours)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 4)), min_size=1, max_size=60), st.integers(0, 99))
def test_words_are_dealt_anew_within_their_pool(drawn: list[tuple[int, int]], seed: int) -> None:
    pools, words = (list(column) for column in zip(*drawn, strict=True))
    now = exchanged(places(pools, words), NOTHING, np.random.default_rng(seed)).tolist()
    assert Counter(zip(pools, now, strict=True)) == Counter(drawn)


def test_the_same_seed_deals_the_same_words() -> None:
    some = places([0] * 40, list(range(4)) * 10)
    first, second = (exchanged(some, NOTHING, np.random.default_rng(7)) for _ in range(2))
    assert first.tolist() == second.tolist()
    assert np.mean(first != some.word) > 0.5


def test_no_photo_gets_what_its_captions_say() -> None:
    some = places([0] * 30, [1, 2, 3] * 10)
    told = PairCounts(np.arange(30), np.array([2, 3, 1] * 10), 10)  # of each photo another word than its own
    now = exchanged(some, told, np.random.default_rng(0))
    assert set(zip([1, 2, 3] * 10, now.tolist(), strict=True)) <= {(1, 1), (1, 3), (2, 2), (2, 1), (3, 3), (3, 2)}


def test_synonyms_do_not_change_places() -> None:
    now = exchanged(places([0] * 20, [1, 2] * 10, names=[5] * 20), NOTHING, np.random.default_rng(0))
    assert now.tolist() == [1, 2] * 10


def test_words_stand_beside_what_they_stand_beside_in_captions() -> None:
    # Neighbours 1 and 2 have words 1 and 2 each, or 3 and 4; a word of the other two would be known at once.
    beside = [1, 1, 2, 2] * 50
    some = places([0] * 200, [1, 2, 3, 4] * 50, beside=beside)
    now = exchanged(some, NOTHING, np.random.default_rng(0))
    moved = now != some.word
    fitting = [(word > 2) == (neighbour == 2) for word, neighbour in zip(now, beside, strict=True)]
    assert moved.mean() > 0.8
    assert np.mean(np.array(fitting)[moved]) > 0.9


def test_a_word_that_nothing_else_replaces_stays() -> None:
    assert exchanged(places([0, 0, 1], [5, 5, 6]), NOTHING, np.random.default_rng(0)).tolist() == [5, 5, 6]


def test_swaps_are_as_likely_as_captions_make_them() -> None:
    known = PairCounts(np.array([1] * 20 + [2] * 20 + [1]), np.array([7] * 20 + [8] * 20 + [8]), 10)
    heads, words = np.array([1] * 2000), np.array([2] * 2000)
    first, second = np.array([7] * 2000), np.array([8] * 2000)
    away = swapped((heads, words), (first, second), known, np.random.default_rng(0))
    back = swapped((heads, words), (second, first), known, np.random.default_rng(0))
    assert away.mean() < 0.02 < 0.98 < back.mean()


def test_counts_of_pairs() -> None:
    pairs = PairCounts(np.array([3, 3, 5]), np.array([1, 1, 2]), 4)
    assert pairs.both(np.array([3, 3, 5, 9]), np.array([1, 2, 2, 1])).tolist() == [2, 0, 1, 0]
    assert pairs.first(np.array([3, 4, 5, 9])).tolist() == [2, 0, 1, 0]
