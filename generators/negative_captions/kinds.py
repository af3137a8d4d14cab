"""Kinds of negative captions: SugarCrepe's seven (BiVLC, Table 1) and NegBench's; columns of their table; scores."""

from collections.abc import Iterable
from dataclasses import dataclass, field, fields, make_dataclass
from functools import cache
from typing import TypeVar, cast

import pyarrow as pa

from twinset.contracts.candidate import Candidate
from twinset.contracts.kinds.samples import TableRows
from twinset.contracts.kinds.text_pair import TEXT_SCORES
from twinset.generators.caption_scores.scorers.scorer import scorer_of


@dataclass(frozen=True, slots=True)
class NegativeKind:
    """What is done to a caption. type: ``replace``, ``swap``, ``add`` or ``negate``; subtype: ``obj``, ``att`` …"""

    type: str
    subtype: str

    @property
    def name(self) -> str:
        """Such as ``replace_obj``, as SugarCrepe's files are called."""
        return f"{self.type}_{self.subtype}"


#: The seven by name, in the order of the papers' tables.
KINDS = {
    kind.name: kind
    for kind in (
        NegativeKind("replace", "obj"),
        NegativeKind("replace", "att"),
        NegativeKind("replace", "rel"),
        NegativeKind("swap", "obj"),
        NegativeKind("swap", "att"),
        NegativeKind("add", "obj"),
        NegativeKind("add", "att"),
    )
}

#: A caption that denies something that its caption names (NegBench, arXiv 2501.09425); language models alone write it.
NEGATED = NegativeKind("negate", "obj")
EVERY_KIND = {**KINDS, NEGATED.name: NEGATED}


def kind_name(type: str, subtype: str) -> str:
    """Such as ``replace_obj``; empty where the kind is not known."""
    return f"{type}_{subtype}" if type else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NegativeCaption(Candidate):
    """A caption and its negative, planned from a record or a table that has both.

    image: as the captions' source names it; may be empty. type, subtype: of the kind; empty where they are not known.
    """

    caption_id: str
    image_id: str
    image: str
    caption: str
    negative_caption: str
    type: str
    subtype: str

    @property
    def counted_as(self) -> str:
        return kind_name(self.type, self.subtype)

    def row(self) -> dict[str, str]:
        """Its row in a table of `COLUMNS`."""
        return {name: getattr(self, name) for name in COLUMNS.names}


#: Columns of a table of negative captions.
COLUMNS = pa.schema(
    [
        pa.field(name, pa.string(), nullable=False)
        for name in ("caption_id", "image_id", "image", "caption", "negative_caption", "type", "subtype")
    ]
)

#: How many captions a row's image has: where it is the only one, no other checks that the negative is false.
CAPTIONS = "image_captions"


@dataclass(frozen=True, slots=True, kw_only=True)
class NegativeCandidate(Candidate):
    """A caption whose negative is to be written. image_captions: of its image. negative_kind: name of its kind."""

    caption_id: str
    image_id: str
    image: str
    caption: str
    image_captions: int
    negative_kind: str

    @property
    def counted_as(self) -> str:
        return self.negative_kind

    def negative(self, text: str) -> TableRows:
        """The row of its negative caption."""
        kind = EVERY_KIND[self.negative_kind]
        row = {name: getattr(self, name) for name in ("caption_id", "image_id", "image", "caption")}
        told = {"negative_caption": text, "type": kind.type, "subtype": kind.subtype}
        return TableRows(self.key, [{**row, **told, CAPTIONS: self.image_captions}])


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
