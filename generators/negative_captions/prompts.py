"""Captions in one format, and prompts of images, planned from a table of negative captions (BiVLC, section 3.1)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from twinset.contracts.source import StageName
from twinset.generators.negative_captions.changes import formatted
from twinset.generators.negative_captions.kinds import COLUMNS
from twinset.generators.papers import BIVLC
from twinset.shards.contracts import TableStage

if TYPE_CHECKING:
    import polars as pl

SUFFIX = ", high resolution, professional, 4k, highly detailed"


class NegativePrompts(TableStage):
    """Captions and negatives in one format, and a prompt of each negative for a text-to-image model.

    Captions get a capital and a full stop (`generators.negative_captions.changes.formatted`). A prompt is the negative
    as it was written, without full stops, and the suffix.

    negatives: the stage of negative captions, or the folder of a finished one. suffix: of prompts; by default that of
    the released script. licence: of the captions.
    """

    kind: Literal["negative-prompts"]
    negatives: StageName
    suffix: str = SUFFIX
    licence: str = ""

    paper = BIVLC
    group = "caption"
    verb = "formatted from"
    card_template = Path(__file__).with_name("prompts.md.j2")

    version = 3
    libraries = ("polars",)
    row_schema = pa.schema([*COLUMNS, pa.field("prompt", pa.string(), nullable=False)])

    def transform(self, *tables: pl.LazyFrame) -> pl.LazyFrame:
        """The rows of the earlier table, in its order."""
        import polars as pl

        prompt = pl.col("negative_caption").str.replace_all(".", "", literal=True) + self.suffix
        captions = pl.col("caption", "negative_caption").map_elements(formatted, return_dtype=pl.String)
        return tables[0].with_columns(captions, prompt=prompt).select(pl.exclude("group"))
