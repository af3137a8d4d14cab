"""How often a guess that looks at half of a pair is right, and when that solves a subset blind.

A guess compares one number of both captions, or of both images, and is right, wrong or tied for each pair
(`generators.blind_attacks`; the classifiers of `evaluation.blind_probes`).
"""

import math
from array import array
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from twinset.contracts.markdown import Markdown, table
from twinset.generators.blind_attacks import ALL, Gaps, attacks_on

CHANCE = 0.5
#: A subset is solved blind where the 95 % interval of a guess begins above chance by more than this: 55 %.
MARGIN = 0.05
#: Fewer groups give no interval: how they differ cannot be told from so few.
LEAST_GROUPS = 10
_NORMAL = 1.959964  # 97.5 % quantile of the normal distribution

Signs = NDArray[np.int8]
Codes = NDArray[np.int32]
MISSING = 2  # in place of a sign, where a pair lacks the number


def sign_test(one: int, other: int) -> float:
    """The exact two-sided sign test, McNemar's too: p of a split of n at least as uneven, each with chance 1/2.

    p = min(1, 2 · P(X <= k)), X ~ Binomial(n, 1/2), k the lesser; 1 for n = 0. The terms of the sum are made from the
    largest, C(n, k) / 2**n, downwards: C(n, i - 1) / C(n, i) = i / (n - i + 1).
    """
    n, k = one + other, min(one, other)
    if 2 * k == n:
        return 1.0
    largest = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) - n * math.log(2)
    i = np.arange(k, 0, -1, dtype=np.float64)
    tail = 1 + float(np.cumprod(i / (n - i + 1)).sum())
    return min(1.0, 2 * math.exp(largest) * tail)


@dataclass(frozen=True, slots=True)
class Guess:
    """How often a guess is right.

    n, groups: pairs that have the number, and groups of these. right, ties: pairs. expected: share (0-1) that is right
    where half of ties are. low, high: its 95 % interval, None with fewer groups than `LEAST_GROUPS`.
    """

    n: int
    groups: int
    right: int
    ties: int
    expected: float
    low: float | None
    high: float | None

    @property
    def solved(self) -> bool:
        """Whether the interval begins above chance by more than `MARGIN`."""
        return self.low is not None and self.low > CHANCE + MARGIN


def guess(signs: Signs, groups: Codes) -> Guess:
    """Count a guess.

    Args:
        signs: of each pair, at least one: 1 right, 0 tied, -1 wrong.
        groups: of each pair, a number; pairs of one group are not independent.
    """
    n = len(signs)
    right, ties = int((signs > 0).sum()), int((signs == 0).sum())
    expected = (right + ties / 2) / n
    _, codes = np.unique(groups, return_inverse=True)
    low, high = _interval((signs + 1) / 2, codes, expected)
    return Guess(n, int(codes.max()) + 1, right, ties, expected, low, high)


def _interval(scores: NDArray[np.float64], codes: NDArray[np.intp], mean: float) -> tuple[float | None, float | None]:
    """95 % interval of a mean of scores (0, 1/2, 1) of clustered pairs.

    Wilson's interval, with the number of independent pairs that would have the variance that the groups show:

    variance of the mean = G/(G-1) · Σ over groups (Σ of the group (score − mean))² / n²
    effective n = mean · (1 − mean) / variance

    With the quantile t of Student's distribution of G − 1 degrees of freedom (Korn and Graubard, 1998).
    """
    sums = np.bincount(codes, weights=scores - mean)  # residuals of each group
    count = len(sums)
    if count < LEAST_GROUPS:
        return None, None
    variance = count / (count - 1) * float(sums @ sums) / len(scores) ** 2
    spread = mean * (1 - mean)
    if variance == 0 and spread > 0:  # all are tied: no guess is made at all
        return mean, mean
    # All right or all wrong: the groups are the pairs that are known to be independent.
    effective = spread / variance if spread else float(count)
    t2 = _student(count - 1) ** 2
    centre = (mean + t2 / (2 * effective)) / (1 + t2 / effective)
    half = math.sqrt(t2) / (1 + t2 / effective) * math.sqrt(spread / effective + t2 / (4 * effective**2))
    return max(0.0, centre - half), min(1.0, centre + half)


def _student(freedom: int) -> float:
    """97.5 % quantile of Student's t, by the expansion of Cornish and Fisher; wrong by less than 0.005 from 9 on."""
    z = _NORMAL
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


def same_bag(words0: Sequence[str], words1: Sequence[str]) -> bool:
    """Whether two captions share one multiset of words.

    Parts of compounds are words of their own: "two men on four-wheelers" and "four men on two-wheelers" share theirs.

    Args:
        words0, words1: in lower case (`cards.sheet.words_of`).
    """
    return sorted("-".join(words0).split("-")) == sorted("-".join(words1).split("-"))


