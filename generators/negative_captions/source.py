"""Negative captions written for captions, as a table for later stages (BiVLC, section 5.1; SugarCrepe)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Literal, get_args

from pydantic import Field

from generators.negative_captions.changes import CHANGE_REASONS
from generators.papers import BIVLC
from generators.scene_graphs.captions import CAPTION_REASONS
from generators.scene_graphs.source import ParsedCaptions
from shards.contracts import Context

if TYPE_CHECKING:
    from generators.negative_captions.generator import NegativeGenerator

Kind = Literal["replace_obj", "replace_att", "replace_rel", "swap_obj", "swap_att", "add_obj", "add_att"]


class NegativeCaptions(ParsedCaptions):
    """One negative caption of each kind for every caption, written by rules.

    The rules change words of lists (``manifests/vocabularies/negatives.yaml``) where spaCy's parse says that they stand
    as such words do. captions, pipeline, licence: as `ParsedCaptions`. kinds: that are written, in this order.
    """

    kind: Literal["negative-captions"]
    kinds: tuple[Kind, ...] = Field(default=get_args(Kind), min_length=1)

    paper = BIVLC
    verb = "written for"
    reasons: ClassVar[Mapping[str, str]] = {
        **CAPTION_REASONS,
        **CHANGE_REASONS,
        "nothing-to-change": "the rules find no word in the caption that this kind could change",
    }

    def open(self, context: Context) -> NegativeGenerator:
        """As `Source.open`."""
        from generators.negative_captions.generator import NegativeGenerator

        return NegativeGenerator(self, context)
