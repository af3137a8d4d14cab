"""Blind guesses on pairs: how often half of a pair tells the answer, and when that solves a subset.

A guess compares one number of both captions, such as their length or a language model's score. A benchmark on which
one is right far from half of the time can be solved in part without looking (SugarCrepe, section 3.1).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from twinset.contracts.kinds.text_pair import TEXT_SCORES
from twinset.contracts.markdown import Markdown, table
from twinset.generators.caption_scores.scorers.scorer import scorer_of

if TYPE_CHECKING:
    import polars as pl

CHANCE = 0.5
#: A subset is solved blind where the 95 % interval of a guess begins above chance by more than this: 55 %.
MARGIN = 0.05
#: Fewer groups give no interval: how they differ cannot be told from so few.
LEAST_GROUPS = 10
MISSING = 2  # in place of a sign, where a pair lacks the number

#: Of each length that both captions have: what is guessed to be true where it differs, by the sign of the gap.
LENGTHS = {"characters": {-1: "shorter", 1: "longer"}, "words": {-1: "fewer words", 1: "more words"}}
#: Words of letters and digits, as `generators.negative_captions.changes.words` finds them.
WORD = r"[\pL\pN_]+(?:[-'’][\pL\pN_]+)*"
CAPTION, NEGATIVE = "_caption", "_negative"
ALL, UNKNOWN = "all", "unknown"

Signs = NDArray[np.int8]
Codes = NDArray[np.int32]


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

    @property
    def interval(self) -> str:
        """In per cent, a dash where there is none."""
        return "–" if self.low is None or self.high is None else f"{100 * self.low:.1f} to {100 * self.high:.1f}"

    @property
    def share(self) -> str:
        """In per cent, in bold where it solves."""
        return Markdown(f"**{self.expected:.1%}**") if self.solved else f"{self.expected:.1%}"


def guess(signs: Signs, groups: Codes) -> Guess:
    """Count a guess.

    Args:
        signs: of each pair, at least one: 1 right, 0 tied, -1 wrong.
        groups: of each pair, a small number, 0 or more; pairs of one group are not independent.
    """
    right, ties = int((signs > 0).sum()), int((signs == 0).sum())
    expected = (right + ties / 2) / len(signs)
    there = np.bincount(groups) > 0
    residuals = np.bincount(groups, weights=(signs + 1) / 2 - expected)[there]
    low, high = _interval(residuals, len(signs), expected)
    return Guess(len(signs), int(there.sum()), right, ties, expected, low, high)


def _interval(sums: NDArray[Any], pairs: int, mean: float) -> tuple[float | None, float | None]:
    """95 % interval of a mean of scores (0, 1/2, 1) of clustered pairs.

    Wilson's interval, with the number of independent pairs that would have the variance that the groups show:

    variance of the mean = G/(G-1) · Σ over groups (Σ of the group (score − mean))² / n²
    effective n = mean · (1 − mean) / variance

    With the quantile t of Student's distribution of G − 1 degrees of freedom (Korn and Graubard, 1998).

    sums: of each group, of what its scores exceed their mean by. pairs: of all groups.
    """
    from scipy.stats import t as student

    count = len(sums)
    if count < LEAST_GROUPS:
        return None, None
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


def attacks_on(names: Collection[str]) -> Iterator[tuple[str, int, str]]:
    """Every guess by some numbers, lengths first: the number, the sign of its gap, and what is guessed to be true."""
    order = [*LENGTHS, *scores_among(TEXT_SCORES)]
    for name in sorted(names, key=lambda one: (order.index(one) if one in order else len(order), one)):
        for side, words in (LENGTHS.get(name) or {1: f"higher {title_of(name)}"}).items():
            yield name, side, words


def kind_of_row() -> pl.Expr:
    """The kind of a row with ``type`` and ``subtype``, such as ``replace_obj``; `UNKNOWN` where neither is told."""
    import polars as pl

    kind = pl.concat_str("type", "subtype", separator="_")
    return pl.when(kind == "_").then(pl.lit(UNKNOWN)).otherwise(kind)


def gaps(first: str, second: str, scores: Iterable[str] = ()) -> dict[str, pl.Expr]:
    """Gaps of two columns of captions in `LENGTHS` and scores, by name: the first's number less the second's.

    Null where a score is null, NaN or infinite.
    """
    import polars as pl

    captions = pl.col(first), pl.col(second)
    characters = [caption.str.len_chars().cast(pl.Float64) for caption in captions]
    words = [caption.str.count_matches(WORD).cast(pl.Float64) for caption in captions]
    found = {"characters": characters[0] - characters[1], "words": words[0] - words[1]}
    for score in scores:
        gap = pl.col(score + CAPTION) - pl.col(score + NEGATIVE)
        found[score] = pl.when(gap.is_finite()).then(gap)
    return found


class Guesses:
    """Blind guesses on the pairs of a table.

    rows: ``group``, where pairs have kinds ``kind``, and a column of `gaps` for each number.
    """

    def __init__(self, rows: pl.LazyFrame) -> None:
        import polars as pl

        self.names = [name for name in rows.collect_schema().names() if name not in ("group", "kind")]
        signs = [pl.col(name).sign().cast(pl.Int8) for name in self.names]
        coded = pl.col("group").rank("dense").cast(pl.Int32)
        self._rows = rows.select(*signs, pl.col("^kind$").cast(pl.Categorical), group=coded).collect()
        self._known: dict[tuple[str, str, int], Guess | None] = {}

    def guess(self, name: str, kind: str = ALL, side: int = 1) -> Guess | None:
        """Of an attack on the pairs of a kind, None where none has the number.

        side: 1 where the larger number is guessed to be true, -1 where the smaller.
        """
        import polars as pl

        attack = name, kind, side
        if attack not in self._known and name in self.names:
            rows = self._rows if kind == ALL else self._rows.filter(pl.col("kind") == kind)
            rows = rows.select(name, "group").drop_nulls(name)
            signs, groups = rows[name].to_numpy() * np.int8(side), rows["group"].to_numpy()
            self._known[attack] = guess(signs, groups) if rows.height else None
        return self._known.get(attack)

    def _tried(self, kind: str) -> list[tuple[str, Guess]]:
        attacks = ((words, self.guess(name, kind, side)) for name, side, words in attacks_on(self.names))
        return [(words, counted) for words, counted in attacks if counted is not None]

    @cached_property
    def judged(self) -> bool:
        """Whether there are groups enough to tell what is solved."""
        return any(counted.low is not None for _, counted in self._tried(ALL))

    def best(self) -> tuple[str, Guess] | None:
        """What the best attack on all pairs guesses, and how often it is right; None without pairs."""
        return max(self._tried(ALL), key=lambda attack: attack[1].expected, default=None)

    def solved(self, kinds: Collection[str]) -> list[tuple[str, str, Guess]]:
        """Kinds, `ALL` first, that an attack solves: kind, what it guesses, how often it is right; the best of each."""
        tried = {kind: [attack for attack in self._tried(kind) if attack[1].solved] for kind in (ALL, *kinds)}
        return [(kind, *max(them, key=lambda attack: attack[1].expected)) for kind, them in tried.items() if them]

    def table(self, guessed: str, kinds: Collection[str]) -> str:
        """A Markdown table: how often each attack is right, in bold where it solves the kind; empty without pairs.

        Args:
            guessed: what is guessed, such as ``true``.
            kinds: names of kinds, a column each.
        """
        rows = []
        for name, side, words in attacks_on(self.names):
            if (every := self.guess(name, ALL, side)) is not None:
                of_kinds = (self.guess(name, kind, side) for kind in kinds)
                cells = ["–" if counted is None else counted.share for counted in of_kinds]
                rows.append((words, every.share, every.interval, f"{every.ties / every.n:.1%}", *cells))
        heads = (f"guessed {guessed}: the caption that has", "all", "95 % interval", "ties")
        return table((*heads, *(kind.replace("_", " ") for kind in kinds)), rows) if rows else ""
