"""Negative captions with scores of both captions, planned from a table that has them."""

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields, make_dataclass
from functools import cache
from typing import Any, TypeVar, cast

import pyarrow as pa

from twinset.generators.caption_scores.scorers.scorer import scorer_of
from twinset.generators.negative_captions.kinds import COLUMNS, NegativeCaption
from twinset.shards.kinds.text_pair import TEXT_SCORES


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredCaption(NegativeCaption):
    """A negative caption with scores in fields that `with_scores` adds, None where there is none."""

    def scores(self) -> dict[str, float]:
        """The scores that are there, by column."""
        named = (one.name for one in fields(self) if one.type == float | None)
        return {name: score for name in named if (score := getattr(self, name)) is not None}


C = TypeVar("C", bound=ScoredCaption)


@cache
def with_scores(candidate: type[C], columns: tuple[str, ...]) -> type[C]:
    """A type of candidates with a field for each column of scores."""
    added = [(name, float | None, field(default=None)) for name in columns]
    bases = (candidate,)
    made = make_dataclass(candidate.__name__, added, bases=bases, frozen=True, slots=True, kw_only=True)
    return cast(type[C], made)


def columns_of(scores: Iterable[str]) -> tuple[str, ...]:
    """Columns of scores: those of every table, and after them those of other packages' scorers.

    scores: names of scores. Raises `UnknownKind` where no scorer here gives one.
    """
    others = [column for score in scores for column in scorer_of(score)[1].columns()]
    return tuple(dict.fromkeys((*TEXT_SCORES, *others)))


def scored_schema(numbers: Iterable[str]) -> pa.Schema:
    """Columns of a table of scored negative captions. numbers: columns of its scores."""
    return pa.schema([*COLUMNS, *(pa.field(name, pa.float64()) for name in numbers)])


def scores_in(row: Mapping[str, Any], columns: Collection[str]) -> dict[str, float | None]:
    """The scores of a table's row, None where it has none or one that is not finite."""
    return {name: score if _is_finite(score := row.get(name)) else None for name in columns}


def _is_finite(score: float | None) -> bool:
    return score is not None and math.isfinite(score)
