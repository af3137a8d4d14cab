"""Metrics of single benchmarks, which ask for them by name (`Reader.metrics`).

NaturalBench's (its section 4 and released code): a question is answered yes for an image where their score is above
a threshold, and question j is to be answered yes for image j alone.

    vqa_acc   of the four answers of a group, how many are right
    q_acc     of its two questions, how many are answered rightly for both images
    i_acc     of its two images, for how many both questions are answered rightly
    g_acc     all four are right
"""

from collections.abc import Sequence
from math import comb

import numpy as np
import polars as pl
from numpy.typing import NDArray

from twinset.evaluation.metrics.matching import SCORES
from twinset.evaluation.metrics.outcomes import Floats, Outcomes, ScoreKind, code_of, ratio, truth_of
from twinset.evaluation.score_files.batch import Batch

Places = NDArray[np.int64]
_BITS = truth_of(4).astype(np.int64)  # right: image 0 question 0, image 0 question 1, image 1 question 0, image 1 …
_EVENTS = {
    "rows": np.ones(len(_BITS), np.int64),
    "two": np.full(len(_BITS), 2),
    "four": np.full(len(_BITS), 4),
    "vqa_acc": _BITS.sum(1),
    "q_acc": _BITS[:, [0, 2]].all(1).astype(np.int64) + _BITS[:, [1, 3]].all(1),
    "i_acc": _BITS[:, :2].all(1).astype(np.int64) + _BITS[:, 2:].all(1),
    "g_acc": _BITS.all(1),
}


class YesNo(ScoreKind):
    """NaturalBench's four figures. threshold: score above which the answer is yes; None: there are no figures."""

    columns = SCORES
    events = tuple(_EVENTS)
    truth = np.stack([*_EVENTS.values()], axis=1).astype(np.uint8)
    threshold: float | None = None

    def outcomes(self, batch: Batch) -> Outcomes:
        scores = np.stack([batch.numbers(name) for name in self.columns])
        least = 0.0 if self.threshold is None else self.threshold
        yes, no = scores > least, scores < least  # a question without an answer scores the threshold: it is neither
        code = code_of([yes[0], no[1], no[2], yes[3]])
        return Outcomes(code, None, np.empty((len(batch), 0)))

    def names(self, sums: Floats) -> tuple[str, ...]:
        return () if self.threshold is None else ("vqa_acc", "q_acc", "i_acc", "g_acc")

    def share(self, name: str) -> tuple[str, str] | None:
        """Of the group's alone: the others count several answers of a row, and rows are what is compared."""
        return (name, "rows") if name == "g_acc" else None

    def main(self, sums: Floats) -> tuple[str, ...]:
        return self.names(sums)[-1:]

    def figure(self, name: str, sums: Floats) -> Floats:
        below = {"vqa_acc": "four", "g_acc": "rows"}.get(name, "two")
        return ratio(sums[..., self.events.index(name)], sums[..., self.events.index(below)])

    def tied(self, sums: Floats) -> None:
        return None


#: Columns of the score files of queries all whose targets count: of each target in turn, how many wrong entries
#: score higher, and how many the same.
EVERY_TARGET = ("above", "level")


class AllTargets(ScoreKind):
    """``all_targets``: percent of queries whose targets all score above every wrong entry (SugarCrepe++, section 4)."""

    columns = EVERY_TARGET
    events = ("rows", "all_targets", "tie")
    truth = np.array([[1, 0, 0], [1, 1, 0], [1, 0, 1]], np.uint8)

    def outcomes(self, batch: Batch) -> Outcomes:
        (above, begins), (level, _) = (batch.lists(name) for name in self.columns)
        first = np.maximum.reduceat(above, begins) == 0
        wrong, tied = np.maximum.reduceat(level, begins), np.add.reduceat(level > 0, begins, dtype=np.int64)
        # t tied targets come before the w wrong entries with their score in t! w! / (t + w)! of all orders.
        chance = np.array([1 / comb(int(t + w), int(t)) for t, w in zip(tied, wrong, strict=True)])
        code = np.where(first, np.where(tied > 0, 2, 1), 0).astype(np.uint16)
        expected = self.truth[code].astype(np.float64)
        expected[:, 1] = first * chance
        return Outcomes(code, expected, np.empty((len(batch), 0)))

    def names(self, sums: Floats) -> tuple[str, ...]:
        return ("all_targets",)

    def tied(self, sums: Floats) -> float:
        return float(sums[2])


