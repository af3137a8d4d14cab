"""Blind guesses on pairs: how often half of a pair tells the answer, and when that solves a subset.

A guess compares one number of both captions, such as their length or a score. A benchmark on which one is right far
from half of the time can be solved in part without looking (SugarCrepe, section 3.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from twinset.generators.caption_scores.scorers.scorer import scorer_of

if TYPE_CHECKING:
    import polars as pl

CHANCE = 0.5
#: A subset is solved blind where the 95 % interval of a guess begins above chance by more than this: 55 %.
MARGIN = 0.05
#: Fewer groups give no interval: how they differ cannot be told from so few.
LEAST_GROUPS = 10

CHARACTERS = "characters"
CAPTION, NEGATIVE = "_caption", "_negative"


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


def guess(signs: NDArray[np.int8], groups: NDArray[Any]) -> Guess:
    """Count a guess.

    Args:
        signs: of each pair, at least one: 1 right, 0 tied, -1 wrong.
        groups: of each pair; pairs of one group are not independent.
    """
    right, ties = int((signs > 0).sum()), int((signs == 0).sum())
    expected = (right + ties / 2) / len(signs)
    codes = np.unique(groups, return_inverse=True)[1]
    sums = np.bincount(codes, weights=(signs + 1) / 2 - expected)
    low, high = _interval(sums, len(signs), expected) if len(sums) >= LEAST_GROUPS else (None, None)
    return Guess(len(signs), len(sums), right, ties, expected, low, high)


def _interval(sums: NDArray[Any], pairs: int, mean: float) -> tuple[float, float]:
    """95 % interval of a mean of scores (0, 1/2, 1) of clustered pairs.

    Wilson's interval, with the number of independent pairs that would have the variance that the G groups show:

    variance of the mean = G/(G-1) · Σ over groups (Σ of the group (score − mean))² / n²
    effective n = mean · (1 − mean) / variance

    With the quantile t of Student's distribution of G − 1 degrees of freedom (Korn and Graubard, 1998).

    sums: of each group, of what its scores exceed their mean by. pairs: of all groups.
    """
    from scipy.stats import t as student

    count = len(sums)
    variance = count / (count - 1) * float(np.square(sums).sum()) / pairs**2
    spread = mean * (1 - mean)
    if variance == 0 and spread > 0:  # all are tied: no guess is made at all
        return mean, mean
    # All right or all wrong: the groups are the pairs that are known to be independent.
    effective = spread / variance if spread else float(count)
    t2 = float(student.ppf(0.975, count - 1)) ** 2
    centre = (mean + t2 / (2 * effective)) / (1 + t2 / effective)
    half = t2**0.5 / (1 + t2 / effective) * (spread / effective + t2 / (4 * effective**2)) ** 0.5
    return max(0.0, centre - half), min(1.0, centre + half)


def guesses(rows: pl.DataFrame) -> dict[str, Guess]:
    """Every guess on the pairs of a table, by what is guessed to be true; none where no pair has the number.

    rows: ``group``, and a column of `gaps` for each number.
    """
    counted = dict[str, Guess]()
    for name in rows.drop("group").columns:
        known = rows.select("group", name).drop_nulls(name)
        if known.height:
            signs, groups = np.sign(known[name].to_numpy()).astype(np.int8), known["group"].rank("dense").to_numpy()
            if name == CHARACTERS:
                counted |= {"shorter": guess(-signs, groups), "longer": guess(signs, groups)}
            else:
                counted[f"higher {title_of(name)}"] = guess(signs, groups)
    return counted


def sign_test(fewer: int, more: int) -> float:
    """p of the exact two-sided sign test, McNemar's too, of a split into two numbers; 1 for none."""
    from scipy.stats import binomtest

    return float(binomtest(min(fewer, more), fewer + more).pvalue) if fewer + more else 1.0


def same_bag(words0: Sequence[str], words1: Sequence[str]) -> bool:
    """Whether two captions share one multiset of words, in lower case (`cards.sheet.words_of`).

    Parts of compounds are words of their own: "two men on four-wheelers" and "four men on two-wheelers" share theirs.
    """
    return sorted("-".join(words0).split("-")) == sorted("-".join(words1).split("-"))


def scores_among(columns: Iterable[str]) -> list[str]:
    """Names of the scores that columns hold, of the caption and of the negative each."""
    names = list(columns)
    ended = (name.removesuffix(CAPTION) for name in names if name.endswith(CAPTION))
    return [score for score in ended if score + NEGATIVE in names]


def title_of(score: str) -> str:
    """Of a score, as cards name it; raises `UnknownKind` where no scorer here gives it."""
    return scorer_of(score)[1].title


def kind_of_row() -> pl.Expr:
    """The kind of a row with ``type`` and ``subtype``, such as ``replace_obj``; ``unknown`` where neither is told."""
    import polars as pl

    kind = pl.concat_str("type", "subtype", separator="_")
    return pl.when(kind == "_").then(pl.lit("unknown")).otherwise(kind)


def gaps(first: str, second: str, scores: Iterable[str] = ()) -> dict[str, pl.Expr]:
    """Gaps of two columns of captions in characters and scores, by name: the first's number less the second's.

    Null where a score is null, NaN or infinite.
    """
    import polars as pl

    lengths = [pl.col(name).str.len_chars().cast(pl.Int64) for name in (first, second)]
    differences = {CHARACTERS: lengths[0] - lengths[1]}
    for score in scores:
        gap = pl.col(score + CAPTION) - pl.col(score + NEGATIVE)
        differences[score] = pl.when(gap.is_finite()).then(gap)
    return differences
