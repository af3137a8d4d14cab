"""What cards and sheets must know of a kind of samples, and of the funnel of a finished subset, in numbers."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Generic, TypeVar

from twinset.cards.plots import Counts
from twinset.cards.sheet import Block, words_of
from twinset.contracts.kinds.kind import SampleKind, Stored
from twinset.contracts.markdown import ranked
from twinset.shards.read import index_rows, of_kind, read_spread
from twinset.shards.storage.store import Store

SAMPLED = 64  # samples whose images are looked at: each may cost a read of its whole tar
FREQUENT = 12
LONGEST = 200  # characters of a text that is counted
PICTURES, FEWEST_BLOCKS = 6, 2  # side by side on a sheet

N = TypeVar("N")  # statistics of a kind


@dataclass(frozen=True, slots=True)
class CardKind(Generic[N]):
    """How samples of a kind are described. Their card is the template ``NAME.md.j2``, NAME that of the kind.

    what: their name, and what a sample is. tasks, tags: for Hugging Face. columns: what columns of the index hold.
    block: a sample as it is shown. legend: sentences below the sheet's title, each by the label of the cells that it is
    about, "" for one that always stands there.
    statistics: counts a subset whose index is written, for the template. panels: what of these is plotted, by title,
    given what the source calls a group.
    """

    sample: SampleKind
    what: tuple[str, str]
    tasks: tuple[str, ...]
    tags: tuple[str, ...]
    columns: Mapping[str, str]
    block: Callable[[Stored[Any]], Block]
    legend: Mapping[str, str]
    statistics: Callable[[Store, str], N]
    panels: Callable[[N, str], Mapping[str, Counts]]


def blocks_across(blocks: Sequence[Block]) -> int:
    """How many blocks lie side by side on a sheet: as many as give some `PICTURES` pictures, and two at least."""
    return max(FEWEST_BLOCKS, PICTURES // max((block.columns for block in blocks), default=PICTURES))


def legend_of(kind: CardKind[Any], blocks: Sequence[Block]) -> str:
    """What the legend of a kind says of these blocks."""
    labels = {cell.label for block in blocks for cell in block.cells}
    return " ".join(said for label, said in kind.legend.items() if not label or label in labels)


def share_of_top(counts: Iterable[int], part: int) -> float:
    """Share (0-1) of all that the most frequent ``part``-th of the keys has; at least one key counts."""
    ordered = sorted(counts, reverse=True)
    return sum(ordered[: -(-len(ordered) // part)]) / sum(ordered) if ordered else 0.0


def how_often(values: Iterable[Any]) -> dict[Any, int]:
    """Each value with how often it occurs, in order."""
    return dict(sorted(Counter(values).items()))


def records_of(store: Store, subset: str, kind: SampleKind) -> list[Any]:
    """The JSON of samples that are looked at, evenly spread over a subset."""
    return [one.json for one in of_kind(read_spread(store, subset, SAMPLED), kind, "this")]


@dataclass(frozen=True, slots=True)
class ScoreSpread:
    """A score of samples that were looked at: how many have it, and its least, middle and largest value.

    samples: in which it was measured; unmeasured: others, which have the number ``instead``, and do not count.
    """

    name: str
    meaning: str
    samples: int
    least: float
    middle: float
    most: float
    unmeasured: int = 0
    instead: float = 0.0


def score_spreads(
    store: Store, subset: str, kind: SampleKind, meanings: Mapping[str, str], instead: Mapping[str, float]
) -> list[ScoreSpread]:
    """The scores that samples have, in order.

    Args:
        meanings: by name, without the 0 or 1 of the image that it is of.
        instead: the number that stands for "not measured", by name.
    """
    found: dict[str, list[float]] = {}
    for record in records_of(store, subset, kind) if meanings else ():
        for name, value in record.scores.items():
            found.setdefault(name, []).append(value)
    spreads = []
    for name, all_ in sorted(found.items()):
        absent = instead.get(name, math.nan)
        there = [one for one in all_ if one != absent] or [math.nan]
        said = meanings.get(name) or meanings.get(name[:-1], "")
        count = sum(not math.isnan(one) for one in there)
        spreads.append(ScoreSpread(name, said, count, min(there), median(there), max(there), len(all_) - count, absent))
    return spreads


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionStatistics:
    """Statistics of the conditions of a subset.

    condition_words: samples by the words of their condition. conditions: how many different ones; frequent: those of
    most samples; top_conditions_share: share (0-1) of the samples that the hundredth of the conditions with most has.
    """

    condition_words: Counts
    conditions: int
    frequent: Counts
    top_conditions_share: float


def count_conditions(store: Store, subset: str) -> dict[str, Any]:
    """The fields of `ConditionStatistics` by name."""
    conditions, condition_words = Counter[str](), Counter[int]()
    for row in index_rows(store, subset, ("condition",)):
        conditions[row["condition"][:LONGEST]] += 1
        condition_words[len(words_of(row["condition"]))] += 1
    return {
        "condition_words": dict(sorted(condition_words.items())),
        "conditions": len(conditions),
        "frequent": ranked(conditions, FREQUENT),
        "top_conditions_share": share_of_top(conditions.values(), 100),
    }


def condition_panels(numbers: ConditionStatistics, _group: str) -> dict[str, Counts]:
    """What is plotted of conditions."""
    return {
        "conditions by number of words": numbers.condition_words,
        "most frequent conditions": numbers.frequent,
    }


@dataclass(frozen=True, slots=True)
class IndexSummary:
    """The funnel of a subset: planned = kept + rejected.

    rejected: by reason. by_filter: by the filter that rejected (``generator`` where nothing was made), then reason.
    kept_by_split: samples a split. tars: samples a tar, by path below the subset. bytes: of all tars. images: roles
    that some sample has a picture for. flagged: kept samples by the flag that they have. terms: by licence and credit.
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
    terms: Mapping[tuple[str, str], int] = field(default_factory=dict)
