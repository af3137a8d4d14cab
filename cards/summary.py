"""The funnel of a finished subset, in numbers."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class IndexSummary:
    """The funnel of a subset: planned = kept + rejected.

    rejected: by reason. by_filter: by the filter that rejected (``generator`` where nothing was made), then reason.
    kept_by_split: samples a split. tars: samples a tar, by path below the subset. bytes: of all tars. images: roles
    that some sample has a picture for. flagged: kept samples by the flag that they have.
    """

    planned: int
    kept: int
    rejected: Mapping[str, int]
    by_filter: Mapping[str, Mapping[str, int]]
    kept_by_split: Mapping[str, int]
    shards: int
    tars: Mapping[str, int]
    bytes: int
    images: tuple[str, ...] = ()
    flagged: Mapping[str, int] = field(default_factory=dict)
