"""Negative captions with scores of both captions, planned from a table that has them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from twinset.generators.negative_captions.kinds import COLUMNS, NegativeCaption
from twinset.shards.kinds.text_pair import TEXT_SCORES

#: Columns of a table of scored negative captions.
SCORED_COLUMNS = pa.schema([*COLUMNS, *(pa.field(name, pa.float64()) for name in TEXT_SCORES)])


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredCaption(NegativeCaption):
    """A negative caption with its scores (`shards.kinds.text_pair.TEXT_SCORES`), None where there is none.

    vera, cola: probabilities; lm: mean log-probability a token in nats; similarity: cosine.
    """

    vera_caption: float | None = None
    vera_negative: float | None = None
    cola_caption: float | None = None
    cola_negative: float | None = None
    lm_caption: float | None = None
    lm_negative: float | None = None
    similarity: float | None = None

    def row(self) -> dict[str, Any]:
        """Its row in a table of `SCORED_COLUMNS`."""
        return {name: getattr(self, name) for name in SCORED_COLUMNS.names}

    def scores(self) -> dict[str, float]:
        """The scores that are there, by name."""
        return {name: score for name in TEXT_SCORES if (score := getattr(self, name)) is not None}


def scores_of(row: Mapping[str, Any]) -> dict[str, float | None]:
    """The scores of a table's row, None where it has none or one that is not finite."""
    return {name: score if _is_finite(score := row.get(name)) else None for name in TEXT_SCORES}


def _is_finite(score: float | None) -> bool:
    return score is not None and math.isfinite(score)
