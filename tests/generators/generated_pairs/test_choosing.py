"""The best image of each caption, and which of them fit the original caption too."""

import numpy as np
import pytest

from twinset.contracts.errors import WrongUse
from twinset.generators.generated_pairs.joining import best_of, choose, is_ambiguous

NAN = float("nan")


def floats(*values: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array(values, dtype=np.float64)


def test_the_best_of_k_and_of_equal_ones_the_smallest_number() -> None:
    captions = ["b", "a", "b", "a", "b", "c"]
    scores = floats(0.5, 0.2, 0.9, 0.8, 0.9, 0.0)
    assert best_of(captions, scores, np.array([0, 0, 2, 1, 1, 5])).tolist() == [4, 3, 5]


def test_nan_loses_and_is_chosen_only_alone() -> None:
    assert best_of(["a", "a", "b"], floats(NAN, 0.0, NAN), np.array([0, 1, 0])).tolist() == [1, 2]


def test_nothing_gives_nothing() -> None:
    chosen, ambiguous = choose([], floats(), floats(), np.zeros(0, np.int64))
    assert chosen.tolist() == ambiguous.tolist() == []


def test_ambiguity_by_limit_and_by_comparison() -> None:
    scores, originals = floats(1.0, 1.0, 0.5, 0.8, 0.7), floats(1.0, 0.9, 0.5, 0.2, NAN)
    for limit, compared, expected in (
        (1.0, True, [True, False, True, False, False]),
        (1.0, False, [True, False, False, False, False]),
        (0.5, False, [True, True, True, False, False]),
        (None, True, [True, False, True, False, False]),
        (None, False, [False] * 5),
    ):
        assert is_ambiguous(scores, originals, limit, compared).tolist() == expected


def test_an_ambiguous_caption_is_dropped_whatever_its_other_images() -> None:
    scores, originals = floats(1.0, 0.9, 0.6, 0.7), floats(1.0, 0.0, 0.0, 0.1)
    chosen, ambiguous = choose(["a", "a", "b", "b"], scores, originals, np.array([0, 1, 0, 1]))
    assert (chosen.tolist(), ambiguous.tolist()) == ([3], [0])


def test_the_choice_depends_on_neither_order_nor_other_captions_and_is_that_of_a_loop() -> None:
    draw = np.random.default_rng(11)
    captions = [f"c{number}" for number in draw.integers(0, 80, 400)]
    numbers = np.arange(400)
    draw.shuffle(numbers)
    scores, originals = np.round(draw.random(400), 1), np.round(draw.random(400), 1)
    scores[::17], originals[::13] = NAN, NAN
    chosen, ambiguous = choose(captions, scores, originals, numbers)

    expected = set()
    for caption in set(captions):
        rows = [at for at, one in enumerate(captions) if one == caption]
        best = min(rows, key=lambda at: (np.isnan(scores[at]), -np.nan_to_num(scores[at]), numbers[at]))
        if not (originals[best] >= 1.0 or originals[best] >= scores[best]):
            expected.add(best)
    assert set(chosen.tolist()) == expected

    order = draw.permutation(400)
    again = choose([captions[at] for at in order], scores[order], originals[order], numbers[order])
    assert [set(order[rows]) for rows in again] == [set(chosen), set(ambiguous)]
    few = np.array([at for at, caption in enumerate(captions) if caption in ("c1", "c2", "c3")])
    alone, _ = choose([captions[at] for at in few], scores[few], originals[few], numbers[few])
    assert set(few[alone]) == set(chosen) & set(few)


def test_what_cannot_be_chosen_from() -> None:
    with pytest.raises(WrongUse, match="two images of a caption have the same number"):
        best_of(["a", "a"], floats(0, 1), np.array([3, 3]))
