"""The worst mistakes of a model: the questions that it answers wrongly with the greatest confidence."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import polars as pl

from twinset.evaluation.metrics.matching import SCORES
from twinset.evaluation.report.model_answers import Asked, ModelAnswers

COUNT = 8


@dataclass(frozen=True, slots=True)
class Mistake:
    """A question that was answered wrongly.

    by: how far the right answer was behind, in scores, entries of the gallery, or seconds. scores: the columns of its
    row that the model answered with.
    """

    key: str
    subset: str
    category: str
    group: str
    by: float
    scores: dict[str, Any]


def worst_mistakes(scored: ModelAnswers, count: int = COUNT) -> list[Mistake]:
    """At most ``count`` mistakes, the worst first; one a group as far as there are enough groups.

    None where outcomes or choices alone are known, which do not say how far off an answer is.
    """
    if not scored.scores:
        return []
    pool = _answers(scored).filter(pl.col("by") > 0).sort("by", "key", descending=[True, False])
    # The worst of each group first, then the second of each.
    turns = pool.with_columns(turn=pl.int_range(pl.len()).over("group")).sort("turn", maintain_order=True)
    return _mistakes(turns.head(count).drop("turn").sort("by", "key", descending=[True, False]))


def answers_to(scored: ModelAnswers, keys: Collection[str]) -> dict[str, Mistake]:
    """What a model answered to some questions, by key; where it is right, ``by`` is 0 or less."""
    if not scored.scores:
        return {}
    return {answer.key: answer for answer in _mistakes(_answers(scored).filter(pl.col("key").is_in([*keys])))}


def _answers(scored: ModelAnswers) -> pl.DataFrame:
    return scored.rows().with_columns(by=_BEHIND[scored.asked].cast(pl.Float64).fill_nan(None))


def _mistakes(rows: pl.DataFrame) -> list[Mistake]:
    return [Mistake(**{name: row.pop(name) for name in _NAMED}, scores=row) for row in rows.to_dicts()]


_NAMED = ("key", "subset", "category", "group", "by")
_s00, _s01, _s10, _s11 = (pl.col(name).cast(pl.Float64).fill_nan(None) for name in SCORES)
#: How far the right answer is behind. Of a matching: the largest lead of a wrong pair over a right one of its image or
#: caption. Of a query: the share of the gallery's other entries before the best target, ties as half.
_BEHIND: dict[Asked, pl.Expr] = {
    "matching": pl.max_horizontal(_s01 - _s00, _s10 - _s11, _s10 - _s00, _s01 - _s11),
    "query": (pl.col("higher") + pl.col("tied") / 2) / (pl.col("entries") - 1).clip(1),
    "statement": -pl.col("margin").cast(pl.Float64),
    "grounding": pl.col("errors").cast(pl.List(pl.Float64)).list.mean(),
}
