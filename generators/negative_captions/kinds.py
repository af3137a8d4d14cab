"""The seven kinds of negative captions (SugarCrepe; BiVLC, Table 1), and the columns of their table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from shards.kinds.samples import TableRows


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

#: Columns of a table of negative captions. image: as the captions' source names it; may be empty.
COLUMNS = pa.schema(
    [
        pa.field(name, pa.string(), nullable=False)
        for name in ("caption_id", "image_id", "image", "caption", "negative_caption", "type", "subtype")
    ]
)


def negative_row(key: str, **texts: Any) -> TableRows:
    """The row of one negative caption. texts: a value for each of `COLUMNS`."""
    return TableRows(key, [{name: texts[name] for name in COLUMNS.names}])
