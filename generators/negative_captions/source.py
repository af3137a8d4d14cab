"""Negative captions written for captions, as a table for later stages (BiVLC, section 5.1; SugarCrepe)."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, groupby
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, cast, get_args

import pyarrow as pa
from pydantic import Field, PrivateAttr, SerializeAsAny, model_validator

from twinset.contracts.candidate import Candidate
from twinset.contracts.canonical import canonical_json, digest, generator_for, sample_key, sha256_of_file
from twinset.contracts.doors import OfKind
from twinset.contracts.errors import WrongUse, naming
from twinset.contracts.kinds.samples import Rejected, TableRows
from twinset.contracts.locations import Location
from twinset.contracts.parts import Isolation
from twinset.contracts.plan import Ids
from twinset.contracts.recipe.strict_yaml import read_words
from twinset.contracts.references import reasons_beside
from twinset.contracts.source import Need, Place
from twinset.generators.captions.tables import CAPTION_REASONS, Caption
from twinset.generators.negative_captions.asking import FILE, SCHEMA, Prompts, judged
from twinset.generators.negative_captions.changes import problem
from twinset.generators.negative_captions.exchange.choice import Exchange, balanced, said_of
from twinset.generators.negative_captions.exchange.counts import COUNTS, counts
from twinset.generators.negative_captions.exchange.sites import Reading, reading
from twinset.generators.negative_captions.exchange.vocabulary import vocabulary
from twinset.generators.negative_captions.kinds import CAPTIONS, COLUMNS, KINDS, Kind, NegativeCandidate
from twinset.generators.negative_captions.wording import Edit, edited
from twinset.generators.papers import BIVLC
from twinset.generators.scene_graphs.relations import BATCH, LIBRARIES, places_in
from twinset.generators.scene_graphs.source import ParsedCaptions
from twinset.models.engines import EngineSettings, EngineSource
from twinset.models.language_models.answers import Request
from twinset.models.language_models.settings import LANGUAGE_MODELS, LanguageModelSettings
from twinset.models.spacy_pipelines import find_pipeline

SAMPLE = 10_000  # captions that the exchange is balanced on
ALONE = "alone.json"  # how many captions are the only ones of their image


class Exchanged(EngineSettings):
    """Exchanges words of captions as often as captions have them (`generators.negative_captions.exchange`)."""

    kind: Literal["exchange"] = "exchange"


class NegativeCaptions(ParsedCaptions, EngineSource):
    """Negative captions of every caption, one of each kind that its words allow.

    captions, pipeline, licence: as `ParsedCaptions`; the exchange uses the pipeline. kinds: that are written, in this
    order. engine: what writes them: the exchange of words, which needs no model, or a language model.
    least_captions: images with fewer are left out, since no other caption of the image checks that a negative is false
    of it. prompts: YAML file of what a language model is asked, in the form of
    ``manifests/vocabularies/negative_prompts.yaml``, which is the default.
    """

    kind: Literal["negative-captions"]
    kinds: tuple[Kind, ...] = Field(default=get_args(Kind), min_length=1)
    engine: Annotated[SerializeAsAny[EngineSettings], OfKind(LANGUAGE_MODELS, {"exchange": Exchanged})] = Exchanged()
    least_captions: int = Field(default=1, ge=1)
    prompts: Annotated[Location, Place("file", "annotations")] | None = None
    _alone: int = PrivateAttr(0)

    paper = BIVLC
    verb = "written for"
    reports = (ALONE,)
    reasons: ClassVar[Mapping[str, str]] = {
        **CAPTION_REASONS,
        **reasons_beside(__file__, "answers", "engines", "changes", "photos"),
    }

    @model_validator(mode="after")
    def _prompts_are_used(self) -> NegativeCaptions:
        if self.prompts is not None and self.exchanges:
            raise ValueError("prompts are for language models; name one as engine, or leave prompts out")
        return self

    def how_made(self, reports: Mapping[str, Any]) -> str:
        kinds = ", ".join(kind.replace("_", " ") for kind in self.kinds)
        who = f"a language model (engine `{self.engine.kind}`)"
        if self.exchanges:
            who = (
                "twinset's exchange of words, in which captions lose each word about as often as they get it; the "
                f"spaCy pipeline `{self.pipeline}` tells where a word can stand"
            )
        text = f"One negative caption of each kind ({kinds}) was asked for every caption, of {who}."
        if alone := reports.get(ALONE):
            text += f" {alone:,} captions are the only ones of their image: no other checks their negatives."
        return text

    @property
    def incidental(self) -> tuple[str, ...]:
        """As `PlacedSettings.incidental`; also the pipeline, where the engine does not use it."""
        return super().incidental if self.exchanges else tuple(dict.fromkeys((*super().incidental, "pipeline")))

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        super().check_inputs(key, needs)
        if self.prompts is not None and "annotations" in needs:
            with naming(f"{key}.prompts"):
                self.instructions  # noqa: B018 - it is read

    def check_parser(self, key: str) -> None:
        """As `ParsedCaptions.check_parser`; a language model does without."""
        if self.exchanges:
            super().check_parser(key)

    version = 5
    candidate = NegativeCandidate
    row_schema = pa.schema([*COLUMNS, pa.field(CAPTIONS, pa.int64(), nullable=False)])

    @property
    def exchanges(self) -> bool:
        """Whether words are exchanged, instead of a language model asked."""
        return isinstance(self.engine, Exchanged)

    @property
    def isolation(self) -> Isolation:  # type: ignore[override]  # spaCy holds the interpreter's lock, torch its threads
        local = isinstance(self.engine, LanguageModelSettings) and self.engine.local
        return "process" if self.exchanges or local else "thread"

    @property
    def libraries(self) -> tuple[str, ...]:  # type: ignore[override]
        return (*LIBRARIES, "inflect") if self.exchanges else ("numpy",)

    def runs_on(self) -> str | None:
        return "cpu" if self.exchanges else EngineSource.runs_on(self)

    def weights(self) -> Mapping[str, str]:
        if not self.exchanges:
            return {**EngineSource.weights(self), "prompts": sha256_of_file(Path(self.prompts or FILE))[0]}
        return {
            "pipeline": find_pipeline(self.pipeline).digest,
            "vocabulary": vocabulary().digest,
            "counts": sha256_of_file(COUNTS)[0],
            "sample": digest(self._sample),
        }

    def batch_size(self) -> int:
        return BATCH if self.exchanges else EngineSource.batch_size(self)

    @property
    def threads(self) -> int:
        return 1 if self.exchanges else int(self.worker.threads)

    def report_files(self) -> Mapping[str, bytes]:
        return {ALONE: canonical_json(self._alone)}

    def plan(self) -> Iterator[NegativeCandidate]:
        """The kinds of one caption after the other; those of all captions of an image are a group."""
        self._alone = 0
        for image_id, captions in self._photos(self.read_captions()):
            group = sample_key(self.stage.name, image_id)
            self._alone += len(captions) == 1
            for read in captions:
                if len(captions) < self.least_captions:
                    self.excluded.add("few-captions", read.place)
                    continue
                for kind in self.kinds:
                    yield NegativeCandidate(
                        **self.identified(read.caption_id, kind, group=group, terms=read.terms),
                        caption_id=read.caption_id,
                        image_id=read.image_id,
                        image=read.image,
                        caption=read.caption,
                        image_captions=len(captions),
                        negative_kind=kind,
                    )

    def _photos(self, captions: Iterator[Caption]) -> Iterator[tuple[str, list[Caption]]]:
        """Images with their captions, in the order of the files; those whose captions are scattered there come last.

        These alone are held in memory.
        """
        image_of = attrgetter("image_id")
        met = Ids(image for image, _ in groupby(self._sound(), image_of))
        scattered, apart = met.suspects(), dict[str, list[Caption]]()
        for image, of_image in groupby(captions, image_of):
            if image in scattered:
                apart.setdefault(image, []).extend(of_image)
            else:
                yield image, list(of_image)
        yield from apart.items()

    def _sound(self) -> Iterator[Caption]:
        return (read for read in self._captions.read() if isinstance(read, Caption))

    def make(self, candidates: Sequence[Candidate]) -> Iterator[TableRows | Rejected]:
        """A row each, or why there is none.

        Raises `WrongUse` when the pipeline, `BuildFailed` when the model cannot be used; else as `Source.make`.
        """
        asked = cast(Sequence[NegativeCandidate], candidates)
        yield from self._exchanged(asked) if self.exchanges else self._answered(asked)

    def _answered(self, asked: Sequence[NegativeCandidate]) -> Iterator[TableRows | Rejected]:
        """Negatives by a language model, one request a caption and kind."""
        requests = []
        for candidate in asked:
            seed = int(generator_for(self.stage.seed, self.stage.name, candidate.key).integers(2**31))
            requests.append(Request(self.instructions.chat(candidate.negative_kind, candidate.caption), seed, ()))
        answers = self.worker.answers(requests, SCHEMA) if requests else []
        for candidate, answer in zip(asked, answers, strict=True):
            negative, reason, detail = judged(candidate.negative_kind, candidate.caption, answer)
            yield Rejected(candidate.key, reason, detail) if reason else candidate.negative(negative)

    @cached_property
    def instructions(self) -> Prompts:
        """What its language model is asked. Raises `WrongUse`: the file of prompts is not one, or lacks a kind."""
        prompts = read_words(Path(self.prompts or FILE), Prompts)
        if lacking := [kind for kind in self.kinds if kind not in prompts.kinds]:
            raise WrongUse(f"{self.prompts}: has no prompt of {lacking[0]}; add it, or ask for other kinds")
        return prompts

    def _exchanged(self, asked: Sequence[NegativeCandidate]) -> Iterator[TableRows | Rejected]:
        """Negatives of whole groups: all captions of an image tell what is said of it already."""
        exchange, readings = self._exchange, self._readings([candidate.caption for candidate in asked])
        for _, candidates in groupby(asked, attrgetter("group")):
            of_image = list(candidates)
            said = said_of([readings[candidate.caption] for candidate in of_image])
            for candidate in of_image:
                random = generator_for(self.stage.seed, self.stage.name, candidate.key)
                edits = exchange.change(candidate.negative_kind, readings[candidate.caption], said, random)
                places = places_in(candidate.caption)  # the parser reads captions with one blank between words
                there = [Edit(places[edit.start], places[edit.end], edit.text) for edit in edits]
                text = edited(candidate.caption, there)
                if not edits:
                    yield Rejected(candidate.key, "nothing-to-change")
                elif reason := problem(KINDS[candidate.negative_kind].type, candidate.caption, text):
                    yield Rejected(candidate.key, reason, text)
                else:
                    yield candidate.negative(text)

    def _readings(self, captions: Sequence[str]) -> dict[str, Reading]:
        """What each caption says."""
        texts, words = list(dict.fromkeys(captions)), vocabulary()
        with self.parser.nlp.memory_zone():
            return {text: reading(doc, words) for text, doc in zip(texts, self.parser.docs(texts), strict=True)}

    @cached_property
    def _exchange(self) -> Exchange:
        """The exchange, balanced on the sample."""
        readings = self._readings([caption for photo in self._sample for caption in photo])
        photos = [[readings[caption] for caption in photo] for photo in self._sample]
        return balanced(vocabulary(), counts(), photos, generator_for(self.stage.seed, self.stage.name, "exchange"))

    @cached_property
    def _sample(self) -> list[list[str]]:
        """Captions of images at random, `SAMPLE` of them where there are so many, by image."""
        photos = self._photos(self._sound())
        ranked = ((digest([self.stage.seed, image]), [read.caption for read in captions]) for image, captions in photos)
        chosen = [captions for _, captions in heapq.nsmallest(SAMPLE, ranked)]
        before = accumulate(map(len, chosen), initial=0)
        return [captions for captions, number in zip(chosen, before, strict=False) if number < SAMPLE]
