"""Negative captions written for captions, as a table for later stages (BiVLC, section 5.1; SugarCrepe)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, get_args

from pydantic import Field, SerializeAsAny, model_validator

from twinset.generators.negative_captions.changes import CHANGE_REASONS
from twinset.generators.negative_captions.graph_changes import GRAPH_REASONS
from twinset.generators.negative_captions.instructions import ANSWER_REASONS
from twinset.generators.papers import BIVLC
from twinset.generators.scene_graphs.captions import CAPTION_REASONS
from twinset.generators.scene_graphs.source import ParsedCaptions
from twinset.manifests.doors import OfKind
from twinset.models.engines import EngineSettings, EngineSource
from twinset.models.language_models.settings import LANGUAGE_MODELS

Kind = Literal["replace_obj", "replace_att", "replace_rel", "swap_obj", "swap_att", "add_obj", "add_att"]


class Rules(EngineSettings):
    """Rules that change words of lists where spaCy's parse says that they stand as such words do.

    The lists: ``manifests/vocabularies/negatives.yaml``.
    """

    kind: Literal["rules"] = "rules"


class NegativeCaptions(ParsedCaptions, EngineSource):
    """One negative caption of each kind for every caption, written by rules or a language model.

    captions, pipeline, licence: as `ParsedCaptions`; the rules and `graph_check` use the pipeline. kinds: that are
    written, in this order. engine: what writes them. graph_check: whether what a language model replaces or adds must
    be one object, attribute or relation of the scene graph.
    """

    kind: Literal["negative-captions"]
    kinds: tuple[Kind, ...] = Field(default=get_args(Kind), min_length=1)
    engine: Annotated[SerializeAsAny[EngineSettings], OfKind(LANGUAGE_MODELS, {"rules": Rules})] = Rules()
    graph_check: bool = False

    generator = "twinset.generators.negative_captions.generator:generator_of"
    paper = BIVLC
    verb = "written for"
    reasons: ClassVar[Mapping[str, str]] = {
        **CAPTION_REASONS,
        **CHANGE_REASONS,
        **ANSWER_REASONS,
        **GRAPH_REASONS,
        "nothing-to-change": "the engine finds nothing in the caption that this kind could change",
    }

    @model_validator(mode="after")
    def _checks_answers(self) -> NegativeCaptions:
        if self.graph_check and isinstance(self.engine, Rules):
            raise ValueError("graph_check is for language models; rules change one thing of the parse, leave it out")
        return self

    @property
    def incidental(self) -> tuple[str, ...]:
        """As `PlacedSettings.incidental`; also what the engine does not use."""
        # Rules are what there was before other engines: what they wrote stays as it is.
        unused = ["engine"] if isinstance(self.engine, Rules) else [] if self.graph_check else ["pipeline"]
        # A table that was made before there was this check stays valid.
        unused += [] if self.graph_check else ["graph_check"]
        return tuple(dict.fromkeys((*super().incidental, *unused)))

    def check_parser(self, key: str) -> None:
        """As `ParsedCaptions.check_parser`; a language model does without, unless its answers are parsed."""
        if isinstance(self.engine, Rules) or self.graph_check:
            super().check_parser(key)
