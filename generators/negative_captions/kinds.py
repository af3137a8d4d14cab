"""The seven kinds of negative captions (SugarCrepe; BiVLC, Table 1), and the columns of their table."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from manifests.candidate import Candidate


@dataclass(frozen=True, slots=True)
class NegativeKind:
    """What is done to a caption. type: ``replace``, ``swap`` or ``add``; subtype: ``obj``, ``att`` or ``rel``."""

    type: str
    subtype: str

    @property
    def name(self) -> str:
        """Such as ``replace_obj``, as SugarCrepe's files are called."""
        return f"{self.type}_{self.subtype}"


#: By name, in the order of the papers' tables.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class NegativeCaption(Candidate):
    """A caption and its negative, planned from a record or a table that has both.

    image: as the captions' source names it; may be empty. type, subtype: of the kind; empty where nobody tells.
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
        """As `Candidate.counted_as`: its kind."""
        return f"{self.type}_{self.subtype}" if self.type else ""

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
