"""Captions in one format, and prompts of images, planned from a table of negative captions (BiVLC, section 3.1)."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal, cast

import pyarrow as pa

from twinset.contracts.candidate import Candidate
from twinset.contracts.kinds.samples import TableRows
from twinset.contracts.licences.terms import TERMS, Terms
from twinset.contracts.source import StageName
from twinset.generators.negative_captions.changes import formatted
from twinset.generators.negative_captions.kinds import COLUMNS, NegativeCaption
from twinset.generators.papers import BIVLC
from twinset.shards.contracts import Source, StageGenerator

SUFFIX = ", high resolution, professional, 4k, highly detailed"


def prompt_of(negative_caption: str, suffix: str) -> str:
    """What a text-to-image model is asked for: the negative caption without full stops, and a suffix."""
    return negative_caption.replace(".", "") + suffix


class NegativePrompts(Source):
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

    generator = "twinset.generators.negative_captions.prompts:PromptGenerator"
    makes = "table"
    paper = BIVLC
    group = "caption"
    verb = "formatted from"
    reasons: ClassVar[Mapping[str, str]] = {}

    def how_made(self, reports: Mapping[str, Any]) -> str:
        added = f", and `{self.suffix.lstrip(', ')}` behind it" if self.suffix else ""
        return (
            "Captions got a capital and a full stop. The prompt of each negative caption is that caption as it was "
            f"written, without full stops{added}."
        )


class PromptGenerator(StageGenerator[NegativePrompts]):
    """Plans a row a negative caption, with the identity that it has in the earlier table."""

    version = 2
    candidate = NegativeCaption
    columns = pa.schema([*COLUMNS, pa.field("prompt", pa.string(), nullable=False)])

    def plan(self) -> Iterator[NegativeCaption]:
        """Rows in the order of the earlier table, which is read a row group at a time."""
        for batch in self.earlier.batches(["identity", *TERMS, *COLUMNS.names]):
            for row in batch.to_pylist():
                shows = (Terms.taken(row),)
                yield NegativeCaption(**self.identified(*json.loads(row.pop("identity")), shows=shows), **row)

    def make(self, candidates: Sequence[Candidate]) -> Iterator[TableRows]:
        for one in cast(Sequence[NegativeCaption], candidates):
            row = one.row()
            captions = {name: formatted(row[name]) for name in ("caption", "negative_caption")}
            yield TableRows(
                one.key, [{**row, **captions, "prompt": prompt_of(one.negative_caption, self.source.suffix)}]
            )
