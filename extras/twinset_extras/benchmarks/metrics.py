"""Metrics that single benchmarks name (`Reader.metrics`): functions of columns of their score files."""

from collections.abc import Sequence
from math import comb

import numpy as np
import polars as pl
from numpy.typing import NDArray

from twinset.evaluation.metrics.galleries import precision
from twinset.evaluation.metrics.row_values import Floats, RowValues, certain

Lists = Sequence[Floats]  # of each row an array
Texts = Sequence[str]
#: What'sUp's opposite prepositions by the number of their pair, in the subsets whose four images show two objects.
OPPOSITES = {"left": 0, "right": 0, "on": 1, "under": 1, "front": 2, "behind": 2}
OBJECTS = ("a", "b")
FIRST = 5
ALL = (2**31,)  # places


def yes_no(s00: Floats, s01: Floats, s10: Floats, s11: Floats, threshold: float | None) -> dict[str, Floats]:
    """NaturalBench's four figures (its section 4 and released code): a question is answered yes for an image where
    their score is above the threshold; without one there are no figures. Question j is to be answered yes for image j
    alone. ``vqa_acc``: answers that are right; ``q_acc``, ``i_acc``: questions right for both images, images right for
    both questions; ``g_acc``: all four.
    """
    if threshold is None:
        return {}
    # A question without an answer scores the threshold: it is neither yes nor no.
    a, b, c, d = s00 > threshold, s01 < threshold, s10 < threshold, s11 > threshold
    right = {
        "vqa_acc": np.mean([a, b, c, d], axis=0),
        "q_acc": np.mean([a & c, b & d], axis=0),
        "i_acc": np.mean([a & b, c & d], axis=0),
    }
    return {**right, "g_acc": (a & b & c & d).astype(np.float64)}


def all_targets(above: Lists, level: Lists) -> RowValues:
    """``all_targets``: percent of queries whose targets all score above every wrong entry (SugarCrepe++, section 4).

    Args:
        above, level: of each target of a query in turn, how many wrong entries score higher, and how many the same.
    """
    # t tied targets come before the w wrong entries with their score in t! w! / (t + w)! of all orders.
    chances = [
        1 / comb(int((same > 0).sum() + same.max()), int((same > 0).sum())) if max(more) == 0 else 0.0
        for more, same in zip(above, level, strict=True)
    ]
    return certain({"all_targets": np.array(chances)})


def sets(subset: Texts, group: Texts, category: Texts, higher: Floats, tied: Floats) -> RowValues:
    """``pair_accuracy`` and ``set_accuracy`` (What'sUp, section 3): percent of pairs of opposite prepositions, and of
    sets of four, whose images all get their caption. A pair has two rows and a set four, so means over rows are these;
    not asked of rows whose pair or set is not whole.
    """
    objects, pair = ["subset", "group"], pl.col("category").replace_strict(OPPOSITES, default=None)
    rows = pl.DataFrame({"subset": subset, "group": group, "category": category, "higher": higher, "tied": tied})
    rows = rows.with_columns(
        pair=pl.when(pl.col("subset").is_in(OBJECTS)).then(pair),
        strict=(pl.col("higher") + pl.col("tied") == 0).cast(pl.Float64),
        expected=(pl.col("higher") == 0) / (pl.col("tied") + 1),  # the one right caption among equal ones
    )
    of_pair = [*objects, "pair"]
    rows = rows.with_columns(whole=pl.col("pair").is_not_null() & (pl.col("category").n_unique().over(of_pair) == 2))
    whole_set = pl.col("whole") & (pl.col("pair").filter(pl.col("whole")).n_unique().over(objects) == 2)

    def of(values: str) -> dict[str, Floats]:
        right = pl.col(values).filter(pl.col("whole")).product()
        columns = rows.select(
            pair_accuracy=pl.when("whole").then(right.over(of_pair)),
            set_accuracy=pl.when(whole_set).then(right.over(objects)),
        )
        return {column.name: column.cast(pl.Float64).fill_null(np.nan).to_numpy() for column in columns}

    return RowValues(of("strict"), of("expected"))


def average_precision(above: Lists, level: Lists) -> RowValues:
    """``map``: the mean over queries of the average precision of the whole gallery (Cola's single objects).

    AP = 1 / targets · Σ_p precision(p) · [the entry at place p is a target]. Strict: in a tie wrong entries come first.
    Expected: the mean over all orders of equal scores.
    """
    rows = [(np.asarray(a, np.int64), np.asarray(b, np.int64)) for a, b in zip(above, level, strict=True)]
    strict, expected = [precision(a + b, 0 * b, ALL) for a, b in rows], [precision(a, b, ALL) for a, b in rows]
    return RowValues({"map": np.array(strict)[:, 0]}, {"map": np.array(expected)[:, 0]})


def ranking(places: Lists, people: Lists) -> dict[str, Floats]:
    """How alike the orders of people and of a model are (EqBen, Figure 7), as means over queries: ``mean_kendall``
    (tau-b) and ``mean_spearman``, -1 to 1; ``overlap@5``, percent of people's first five that are among the model's.
    Images that nobody put in order tie.

    Args:
        places, people: of each entry in turn, how many the model scores higher, and how many people put before it.
    """
    rows = [correlations(a, b) for a, b in zip(places, people, strict=True)]
    return dict(zip(("mean_kendall", "mean_spearman", f"overlap@{FIRST}"), np.array(rows).T, strict=True))


def correlations(a: Floats, b: Floats) -> tuple[float, float, float]:
    """Kendall's tau-b, Spearman's rho, and the share of the first five of ``b`` that are among those of ``a``.

    NaN where one of them ties all, or ``b`` has no first five.
    """
    from scipy.stats import kendalltau, spearmanr  # a list of kinds does without

    first, theirs = (_first(order) for order in (a, b))
    overlap = float((first & theirs).sum()) / FIRST if theirs.sum() == FIRST else float("nan")
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return float("nan"), float("nan"), overlap
    return float(kendalltau(a, b).statistic), float(spearmanr(a, b).statistic), overlap


def _first(before: Floats) -> NDArray[np.bool_]:
    """Entries that are among the first five however ties fall."""
    _, which, counts = np.unique(before, return_inverse=True, return_counts=True)
    return np.asarray((counts.cumsum() <= FIRST)[which], np.bool_)
