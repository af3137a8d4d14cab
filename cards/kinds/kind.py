"""What cards and sheets must know of a kind of samples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from cards.block import Block
from cards.plots import Panel
from shards.kinds.kind import SampleKind, Stored
from shards.storage.store import Store

SAMPLED = 64  # samples whose images are looked at: each may cost a read of its whole tar
FREQUENT = 12
LONGEST = 200  # characters of a text that is counted

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class CardKind(Generic[S]):
    """How samples of a kind are described. Their card is the template ``NAME.md.j2``, NAME that of the kind.

    what: their name, and what a sample is. tasks, tags: for Hugging Face. columns: what columns of the index hold.
    block: a sample as it is shown; across: blocks side by side on a sheet; legend: a line below the sheet's title.
    statistics: counts a subset whose index is written. panels: what of these is plotted, given what
    the source calls a group.
    """

    sample: SampleKind
    what: tuple[str, str]
    tasks: tuple[str, ...]
    tags: tuple[str, ...]
    columns: Mapping[str, str]
    block: Callable[[Stored[Any]], Block]
    across: int
    legend: str
    statistics: Callable[[Store, str], S]
    panels: Callable[[S, str], Sequence[Panel]]


def most_frequent(counts: Mapping[str, int]) -> dict[str, int]:
    """The names with most, the first ones of the alphabet among equals."""
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:FREQUENT])


def share_of_top(counts: Iterable[int], part: int) -> float:
    """Share (0-1) of all that the most frequent ``part``-th of the keys has; at least one key counts."""
    ordered = sorted(counts, reverse=True)
    return sum(ordered[: -(-len(ordered) // part)]) / sum(ordered) if ordered else 0.0


def how_often(values: Iterable[Any]) -> dict[Any, int]:
    """Each value with how often it occurs, in order."""
    return dict(sorted(Counter(values).items()))
