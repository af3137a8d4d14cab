"""Statistics counted by hand on the small dataset; histograms with bins that cover all."""

from __future__ import annotations

import io
import itertools
from typing import Any

from PIL import Image

from manifests.summary import WordUse
from shards.histograms import MOST_BARS, binned, histograms
from shards.index import write_index
from shards.statistics import statistics


def test_words_and_groups_are_counted(small_dataset: Any) -> None:
    write_index(small_dataset.store, "eq-ag")
    numbers = statistics(small_dataset.store, "eq-ag")
    # Per whole video: red-green, red-hostile, green-hostile; the last video lacks green-hostile.
    assert numbers.group_pairs == {2: 1, 3: 2}
    assert numbers.top_groups_share == 3 / 8
    assert numbers.frequent[0] == WordUse("disc", 0, 0, 8)
    assert WordUse("red", 6, 0, 6) in numbers.lopsided and WordUse("script", 0, 5, 5) in numbers.lopsided
    assert numbers.longer0 == 0.0 and numbers.distinct_captions == 3 and numbers.distinct_images == 9
    assert numbers.caption_words == {4: 11, 10: 5}
    assert (numbers.sampled, numbers.image_sizes, numbers.changes) == (8, {(96, 72): 8}, {"colour": 8})
    assert numbers.earlier0 == 1.0
    assert Image.open(io.BytesIO(histograms(numbers))).format == "PNG"


def test_bins_cover_every_value_once() -> None:
    counts = {value: value % 7 for value in range(3, 1000, 11)}
    bins = binned(counts)
    assert len(bins) <= MOST_BARS and sum(count for _, _, count in bins) == sum(counts.values())
    assert bins[0][0] == 3 and all(before[1] + 1 == after[0] for before, after in itertools.pairwise(bins))
    assert binned({5: 2}) == [(5, 5, 2)] and binned({}) == []
