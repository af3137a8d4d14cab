"""Kinds of negative captions: SugarCrepe's seven (BiVLC, Table 1); columns of their table, with scores too."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

import pyarrow as pa

from twinset.contracts.candidate import Candidate
from twinset.contracts.kinds.samples import TableRows
from twinset.contracts.kinds.text_pair import TEXT_SCORES
from twinset.generators.caption_scores.scorers.scorer import scorer_of


def kind_name(type: str, subtype: str) -> str:
    """Such as ``replace_obj``, as SugarCrepe's files are called; empty where the kind is not known."""
    return f"{type}_{subtype}" if type else ""


Kind = Literal["replace_obj", "replace_att", "replace_rel", "swap_obj", "swap_att", "add_obj", "add_att"]
#: The type (``replace``, ``swap`` or ``add``) and subtype of each, in the order of the papers' tables.
KINDS: dict[str, list[str]] = {kind: kind.split("_") for kind in get_args(Kind)}

#: Columns of a table of negative captions.
COLUMNS = pa.schema(
    [
        pa.field(name, pa.string(), nullable=False)
        for name in ("caption_id", "image_id", "image", "caption", "negative_caption", "type", "subtype")
    ]
)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class NegativeCandidate(Candidate):
    """A caption whose negative is to be written. negative_kind: name of its kind."""

    caption_id: str
    image_id: str
    image: str
    caption: str
    negative_kind: str

    @property
    def counted_as(self) -> str:
        return self.negative_kind

    def negative(self, text: str) -> TableRows:
        """The row of its negative caption."""
        row = {name: getattr(self, name) for name in ("caption_id", "image_id", "image", "caption")}
        type, subtype = KINDS[self.negative_kind]
        return TableRows(self.key, [{**row, "negative_caption": text, "type": type, "subtype": subtype}])


def columns_of(scores: Iterable[str]) -> tuple[str, ...]:
    """Columns of scores: those of every table, and after them those of other packages' scorers.

    scores: names of scores. Raises `UnknownKind` where no scorer here gives one.
    """
    brought = [column for score in scores for column in scorer_of(score)[1].columns()]
    return tuple(dict.fromkeys((*TEXT_SCORES, *brought)))


def scored_schema(numbers: Iterable[str]) -> pa.Schema:
    """Columns of a table of scored negative captions. numbers: columns of its scores."""
    return pa.schema([*COLUMNS, *(pa.field(name, pa.float64()) for name in numbers)])
