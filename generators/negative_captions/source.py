"""Negative captions written for captions, as a table for later stages (BiVLC, section 5.1; SugarCrepe)."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Annotated, ClassVar, Literal, cast, get_args

from pydantic import AfterValidator, Field, PrivateAttr, SerializeAsAny

from twinset.contracts.candidate import Candidate
from twinset.contracts.canonical import canonical_json, digest, generator_for, sample_key, sha256_of_file
from twinset.contracts.kinds.samples import Rejected, TableRows
from twinset.contracts.parts import Isolation
from twinset.generators.captions.tables import CAPTION_REASONS, Caption
from twinset.generators.negative_captions.asking import FILE, SCHEMA, chat, judged
from twinset.generators.negative_captions.exchange.choice import Exchange, balanced, said_of
from twinset.generators.negative_captions.exchange.counts import COUNTS, counts
from twinset.generators.negative_captions.exchange.sites import Reading, reading
from twinset.generators.negative_captions.exchange.vocabulary import vocabulary
from twinset.generators.negative_captions.kinds import COLUMNS, Kind, NegativeCandidate
from twinset.generators.negative_captions.wording import Edit, edited
from twinset.generators.papers import BIVLC
from twinset.generators.reasons import reasons_beside
from twinset.generators.scene_graphs.relations import BATCH, LIBRARIES, places_in
from twinset.generators.scene_graphs.source import ParsedCaptions
from twinset.generators.text_pairs import named_once
from twinset.models.engines import EngineSettings, EngineSource
from twinset.models.language_models.answers import Request
from twinset.models.language_models.settings import LANGUAGE_MODELS, WRITING, LanguageModelSettings

SAMPLE = 10_000  # captions that the exchange is balanced on
ALONE = "alone.json"  # how many captions are the only ones of their image


class Exchanged(EngineSettings):
    """Exchanges words of captions as often as captions have them (`generators.negative_captions.exchange`)."""

    kind: Literal["exchange"] = "exchange"

    micro_batch: ClassVar[int] = BATCH
    threads: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = (*LIBRARIES, "inflect")

    def open(self) -> Exchanged:
        return self  # what it needs, its source has

    def device(self) -> str:
        return "cpu"


WRITERS = replace(LANGUAGE_MODELS, beside={"exchange": Exchanged})


class NegativeCaptions(EngineSource, ParsedCaptions):  # type: ignore[override]  # libraries: the engine's
    """Negative captions of every caption, one of each kind that its words allow.

    captions, pipeline, licence: as `ParsedCaptions`; the exchange uses the pipeline. kinds: that are written, in this
    order. engine: what writes them: the exchange of words, which needs no model, or a language model.
    """

    kind: Literal["negative-captions"]
    kinds: Annotated[tuple[Kind, ...], AfterValidator(named_once)] = Field(default=get_args(Kind), min_length=1)
    engine: Annotated[SerializeAsAny[EngineSettings], WRITERS, WRITING] = Exchanged()
    licence: str = ""
    _alone: int = PrivateAttr(0)

    paper = BIVLC
    verb = "written for"
    card_template = Path(__file__).with_name("card.md.j2")
    reports = (ALONE,)
    reasons: ClassVar[Mapping[str, str]] = {**CAPTION_REASONS, **reasons_beside(__file__, "written", "changes")}

    version = 7
    candidate = NegativeCandidate
    row_schema = COLUMNS

    @property
    def exchanges(self) -> bool:
        """Whether words are exchanged, instead of a language model asked."""
        return isinstance(self.engine, Exchanged)

    @property
    def isolation(self) -> Isolation:  # type: ignore[override]  # spaCy holds the interpreter's lock, torch its threads
        return "thread" if isinstance(self.engine, LanguageModelSettings) and not self.engine.local else "process"

    def check_parser(self, key: str) -> None:
        """As `ParsedCaptions.check_parser`; a language model does without."""
        if self.exchanges:
            super().check_parser(key)

    def weights(self) -> Mapping[str, str]:
        if not self.exchanges:
            return {**EngineSource.weights(self), "prompts": sha256_of_file(FILE)[0]}
        return {
            **ParsedCaptions.weights(self),
            "vocabulary": vocabulary().digest,
            "counts": sha256_of_file(COUNTS)[0],
            "sample": digest(self._sample),
        }

    def report_files(self) -> Mapping[str, bytes]:
        return {ALONE: canonical_json(self._alone)}

    def plan(self) -> Iterator[NegativeCandidate]:
        """The kinds of one caption after the other; those of all captions of an image are a group.

        All captions are held in memory: those of an image are scattered in COCO's files.
        """
        self._alone, by_image = 0, defaultdict[str, list[Caption]](list)
        for read in self.read_captions():
            by_image[read.image_id].append(read)
        for image_id, captions in by_image.items():
            group = sample_key(self.stage.name, image_id)
            self._alone += len(captions) == 1
            for read in captions:
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
        """A row each, or why there is none; raises `WrongUse` without the pipeline, `BuildFailed` without the model."""
        asked = cast(Sequence[NegativeCandidate], candidates)
        yield from self._exchanged(asked) if self.exchanges else self._answered(asked)

    def _answered(self, asked: Sequence[NegativeCandidate]) -> Iterator[TableRows | Rejected]:
        """Negatives by a language model, one request a caption and kind."""
        requests = []
        for candidate in asked:
            seed = int(generator_for(self.stage.seed, self.stage.name, candidate.key).integers(2**31))
            requests.append(Request(chat(candidate.negative_kind, candidate.caption), seed=seed, schema=SCHEMA))
        yield from map(judged, asked, self.worker.ask(requests))

    def _exchanged(self, asked: Sequence[NegativeCandidate]) -> Iterator[TableRows | Rejected]:
        """Negatives of whole groups: all captions of an image tell what is said of it already."""
        exchange, readings = self._exchange, self._readings([candidate.caption for candidate in asked])
        for _, candidates in groupby(asked, attrgetter("group")):
            of_image = list(candidates)
            stated = said_of([readings[candidate.caption] for candidate in of_image])
            for candidate in of_image:
                random = generator_for(self.stage.seed, self.stage.name, candidate.key)
                edits = exchange.change(candidate.negative_kind, readings[candidate.caption], stated, random)
                places = places_in(candidate.caption)  # the parser reads captions with one blank between words
                there = [Edit(places[edit.start], places[edit.end], edit.text) for edit in edits]
                if there:
                    yield candidate.negative(edited(candidate.caption, there))
                else:
                    yield Rejected(candidate.key, "nothing-to-change")

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
        last = max(heapq.nsmallest(SAMPLE, (rank for rank, _ in self._ranked())), default="")
        chosen = defaultdict[str, list[str]](list)
        for rank, caption in self._ranked():
            if rank <= last:
                chosen[rank].append(caption)
        return [captions for _, captions in sorted(chosen.items())]

    def _ranked(self) -> Iterator[tuple[str, str]]:
        """The place of each caption's image in a random order, and the caption."""
        sound = (read for read in self._captions.read() if isinstance(read, Caption))
        return ((digest([self.stage.seed, read.image_id]), read.caption) for read in sound)
