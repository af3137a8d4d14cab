"""What a finished subset holds, in numbers: the funnel from its index and what describes its captions and images."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class IndexSummary:
    """The funnel of a subset: planned = kept + rejected.

    rejected: by reason. by_filter: by the filter that rejected (``generator`` where nothing was made), then reason.
    kept_by_split: pairs a split. tars: pairs a tar, by path below the subset. bytes: of all tars.
    """

    planned: int
    kept: int
    rejected: Mapping[str, int]
    by_filter: Mapping[str, Mapping[str, int]]
    kept_by_split: Mapping[str, int]
    shards: int
    tars: Mapping[str, int]
    bytes: int


@dataclass(frozen=True, slots=True)
class WordUse:
    """A word and the pairs in which it stands in caption 0 alone, caption 1 alone, or in either."""

    word: str
    only0: int
    only1: int
    either: int


@dataclass(frozen=True, slots=True)
class Statistics:
    """What a researcher should know before trusting a score.

    caption_words: captions by their number of words. group_pairs: groups (videos) by their number of pairs.
    top_groups_share: share (0-1) of the pairs that the largest tenth of the groups hold.
    frequent: the words in most pairs. lopsided: the words that stand on one side more often than chance explains
    (`shards.word_balance`), so that a model could guess the side without looking. longer0: share of pairs whose caption
    0 has more words than caption 1.
    distinct_captions, distinct_images: over both sides.
    sampled: pairs whose images were looked at, evenly spread; image_sizes: these by (width, height) of image 0;
    changes: these by what changes; earlier0: share of these whose image 0 comes first in time, None without time.
    """

    caption_words: Mapping[int, int]
    group_pairs: Mapping[int, int]
    top_groups_share: float
    frequent: tuple[WordUse, ...]
    lopsided: tuple[WordUse, ...]
    longer0: float
    distinct_captions: int
    distinct_images: int
    sampled: int
    image_sizes: Mapping[tuple[int, int], int]
    changes: Mapping[str, int]
    earlier0: float | None
