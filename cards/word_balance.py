"""Which words stand on one side of the pairs more often than chance explains."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

LEVEL = 0.001  # of the whole table: the chance that a balanced subset shows any word in it


@dataclass(frozen=True, slots=True)
class WordUse:
    """A word and the pairs in which it stands in caption 0 alone, caption 1 alone, or in either."""

    word: str
    only0: int
    only1: int
    either: int


def lopsided(uses: Sequence[WordUse], most: int) -> tuple[WordUse, ...]:
    """At most ``most`` words whose two sides differ significantly, those with the largest difference first.

    A two-sided sign test of each word's pairs in which it stands on one side alone, Bonferroni-corrected for the number
    of words. Pairs of one video are counted as if they were independent, which makes the test somewhat lenient.
    """
    unbalanced = [use for use in uses if sign_test(use.only0, use.only1) * len(uses) < LEVEL]
    return tuple(sorted(unbalanced, key=lambda use: (-abs(use.only0 - use.only1), use.word))[:most])


def fewest(words: int) -> int:
    """Pairs that a word must stand in, always on the same side alone, before `lopsided` can name it.

    Args:
        words: how many different ones are tested.
    """
    return next(count for count in itertools.count(1) if sign_test(0, count) * words < LEVEL)


def sign_test(count0: int, count1: int) -> float:
    """Chance (0-1) that a fair coin thrown ``count0 + count1`` times falls at least as unevenly as this."""
    thrown, fewer = count0 + count1, min(count0, count1)
    if count0 == count1:
        return 1.0
    tail = 0.0
    for heads in range(fewer, -1, -1):
        ways = math.lgamma(thrown + 1) - math.lgamma(heads + 1) - math.lgamma(thrown - heads + 1)
        term = math.exp(ways - thrown * math.log(2))
        tail += term
        if term <= tail * 1e-12:  # the rest is smaller still
            break
    return min(1.0, 2 * tail)