#: What'sUp's opposite prepositions by the number of their pair, in the subsets whose four images show two objects.
OPPOSITES = {"left": 0, "right": 0, "on": 1, "under": 1, "front": 2, "behind": 2}
SUBSETS = ("a", "b")
SETS = ("subset", "group", "category", "higher", "tied")


class PairsAndSets(ScoreKind):
    """``pair_accuracy`` and ``set_accuracy`` (What'sUp, section 3): percent of pairs of opposite prepositions, and of
    sets of four, whose images all get their caption. A pair has two rows and a set four, so means over rows are these.
    """

    columns = SETS
    events = ("rows",)
    truth = np.ones((1, 1), np.uint8)
    means = ("pair_accuracy", "set_accuracy")
    expected_means = True

    def outcomes(self, batch: Batch) -> Outcomes:
        subset, group, category = (batch.texts(name).to_pylist() for name in SETS[:3])
        numbers = pairs_and_sets(subset, group, category, batch.counts("higher"), batch.counts("tied"))
        return Outcomes(np.zeros(len(batch), np.uint16), None, 100 * np.stack(numbers, axis=1))

    def names(self, sums: Floats) -> tuple[str, ...]:
        return ()

    def tied(self, sums: Floats) -> None:
        return None


def pairs_and_sets(
    subset: Sequence[str],
    group: Sequence[str],
    category: Sequence[str],
    higher: NDArray[np.int64],
    tied: NDArray[np.int64],
) -> list[Floats]:
    """Of each row whether its pair and its set are all right, strictly, and the chance of it where equal scores are put
    in random order; NaN of rows whose pair or set is not whole.
    """
    objects, pair = ["subset", "group"], pl.col("category").replace_strict(OPPOSITES, default=None)
    rows = pl.DataFrame({"subset": subset, "group": group, "category": category, "higher": higher, "tied": tied})
    rows = rows.with_columns(
        pair=pl.when(pl.col("subset").is_in(SUBSETS)).then(pair),
        right=(pl.col("higher") + pl.col("tied") == 0).cast(pl.Float64),
        chance=(pl.col("higher") == 0) / (pl.col("tied") + 1),  # the one right caption among equal ones
    )
    of_pair = [*objects, "pair"]
    whole = pl.col("pair").is_not_null() & (pl.col("category").n_unique().over(of_pair) == 2)
    rows = rows.with_columns(whole=whole)
    whole_set = pl.col("whole") & (pl.col("pair").filter(pl.col("whole")).n_unique().over(objects) == 2)
    columns = [
        pl.when(asked)
        .then(pl.col(what).filter(pl.col("whole")).product().over(of))
        .cast(pl.Float64)
        .alias(f"{what}{n}")
        for what in ("right", "chance")
        for n, (asked, of) in enumerate(((pl.col("whole"), of_pair), (whole_set, objects)))
    ]
    return [column.to_numpy() for column in rows.select(columns).fill_null(np.nan)]


PLACES = (5, 10, 25, 50)


