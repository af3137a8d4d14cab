"""What cards and sheets must know of a kind of samples, and of the funnel of a finished subset, in numbers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import yaml

from twinset.cards.sheet import Block
from twinset.contracts.kinds.kind import SampleKind, Stored


@dataclass(frozen=True, slots=True)
class CardKind:
    """How samples of a kind are described. Their card is the template ``NAME.md.j2``, NAME that of the kind.

    block: a sample as it is shown. numbers: what the template shows besides `cards.kinds.statistics`, counted in the
    index and in the JSON of samples that were looked at. shown: the image whose size is counted.

    From ``kinds.yaml``: what: their name, and what a sample is. tasks, tags: for Hugging Face. columns: what columns of
    the index hold. legend: sentences below the sheet's title, each by the label of the cells that it is about, "" for
    one that always stands there. panels: which numbers are plotted, by title.
    """

    sample: SampleKind
    block: Callable[[Stored[Any]], Block]
    numbers: Callable[[pl.DataFrame, Sequence[Any]], dict[str, Any]]
    shown: Callable[[Any], Any]
    what: Sequence[str]
    tasks: Sequence[str]
    tags: Sequence[str]
    columns: Mapping[str, str]
    legend: Mapping[str, str]
    panels: Mapping[str, str]

    @property
    def noun(self) -> str:
        """One sample in words."""
        return self.sample.name.replace("-", " ")


def said_of(sample: SampleKind) -> dict[str, Any]:
    """What ``kinds.yaml`` says of a kind."""
    facts: dict[str, Any] = yaml.safe_load((Path(__file__).parent / "kinds.yaml").read_text("utf-8"))[sample.name]
    return facts


@dataclass(frozen=True, slots=True)
class IndexSummary:
    """The funnel of a subset: planned = kept + rejected.

    by_filter: rejected ones by the filter (``generator`` where nothing was made), then reason. kept_by_split: samples a
    split. tars: samples a tar, by path below the subset. bytes: of all tars. images: roles that some sample has a
    picture for. terms: by licence and credit.
    """

    planned: int
    kept: int
    by_filter: Mapping[str, Mapping[str, int]]
    kept_by_split: Mapping[str, int]
    tars: Mapping[str, int]
    bytes: int
    images: tuple[str, ...] = ()
    terms: Mapping[tuple[str, str], int] = field(default_factory=dict)
