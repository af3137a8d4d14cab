"""Negative captions written for captions, as a table for later stages (BiVLC, section 5.1; SugarCrepe)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, cast

from pydantic import Field, SerializeAsAny, model_validator

from twinset.contracts.candidate import Candidate
from twinset.contracts.canonical import generator_for, sample_key
from twinset.contracts.doors import OfKind
from twinset.contracts.kinds.samples import Rejected, TableRows
from twinset.contracts.parts import Isolation
from twinset.contracts.references import reasons_beside
from twinset.generators.captions.tables import CAPTION_REASONS
from twinset.generators.negative_captions.asking import PromptedSource
from twinset.generators.negative_captions.changes import problem
from twinset.generators.negative_captions.kinds import COLUMNS, KINDS, NEGATED, NegativeCandidate
from twinset.generators.negative_captions.rules.engine import negative
from twinset.generators.negative_captions.rules.vocabulary import vocabulary
from twinset.generators.papers import BIVLC
from twinset.generators.scene_graphs.relations import BATCH, LIBRARIES
from twinset.generators.scene_graphs.source import ParsedCaptions
from twinset.models.engines import EngineSettings
from twinset.models.language_models.settings import LANGUAGE_MODELS, LanguageModelSettings
from twinset.models.spacy_pipelines import find_pipeline

ChangedKind = Literal["replace_obj", "replace_att", "replace_rel", "swap_obj", "swap_att", "add_obj", "add_att"]
Kind = Literal[ChangedKind, "negate_obj"]
#: Kinds that rules write well enough: of what they swap and add a reader found 8 of 56 right.
REPLACED: tuple[Kind, ...] = ("replace_obj", "replace_att", "replace_rel")


class Rules(EngineSettings):
    """Rules that change words of lists where spaCy's parse says that they stand as such words do.

    The lists: ``manifests/vocabularies/negatives.yaml``.
    """

    kind: Literal["rules"] = "rules"


class NegativeCaptions(ParsedCaptions, PromptedSource):
    """Negative captions of every caption, one of each kind that its words allow.

    captions, pipeline, licence: as `ParsedCaptions`; the rules use the pipeline. kinds: that are written, in this
    order; language models write all seven by default, and they alone ``negate_obj``. engine: what writes them.
    prompts: as `PromptedSource`.
    """

    kind: Literal["negative-captions"]
    kinds: tuple[Kind, ...] = Field(default=REPLACED, min_length=1)
    engine: Annotated[SerializeAsAny[EngineSettings], OfKind(LANGUAGE_MODELS, {"rules": Rules})] = Rules()

    paper = BIVLC
    verb = "written for"
    reasons: ClassVar[Mapping[str, str]] = {
        **CAPTION_REASONS,
        **PromptedSource.reasons,
        **reasons_beside(__file__, "changes"),
    }

    @model_validator(mode="before")
    @classmethod
    def _language_models_write_all_seven(cls, given: Any) -> Any:
        engine = given.get("engine") if isinstance(given, dict) else None
        kind = engine.get("kind") if isinstance(engine, dict) else getattr(engine, "kind", None)
        return {"kinds": tuple(KINDS), **given} if kind not in (None, "rules") else given

    @model_validator(mode="after")
    def _checks_answers(self) -> NegativeCaptions:
        if self.prompts is not None and isinstance(self.engine, Rules):
            raise ValueError("prompts are for language models; name one as engine, or leave prompts out")
        if NEGATED.name in self.kinds and isinstance(self.engine, Rules):
            raise ValueError(f"kinds: {NEGATED.name} is for language models; name one as engine, or leave it out")
        return self

    def how_made(self, reports: Mapping[str, Any]) -> str:
        kinds = ", ".join(kind.replace("_", " ") for kind in self.kinds)
        if isinstance(self.engine, Rules):
            who = (
                "twinset's rules, which change words by its own lists (`manifests/vocabularies/negatives.yaml` in its "
                "repository) where the words stand as such words do, which the spaCy pipeline "
                f"`{self.pipeline}` finds out by parsing"
            )
        else:
            who = f"a language model (engine `{self.engine.kind}`)"
        return f"One negative caption of each kind ({kinds}) was asked for every caption. They were written by {who}."

    @property
    def incidental(self) -> tuple[str, ...]:
        """As `PlacedSettings.incidental`; also what the engine does not use."""
        # Rules are what there was before other engines: what they wrote stays as it is.
        return tuple(dict.fromkeys((*super().incidental, "engine" if isinstance(self.engine, Rules) else "pipeline")))

    @property
    def asked_for(self) -> Sequence[str]:
        return self.kinds

    def check_parser(self, key: str) -> None:
        """As `ParsedCaptions.check_parser`; a language model does without."""
        if isinstance(self.engine, Rules):
            super().check_parser(key)

    version = 4
    candidate = NegativeCandidate
    row_schema = COLUMNS

    @property
    def by_rules(self) -> bool:
        """Whether rules write, instead of a language model."""
        return isinstance(self.engine, Rules)

    @property
    def isolation(self) -> Isolation:  # type: ignore[override]  # spaCy holds the interpreter's lock, torch its threads
        local = isinstance(self.engine, LanguageModelSettings) and self.engine.local
        return "process" if self.by_rules or local else "thread"

    @property
    def libraries(self) -> tuple[str, ...]:  # type: ignore[override]
        return (*LIBRARIES, "inflect") if self.by_rules else ("numpy",)

    def runs_on(self) -> str | None:
        return "cpu" if self.by_rules else PromptedSource.runs_on(self)

    def weights(self) -> Mapping[str, str]:
        if self.by_rules:
            return {"pipeline": find_pipeline(self.pipeline).digest, "vocabulary": vocabulary().digest}
        return PromptedSource.weights(self)

    def batch_size(self) -> int:
        return BATCH if self.by_rules else PromptedSource.batch_size(self)

    @property
    def threads(self) -> int:
        """Of the engine's network."""
        return 1 if self.by_rules else int(self.worker.threads)

    def plan(self) -> Iterator[NegativeCandidate]:
        """The kinds of one caption after the other; those of a caption are a group."""
        for read in self.read_captions():
            group = sample_key(self.stage.name, read.caption_id)
            for kind in self.kinds:
                yield NegativeCandidate(
                    **self.identified(read.caption_id, kind, group=group, terms=read.terms),
                    caption_id=read.caption_id,
                    image_id=read.image_id,
                    image=read.image,
                    caption=read.caption,
                    negative_kind=kind,
                )

    def make(self, candidates: Sequence[Candidate]) -> Iterator[TableRows | Rejected]:
        """A row each, or why there is none.

        Raises `WrongUse` when the pipeline, `BuildFailed` when the model cannot be used; else as `Source.make`.
        """
        asked = cast(Sequence[NegativeCandidate], candidates)
        if self.by_rules:
            yield from self._written_by_rules(asked)
            return
        for candidate, made in zip(asked, self.written(asked), strict=True):
            if made.reason:
                yield Rejected(candidate.key, made.reason, made.detail)
            else:
                yield candidate.negative(made.negative)

    def _written_by_rules(self, asked: Sequence[NegativeCandidate]) -> Iterator[TableRows | Rejected]:
        texts = list(dict.fromkeys(candidate.caption for candidate in asked))
        parser, words = self.parser, vocabulary()
        with parser.nlp.memory_zone():
            docs = dict(zip(texts, parser.docs(texts), strict=True))
            written = [
                negative(
                    candidate.negative_kind,
                    docs[candidate.caption],
                    words,
                    generator_for(self.stage.seed, self.stage.name, candidate.key),
                    candidate.caption,
                )
                for candidate in asked
            ]
        for candidate, text in zip(asked, written, strict=True):
            if text is None:
                yield Rejected(candidate.key, "nothing-to-change")
            elif reason := problem(KINDS[candidate.negative_kind].type, candidate.caption, text):
                yield Rejected(candidate.key, reason, text)
            else:
                yield candidate.negative(text)