class MeanAveragePrecision(ScoreKind):
    """``map@k`` for k of `PLACES` (CIRCO, section 5): the mean over queries of the average precision at k.

        AP@k = 1 / min(targets, k) · Σ_{p ≤ k} precision(p) · [the entry at place p is a target]

    Strict: in a tie wrong entries come first. Expected: the mean over all orders of equal scores.
    """

    columns: tuple[str, ...] = EVERY_TARGET
    events = ("rows", "tie")
    truth = np.array([[1, 0], [1, 1]], np.uint8)
    places: tuple[int, ...] = PLACES
    means: tuple[str, ...] = tuple(f"map@{k}" for k in PLACES)
    expected_means = True

    def outcomes(self, batch: Batch) -> Outcomes:
        (above, begins), (level, _) = (batch.lists(name) for name in EVERY_TARGET)
        both = [np.split(values.astype(np.int64), begins[1:]) for values in (above, level)]
        numbers = np.array(
            [
                [*strict_precision(a, b, self.places), *expected_precision(a, b, self.places)]
                for a, b in zip(*both, strict=True)
            ],
            np.float64,
        )
        ties = (numbers[:, : len(self.places)] != numbers[:, len(self.places) :]).any(1)
        return Outcomes(code_of([ties]), None, 100 * numbers)

    def names(self, sums: Floats) -> tuple[str, ...]:
        return ()

    def tied(self, sums: Floats) -> float:
        return float(sums[1])


class AveragePrecision(MeanAveragePrecision):
    """``map``: the mean over queries of the average precision of the whole gallery (Cola's single objects)."""

    places = (2**31,)
    means = ("map",)


#: What CIRCO's texts say, in the order of its released evaluation.
ASPECTS = (
    *("cardinality", "addition", "negation", "direct_addressing", "compare_change", "comparative_statement"),
    *("statement_with_conjunction", "spatial_relations_background", "viewpoint"),
)


class SemanticMap(MeanAveragePrecision):
    """``map@10 ASPECT``: as `MeanAveragePrecision`, over the queries with that semantic aspect (CIRCO's release)."""

    columns = (*EVERY_TARGET, "tags")
    means = tuple(f"map@10 {aspect}" for aspect in ASPECTS)

    def outcomes(self, batch: Batch) -> Outcomes:
        found = super().outcomes(batch)
        tags = [{*one.split(";")} for one in batch.texts("tags").to_pylist()]
        has = np.array([[aspect in one for aspect in ASPECTS] for one in tags])
        strict, expected = (found.numbers[:, [at]] for at in (PLACES.index(10), PLACES.index(10) + len(PLACES)))
        numbers = np.hstack([np.where(has, one, np.nan) for one in (strict, expected)])
        return Outcomes(found.code, None, numbers)


Ints = np.ndarray[tuple[int, ...], np.dtype[np.int64]]


def strict_precision(above: Ints, level: Ints, ends: Sequence[int] = PLACES) -> list[float]:
    """Average precision at each of ``ends``, wrong entries first where scores are equal.

    Args:
        above, level: of each target, how many wrong entries score higher, and how many the same; shape (targets,).
    """
    places = np.sort(above + level) + np.arange(1, len(above) + 1)  # of the targets, from 1
    precision = np.arange(1, len(above) + 1) / places
    return [float(precision[places <= k].sum()) / min(len(above), k) for k in ends]


def expected_precision(above: Ints, level: Ints, ends: Sequence[int] = PLACES) -> list[float]:
    """As `strict_precision`, but the mean over all orders of entries with one score."""
    if not level.any():
        return strict_precision(above, level, ends)
    sums = np.zeros(len(ends))
    before = 0  # targets above the tie
    for wrong, tied in sorted({*zip(above.tolist(), level.tolist(), strict=True)}):
        targets = int(((above == wrong) & (level == tied)).sum())
        size = targets + tied
        for place in range(1, size + 1):
            # At a place of the tie is a target with chance t / n; before it, in the tie, are then the share
            # (t - 1) / (n - 1) of place - 1 targets.
            share = (place - 1) * (targets - 1) / max(size - 1, 1)
            at = wrong + before + place
            sums += np.where(at <= np.array(ends), targets / size * (before + 1 + share) / at, 0)
        before += targets
    return [float(one) / min(len(above), k) for one, k in zip(sums, ends, strict=True)]
