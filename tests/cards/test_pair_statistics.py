"""Statistics counted by hand on the small dataset; histograms with bins that cover all."""

from __future__ import annotations

import io
import itertools
import math
from typing import Any

import pytest
from PIL import Image

from cards.pair_statistics import statistics
from cards.plots import MOST_BARS, binned, histograms
from cards.summary import WordUse
from cards.word_balance import lopsided, sign_test
from stages.index import write_index


def test_words_and_groups_are_counted(small_dataset: Any) -> None:
    write_index(small_dataset.store, "eq-ag")
    numbers = statistics(small_dataset.store, "eq-ag")
    # Per whole video: red-green, red-hostile, green-hostile; the last video lacks green-hostile.
    assert numbers.group_pairs == {2: 1, 3: 2}
    assert numbers.top_groups_share == 3 / 8
    assert numbers.frequent[0] == WordUse("disc", 0, 0, 8)
    assert numbers.lopsided == ()  # six of six are chance, where seven words were counted
    assert numbers.longer0 == 0.0 and numbers.distinct_captions == 3 and numbers.distinct_images == 9
    assert numbers.caption_words == {4: 11, 10: 5}
    assert (numbers.sampled, numbers.image_sizes, numbers.changes) == (8, {(96, 72): 8}, {"colour": 8})
    assert numbers.earlier0 == 1.0
    assert Image.open(io.BytesIO(histograms(numbers))).format == "PNG"


def test_only_words_that_chance_does_not_explain_are_lopsided() -> None:
    assert sign_test(0, 10) == pytest.approx(2 / 2**10) and sign_test(5, 5) == sign_test(0, 0) == 1.0
    assert sign_test(4, 6) == pytest.approx(2 * sum(math.comb(10, k) for k in range(5)) / 2**10)
    assert sign_test(1_900_000, 2_000_000) < 1e-300 < sign_test(199_000, 200_000) < 0.2
    even = [WordUse(f"w{n}", 30 + n % 5, 30, 80) for n in range(500)]
    # Over 503 words p must be below 2e-6: 20 of 20 are (1.9e-6), 19 of 19 are not (3.8e-6).
    found = lopsided([*even, WordUse("few", 19, 0, 19), WordUse("left", 20, 0, 25), WordUse("right", 100, 300, 900)], 5)
    assert [use.word for use in found] == ["right", "left"]


def test_bins_cover_every_value_once() -> None:
    counts = {value: value % 7 for value in range(3, 1000, 11)}
    bins = binned(counts)
    assert len(bins) <= MOST_BARS and sum(count for _, _, count in bins) == sum(counts.values())
    assert bins[0][0] == 3 and all(before[1] + 1 == after[0] for before, after in itertools.pairwise(bins))
    assert binned({5: 2}) == [(5, 5, 2)] and binned({}) == []
