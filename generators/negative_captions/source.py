"""Negative captions written for captions, as a table for later stages (BiVLC, section 5.1; SugarCrepe)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, cast

from pydantic import Field, SerializeAsAny, model_validator

from twinset.generators.captions.tables import CAPTION_REASONS
from twinset.generators.negative_captions.asking import PromptedGenerator, PromptedSource, rejected
from twinset.generators.negative_captions.changes import problem
from twinset.generators.negative_captions.graph_changes import graph_of, things_changed
from twinset.generators.negative_captions.instructions import Judged
from twinset.generators.negative_captions.kinds import COLUMNS, EVERY_KIND, KINDS, NEGATED, NegativeCandidate
from twinset.generators.negative_captions.rules.engine import negative
from twinset.generators.negative_captions.rules.vocabulary import vocabulary
from twinset.generators.papers import BIVLC
from twinset.generators.scene_graphs.relations import LIBRARIES
from twinset.generators.scene_graphs.source import CaptionGenerator, ParsedCaptionGenerator, ParsedCaptions
from twinset.manifests.candidate import Candidate
from twinset.manifests.canonical import generator_for, sample_key
from twinset.manifests.doors import OfKind
from twinset.manifests.references import reasons_beside
from twinset.models.engines import EngineSettings
from twinset.models.language_models.settings import LANGUAGE_MODELS, LanguageModelSettings
from twinset.shards.contracts import Context
from twinset.shards.kinds.samples import Rejected, TableRows

ChangedKind = Literal["replace_obj", "replace_att", "replace_rel", "swap_obj", "swap_att", "add_obj", "add_att"]
Kind = Literal[ChangedKind, "negate_obj"]


class Rules(EngineSettings):
    """Rules that change words of lists where spaCy's parse says that they stand as such words do.

    The lists: ``manifests/vocabularies/negatives.yaml``.
    """

    kind: Literal["rules"] = "rules"


class NegativeCaptions(ParsedCaptions, PromptedSource):
    """Negative captions of every caption, one of each kind that its words allow.

    captions, pipeline, licence: as `ParsedCaptions`; the rules and `graph_check` use the pipeline. kinds: that are
    written, in this order; ``negate_obj`` by language models alone. engine: what writes them. graph_check: whether what
    a language model replaces or adds must be one object, attribute or relation of the scene graph. prompts, photos: as
    `PromptedSource`.
    """

    kind: Literal["negative-captions"]
    kinds: tuple[Kind, ...] = Field(default=cast(Any, tuple(KINDS)), min_length=1)
    engine: Annotated[SerializeAsAny[EngineSettings], OfKind(LANGUAGE_MODELS, {"rules": Rules})] = Rules()
    graph_check: bool = False

    generator = "twinset.generators.negative_captions.source:generator_of"
    paper = BIVLC
    verb = "written for"
    reasons: ClassVar[Mapping[str, str]] = {
        **CAPTION_REASONS,
        **PromptedSource.reasons,
        **reasons_beside(__file__, "changes", "graphs"),
    }

    @model_validator(mode="after")
    def _checks_answers(self) -> NegativeCaptions:
        if self.prompts is not None and isinstance(self.engine, Rules):
            raise ValueError("prompts are for language models; name one as engine, or leave prompts out")
        if NEGATED.name in self.kinds and isinstance(self.engine, Rules):
            raise ValueError(f"kinds: {NEGATED.name} is for language models; name one as engine, or leave it out")
        if self.graph_check and isinstance(self.engine, Rules):
            raise ValueError("graph_check is for language models; rules change one thing of the parse, leave it out")
        return self

    def how_made(self, reports: Mapping[str, Any]) -> str:
        kinds = ", ".join(kind.replace("_", " ") for kind in self.kinds)
        if isinstance(self.engine, Rules):
            who = (
                "twinset's rules, which replace, exchange or add words of its own lists (`manifests/vocabularies/"
                "negatives.yaml` in its repository) where the words stand as such words do, which the spaCy pipeline "
                f"`{self.pipeline}` finds out by parsing"
            )
        else:
            who = f"a language model (engine `{self.engine.kind}`)"
        return f"One negative caption of each kind ({kinds}) was asked for every caption. They were written by {who}."

    @property
    def incidental(self) -> tuple[str, ...]:
        """As `PlacedSettings.incidental`; also what the engine does not use."""
        # Rules are what there was before other engines: what they wrote stays as it is.
        unused = ["engine"] if isinstance(self.engine, Rules) else [] if self.graph_check else ["pipeline"]
        # A table that was made before there was this check stays valid.
        unused += [] if self.graph_check else ["graph_check"]
        return tuple(dict.fromkeys((*super().incidental, *unused)))

    @property
    def asked_for(self) -> Sequence[str]:
        return self.kinds

    def check_parser(self, key: str) -> None:
        """As `ParsedCaptions.check_parser`; a language model does without, unless its answers are parsed."""
        if isinstance(self.engine, Rules) or self.graph_check:
            super().check_parser(key)


class NegativePlanner(CaptionGenerator[NegativeCaptions]):
    """One negative caption a candidate; those of a caption are a group."""

    candidate = NegativeCandidate
    columns = COLUMNS

    def plan(self) -> Iterator[NegativeCandidate]:
        """The kinds of one caption after the other."""
        for read in self.captions():
            group = sample_key(self.name, read.caption_id)
            for kind in self.source.kinds:
                yield NegativeCandidate(
                    **self.identified(read.caption_id, kind, group=group, terms=read.terms),
                    caption_id=read.caption_id,
                    image_id=read.image_id,
                    image=read.image,
                    caption=read.caption,
                    negative_kind=kind,
                )


class NegativeGenerator(NegativePlanner, ParsedCaptionGenerator[NegativeCaptions]):
    """Rules write."""

    version = 3
    libraries = (*LIBRARIES, "inflect")

    def weights(self) -> Mapping[str, str]:
        return {**super().weights(), "vocabulary": vocabulary().digest}

    def make(self, candidates: Sequence[Candidate]) -> Iterator[TableRows | Rejected]:
        """A row each, or why there is none. Raises `WrongUse` when the pipeline cannot be used."""
        asked = cast(Sequence[NegativeCandidate], candidates)
        texts = list(dict.fromkeys(one.caption for one in asked))
        parser, words = self.parser, vocabulary()
        with parser.nlp.memory_zone():
            docs = dict(zip(texts, parser.docs(texts), strict=True))
            numbers = [generator_for(self.seed, self.name, one.key) for one in asked]
            written = [
                negative(one.negative_kind, docs[one.caption], words, random, one.caption)
                for one, random in zip(asked, numbers, strict=True)
            ]
        for one, text in zip(asked, written, strict=True):
            if text is None:
                yield Rejected(one.key, "nothing-to-change")
            elif reason := problem(KINDS[one.negative_kind].type, one.caption, text):
                yield Rejected(one.key, reason, text)
            else:
                yield one.negative(text)


def generator_of(source: NegativeCaptions, context: Context) -> NegativeGenerator | WrittenGenerator:
    """The generator for the engine that the settings name."""
    if isinstance(source.engine, Rules):
        return NegativeGenerator(source, context)
    if source.graph_check:
        return CheckedGenerator(source, context)
    local = isinstance(source.engine, LanguageModelSettings) and source.engine.local
    return (LocallyWrittenGenerator if local else WrittenGenerator)(source, context)


class WrittenGenerator(NegativePlanner, PromptedGenerator[NegativeCaptions]):
    """A language model writes, one request a candidate."""

    version = 2
    libraries: ClassVar[tuple[str, ...]] = ("numpy",)

    def make(self, candidates: Sequence[Candidate]) -> Iterator[TableRows | Rejected]:
        """A row each, or why there is none.

        Raises `BuildFailed` where the model cannot be used; `OutOfMemory` as `Generator.make`.
        """
        asked = cast(Sequence[NegativeCandidate], candidates)
        written = self.written([one.negative_kind for one in asked], asked, [one.key for one in asked])
        for one, made in zip(asked, written, strict=True):
            if isinstance(made, Judged) and not made.reason and (reason := self.objection(one, made.negative)):
                made = Judged(reason=reason, detail=made.negative)
            yield rejected(one.key, made) or one.negative(cast(Judged, made).negative)

    def objection(self, one: NegativeCandidate, negative: str) -> str:
        """Why a negative caption that counting words accepts is not taken after all; empty where it is."""
        return ""


class LocallyWrittenGenerator(WrittenGenerator):
    """With a model in this process."""

    isolation = "process"  # torch's number of threads is its process's


class CheckedGenerator(WrittenGenerator, ParsedCaptionGenerator[NegativeCaptions]):
    """Parses what is written: more than one thing of the scene graph must not change."""

    version = 2
    libraries = LIBRARIES

    def device(self) -> str:
        """The model's; the parser is a network on the CPU."""
        return super().device() or "cpu"

    def weights(self) -> Mapping[str, str]:
        return {**super().weights(), **PromptedGenerator.weights(self)}

    def objection(self, one: NegativeCandidate, negative: str) -> str:
        with self.parser.nlp.memory_zone():
            caption, other = (graph_of(*one) for one in self.parser.graphs([one.caption, negative]))
            return "two-things-changed" if things_changed(EVERY_KIND[one.negative_kind], caption, other) > 1 else ""
