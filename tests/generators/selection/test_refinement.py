"""Adversarial refinement: as many pairs of a cell as of the opposite one, on any number of axes."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.generators.selection.published_procedure import refine
from twinset.contracts.canonical import sample_key
from twinset.generators.selection.refinement import COARSE, balanced, cells_of, ranks_of, reach_of, refined

PUBLISHED = [reach_of("vera"), reach_of("cola")]
#: Gaps on and beside the borders of bins, of probabilities; few of them, so that cells meet their opposites.
GAP = st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.02, -0.02, 0.019, -0.019, 0.5, -0.5, 0.99, -0.99, 1e-12, -1e-12])
PAIRS = st.lists(st.tuples(GAP, GAP), max_size=120)
MORE = st.lists(st.tuples(GAP, GAP, GAP, st.integers(-3, 3).map(float)), min_size=1, max_size=120)
STEADY = settings(deadline=None, derandomize=True)
FOUR = [reach_of("vera"), reach_of("cola"), reach_of("lm"), reach_of("words")]


def columns(pairs: list[tuple[float, ...]], axes: int) -> list[np.ndarray]:
    return [np.array([pair[axis] for pair in pairs], np.float64) for axis in range(axes)]


def some_ranks(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2**63, count).astype(np.uint64)


def counted(cells: np.ndarray) -> Counter[tuple[int, ...]]:
    return Counter(map(tuple, cells.tolist()))


@STEADY
@given(PAIRS, st.integers(0, 3))
def test_every_cell_keeps_what_the_published_procedure_keeps(pairs: list[tuple[float, float]], seed: int) -> None:
    gaps = columns(pairs, 2)
    cells, kept = cells_of(gaps, PUBLISHED, 50), refined(gaps, PUBLISHED, 50, some_ranks(len(pairs), seed))
    slow = refine(pairs, seed)
    assert counted(cells[kept]) == counted(cells[slow]) and kept.sum() == len(slow)


@pytest.mark.parametrize("count", [20_000])
def test_drawn_gaps_keep_what_the_published_procedure_keeps(count: int) -> None:
    rng = np.random.default_rng(5)
    gaps = [rng.normal(0.1, 0.3, count).clip(-1, 1), rng.normal(0.05, 0.2, count).clip(-1, 1)]
    for axis in (0, 1):
        gaps[axis][rng.random(count) < 0.05] = 0
    cells, kept = cells_of(gaps, PUBLISHED, 50), refined(gaps, PUBLISHED, 50, some_ranks(count))
    slow = refine(list(zip(*(gap.tolist() for gap in gaps), strict=True)))
    assert 1000 < kept.sum() < count - 1000 and counted(cells[kept]) == counted(cells[slow])


@STEADY
@given(MORE, st.integers(1, 60))
def test_on_any_axes_a_cell_and_its_opposite_keep_the_smaller_number(pairs: list[tuple[float, ...]], grid: int) -> None:
    gaps = columns(pairs, 4)
    cells, ranks = cells_of(gaps, FOUR, grid), some_ranks(len(pairs))
    kept = balanced(cells, ranks)
    before, after = counted(cells), counted(cells[kept])
    for cell, count in before.items():
        opposite = tuple(-one for one in cell)
        assert after[cell] == (min(count, before[opposite]) if any(cell) else count)
    for gap in gaps:
        assert (gap[kept] > 0).sum() == (gap[kept] < 0).sum(), "a scorer tells the captions apart"
    again = balanced(cells[kept], ranks[kept])
    assert again.all(), "refining again takes more away"


@STEADY
@given(MORE, st.randoms(use_true_random=False))
def test_the_order_of_pairs_makes_no_difference(pairs: list[tuple[float, ...]], random: np.random.Generator) -> None:
    gaps, ranks = columns(pairs, 4), some_ranks(len(pairs))
    order = list(range(len(pairs)))
    random.shuffle(order)
    kept = refined(gaps, FOUR, 50, ranks)
    assert (refined([gap[order] for gap in gaps], FOUR, 50, ranks[order]) == kept[order]).all()
    assert refined([-gap for gap in gaps], FOUR, 50, ranks).tolist() == kept.tolist()


def test_bins_are_right_at_zero_and_at_one() -> None:
    gaps = [
        np.array([0.0, 1.0, -1.0, 0.98, 0.0199, 0.02, 0.0, 0.0]),
        np.array([0.0, 1.0, 0.5, -0.5, -0.3, 0.3, 0.95, -1.0]),
    ]
    # Bins begin at their lower border: 0.98 * 50 is 49.
    expected = [[0, 0], [50, 50], [-50, 26], [50, -26], [1, -16], [2, 16], [0, COARSE], [0, -COARSE]]
    assert cells_of(gaps, PUBLISHED, 50).tolist() == expected


def test_words_have_a_bin_a_word_and_equal_lengths_keep_the_grid_of_scores() -> None:
    gaps = [np.array([0.30, 0.30, 0.0]), np.array([0.0, -70.0, -2.0])]
    assert cells_of(gaps, [reach_of("vera"), reach_of("words")], 50).tolist() == [[16, 0], [16, -50], [0, -2]]
    assert cells_of([np.array([1.99, -5.0])], [reach_of("lm")], 50).tolist() == [[50], [-50]]


def test_nothing_and_one_side_alone_keep_nothing() -> None:
    nothing = np.array([])
    assert refined([nothing, nothing], PUBLISHED, 50, some_ranks(0)).tolist() == []
    assert not refined([np.full(9, 0.1), np.full(9, 0.1)], PUBLISHED, 50, some_ranks(9)).any()


def test_the_seed_the_stage_and_the_key_decide_what_remains() -> None:
    gaps = [np.array([0.1] * 900 + [-0.1] * 100)]
    names = pa.array([sample_key("scores", number) for number in range(1000)])

    def kept(seed: int, stage: str) -> set[int]:
        found = refined(gaps, [reach_of("vera")], 50, ranks_of(seed, stage, [names[:300], names[300:]]))
        assert found.sum() == 200 and found[900:].all()
        return {*np.flatnonzero(found).tolist()}

    assert kept(0, "a") == kept(0, "a")
    assert len(kept(0, "a") & kept(1, "a")) < 140 > len(kept(0, "a") & kept(0, "b"))
    # Each of the 900 is as likely: over 20 seeds each remains some 2.2 times.
    times = Counter(number for seed in range(20) for number in kept(seed, "a") if number < 900)
    assert sum(number < 450 for number in times.elements()) == pytest.approx(1000, abs=100)
