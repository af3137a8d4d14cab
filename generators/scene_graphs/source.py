"""Captions that are parsed, and the table of their relations for later stages, such as GeneCIS's triplets."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, ClassVar, Literal, cast

import pyarrow as pa
from pydantic import Field

from twinset.contracts.candidate import Candidate
from twinset.contracts.errors import WrongUse, naming
from twinset.contracts.kinds.samples import Rejected, TableRows
from twinset.contracts.references import Reference
from twinset.contracts.source import Need, Place
from twinset.generators.annotation_files import Met, SeveralFiles
from twinset.generators.captions.tables import CAPTION_REASONS, Caption, CaptionSources
from twinset.generators.papers import GENECIS
from twinset.generators.reasons import reasons_beside
from twinset.generators.scene_graphs.relations import BATCH, LIBRARIES, Grammar, Relation, SceneGraphParser, parser_of
from twinset.models.spacy_pipelines import EMBEDDED, Pipeline, check_installed, find_pipeline
from twinset.shards.contracts import Source

TEXTS = ("caption_id", "image_id", "caption", "image")
WORDS, SPANS = Relation._fields[:6], Relation._fields[6:10]
TYPES = {**dict.fromkeys((*TEXTS, *WORDS), pa.string()), **dict.fromkeys(SPANS, pa.int32())}

#: What only the strict rules of triplets read: `generators.scene_graphs.relations.Grammar`, the photo (the image's id,
#: as the rejection of a caption without relations has it) and whether the second parser finds the relation too, null
#: where there is none.
PHOTO, CONFIRMED, NO_RELATION = "photo", "confirmed", "no-relation"
NEGATED, BACKDROP, CONTESTED, STAND_IN, PLAIN = "negated", "backdrop", "contested", "stand_in", "plain"
GRAMMAR = {
    **dict.fromkeys(Grammar._fields, pa.string()),
    **dict.fromkeys((NEGATED, BACKDROP, CONTESTED, STAND_IN, PLAIN), pa.bool_()),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptionCandidate(Candidate):
    """A caption of an image, as `generators.captions.tables.Caption` has it, without its split."""

    caption_id: str
    image_id: str
    caption: str
    image: str
    place: str


class ParsedCaptions(Source):
    """Captions and the pipeline that parses them, for tables made of them.

    captions: files or folders of captions, read in this order (`generators.captions.tables`).
    pipeline: spaCy's, by name or folder: ``en_captions_sm`` comes with twinset. licence: of the captions.
    """

    captions: SeveralFiles
    pipeline: Annotated[str, Place("model", "models")] = Field(default=EMBEDDED, min_length=1)
    licence: str = ""

    makes = "table"
    reference = Reference("captions")  # of any data set: the licence says which
    group = "caption"

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        super().check_inputs(key, needs)
        if "annotations" in needs:
            with naming(f"{key}.captions"):
                CaptionSources(self.captions)
        if "models" in needs:
            self.check_parser(key)

    def check_parser(self, key: str) -> None:
        """Raise `WrongUse` where the parser is not installed. key: as `check_inputs`."""
        check_installed(key, self.pipeline, *LIBRARIES)

    isolation = "process"  # spaCy holds the interpreter's lock
    micro_batch: ClassVar[int] = BATCH
    libraries: ClassVar[tuple[str, ...]] = LIBRARIES

    def runs_on(self) -> str | None:
        """The parser is a neural network on the CPU."""
        return "cpu"

    def weights(self) -> Mapping[str, str]:
        return {"pipeline": self._pipeline.digest}

    @property
    def parser(self) -> SceneGraphParser:
        """Raises `WrongUse` when the pipeline cannot be used."""
        return parser_of(self._pipeline)

    @cached_property
    def _pipeline(self) -> Pipeline:
        return find_pipeline(self.pipeline)

    def inputs(self) -> str:
        return self._captions.digest()

    def read_captions(self) -> Iterator[Caption]:
        """Captions in the order of the files, for `plan`; memory grows by about 100 bytes a caption.

        Raises `WrongUse` when nothing of a source can be read, or an id is that of two captions.
        """
        ids = Met()
        for read in self._captions.read():
            if not isinstance(read, Caption):
                self.excluded.add(read.reason, read.place)
            elif ids.before(read.caption_id):
                problem = f"{read.place}: caption id {read.caption_id[:100]!r} is duplicated"
                raise WrongUse(f"{problem}; ids tell captions apart: correct or remove one")
            else:
                yield read

    @cached_property
    def _captions(self) -> CaptionSources:
        return CaptionSources(self.captions)


class ConfirmedCaptions(ParsedCaptions):
    """Captions that a second pipeline may parse too.

    confirm: that one, by name or folder, for a second opinion.
    """

    confirm: Annotated[str, Place("model", "models")] | None = Field(default=None, min_length=1)

    def check_parser(self, key: str) -> None:
        super().check_parser(key)
        with naming(f"{key}.confirm"):
            if self._confirm is not None and self._confirm.digest == self._pipeline.digest:
                raise WrongUse(f"{self.confirm} parses already; name another pipeline, or leave confirm out")

    def weights(self) -> Mapping[str, str]:
        confirm = {"confirm": self._confirm.digest} if self._confirm is not None else {}
        return {**super().weights(), **confirm}

    @property
    def second_parser(self) -> SceneGraphParser | None:
        """None where no second pipeline is named; raises `WrongUse` when it cannot be used."""
        return parser_of(self._confirm) if self._confirm is not None else None

    @cached_property
    def _confirm(self) -> Pipeline | None:
        return find_pipeline(self.confirm) if self.confirm is not None else None


class SceneGraphs(ConfirmedCaptions):
    """Relations "subject, predicate, object" that a parser reads off captions (GeneCIS, section 5.2).

    confirm: a second pipeline, by name or folder; every relation then says whether that one finds it too.
    """

    kind: Literal["scene-graphs"]

    paper = GENECIS
    verb = "parsed from"
    card_template = Path(__file__).with_name("card.md.j2")

    reasons: ClassVar[Mapping[str, str]] = {**CAPTION_REASONS, **reasons_beside(__file__, "scene-graphs")}

    version = 7
    candidate = CaptionCandidate
    row_schema = pa.schema(
        [pa.field(name, kind, nullable=False) for name, kind in {**TYPES, **GRAMMAR, PHOTO: pa.string()}.items()]
        + [pa.field(CONFIRMED, pa.bool_())]
    )

    def plan(self) -> Iterator[CaptionCandidate]:
        for read in self.read_captions():
            yield CaptionCandidate(
                **self.identified(read.caption_id, terms=read.terms),
                **{name: getattr(read, name) for name in (*TEXTS, "place")},
            )

    def make(self, candidates: Sequence[Candidate]) -> Iterator[TableRows | Rejected]:
        """The relations of each caption, or ``no-relation``. Raises `WrongUse` when a pipeline cannot be used."""
        captions = cast(Sequence[CaptionCandidate], candidates)
        texts = [candidate.caption for candidate in captions]
        parsed = self.parser.relations(texts)
        second = [None] * len(texts) if self.second_parser is None else self.second_parser.relations(texts)
        for caption, relations, second_relations in zip(captions, parsed, second, strict=True):
            photo = caption.image_id.replace("\t", "\\t")  # a tab ends it in a rejection
            if not relations:
                yield Rejected(caption.key, NO_RELATION, f"{photo}\t{caption.caption}")
                continue
            about = {**{name: getattr(caption, name) for name in TEXTS}, PHOTO: photo}
            confirming = None if second_relations is None else {_in_words(relation) for relation in second_relations}
            rows = []
            for relation in relations:
                confirmed = None if confirming is None else _in_words(relation) in confirming
                rows.append({**about, **relation.row(), CONFIRMED: confirmed})
            yield TableRows(caption.key, rows)


def _in_words(relation: Relation) -> tuple[str, ...]:
    """What two parsers agree on: subject, predicate and object as the caption has them, whatever their lemmas."""
    return relation.subject.lower(), relation.predicate.lower(), relation.object.lower()