class GuessCounts:
    """Signs of the gaps of every pair, with its group and kind; memory: some 10 bytes a pair.

    A gap is a number of the true caption (or that of image 0) less the other's.
    """

    def __init__(self) -> None:
        self._signs: dict[str, array[int]] = {}
        self._groups, self._kinds = array("i"), array("i")
        self._group_codes: dict[str, int] = {}
        self._kind_codes: dict[str, int] = {}
        self._found: dict[tuple[str, str, int], Guess | None] = {}

    def add(self, gaps: Mapping[str, Gaps], groups: pa.Array, kinds: pa.Array | None = None) -> None:
        """Count a batch of pairs.

        Args:
            gaps: as `generators.blind_attacks.gaps_of`, the same in each batch; NaN where there is none.
            groups: name of each pair's group. kinds: of its kind, in all batches or in none.
        """
        self._found.clear()
        for name, values in gaps.items():
            signs = np.where(np.isnan(values), MISSING, np.sign(values)).astype(np.int8)
            self._signs.setdefault(name, array("b")).frombytes(signs.tobytes())
        self._groups.frombytes(_coded(groups, self._group_codes).tobytes())
        if kinds is not None:
            self._kinds.frombytes(_coded(kinds, self._kind_codes).tobytes())

    def guess(self, name: str, kind: str = ALL, side: int = 1) -> Guess | None:
        """Of an attack on the pairs of a kind, None where none has the number.

        side: 1 where the larger number is guessed to be true, -1 where the smaller.
        """
        if (name, kind, side) not in self._found:
            self._found[name, kind, side] = self._count(name, kind, side)
        return self._found[name, kind, side]

    def _count(self, name: str, kind: str, side: int) -> Guess | None:
        if name not in self._signs:
            return None
        signs = np.frombuffer(self._signs[name], np.int8)
        there = signs != MISSING
        if kind != ALL:
            there &= np.frombuffer(self._kinds, np.int32) == self._kind_codes.get(kind, -1)
        if not there.any():
            return None
        return guess(signs[there] * np.int8(side), np.frombuffer(self._groups, np.int32)[there])

    @property
    def judged(self) -> bool:
        """Whether there are groups enough to tell what is solved."""
        found = [self.guess(name) for name in self._signs]
        return any(one is not None and one.low is not None for one in found)

    def best(self) -> tuple[str, Guess] | None:
        """What the best attack on all pairs guesses, and how often it is right; None without pairs."""
        tried = [(said, one) for name, side, said in attacks_on(self._signs) if (one := self.guess(name, ALL, side))]
        return max(tried, key=lambda pair: pair[1].expected, default=None)

    def solved(self, kinds: Collection[str]) -> list[tuple[str, str, Guess]]:
        """Kinds, `ALL` first, that an attack solves: kind, what it guesses, how often it is right; the best of each."""
        found = []
        for kind in (ALL, *kinds):
            tried = [
                (said, one)
                for name, side, said in attacks_on(self._signs)
                if (one := self.guess(name, kind, side)) is not None and one.solved
            ]
            if tried:
                found.append((kind, *max(tried, key=lambda pair: pair[1].expected)))
        return found

    def table(self, guessed: str, kinds: Collection[str]) -> str:
        """A Markdown table: how often each attack is right, in bold where it solves the kind; empty without pairs.

        Args:
            guessed: what is guessed, such as ``true``.
            kinds: names of kinds, a column each.
        """
        rows = []
        for name, side, said in attacks_on(self._signs):
            every = self.guess(name, ALL, side)
            if every is not None:
                by_kind = [_cell(self.guess(name, kind, side)) for kind in kinds]
                rows.append((said, _cell(every), between(every), f"{every.ties / every.n:.1%}", *by_kind))
        heads = (f"guessed {guessed}: the caption that has", "all", "95 % interval", "ties")
        return table((*heads, *(kind.replace("_", " ") for kind in kinds)), rows) if rows else ""


def between(one: Guess) -> str:
    """The interval of a guess in per cent, a dash where there is none."""
    return "–" if one.low is None or one.high is None else f"{100 * one.low:.1f} to {100 * one.high:.1f}"


def _cell(one: Guess | None) -> str:
    if one is None:
        return "–"
    return Markdown(f"**{one.expected:.1%}**") if one.solved else f"{one.expected:.1%}"


def _coded(names: pa.Array, codes: dict[str, int]) -> Codes:
    """Names as numbers; ``codes`` learns those that are new."""
    encoded = names.dictionary_encode()
    places = [codes.setdefault(name, len(codes)) for name in encoded.dictionary.to_pylist()]
    found: Codes = np.array(places, np.int32)[encoded.indices.to_numpy(zero_copy_only=False)]
    return found
