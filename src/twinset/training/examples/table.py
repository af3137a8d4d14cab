"""Examples as an Arrow table: one row each, with its words and the place of every image."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from twinset.shards.storage.store import Store

SHORT_DIGITS = 16  # hexadecimal digits of an image's sha256 that are kept
#: Where the bytes of an image lie. tar: below the root of its dataset. sha256: its start; "" where nobody hashed it.
IMAGE = pa.struct([("tar", pa.string()), ("offset", pa.int64()), ("size", pa.int64()), ("sha256", pa.string())])


class Origin(Protocol):
    """Where examples come from, and what vouches for them."""

    @property
    def store(self) -> Store: ...

    @property
    def title(self) -> str:
        """Dataset and subset, for messages."""

    def digest(self) -> str:
        """sha256 over what vouches for tars and rows, as they lie there now."""

    def facts(self) -> dict[str, Any]:
        """JSON for a model card: place, subset, split, and each tar with its sha256."""


@dataclass(frozen=True, slots=True)
class Dataset:
    """A dataset of a mixture.

    table: its examples: strings ``key`` and ``group``, a string for each text, an `IMAGE` for each image. digest: as
    it was when it was opened.
    """

    origin: Origin
    table: pa.Table
    digest: str


def image_column(
    tars: Sequence[str], offsets: Sequence[int], sizes: Sequence[int], sha256s: Sequence[str]
) -> pa.StructArray:
    """Places of n images as a column of `IMAGE`; of a size of 0: null."""
    starts = pc.utf8_slice_codeunits(pa.array(sha256s, pa.string()), 0, SHORT_DIGITS)
    stored = pa.array(sizes, pa.int64())
    fields = [pa.array(tars, pa.string()), pa.array(offsets, pa.int64()), stored, starts]
    return pa.StructArray.from_arrays(fields, fields=list(IMAGE), mask=pc.equal(stored, 0))
