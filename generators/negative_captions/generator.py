"""Plans a negative caption of each kind for every caption, and writes them by the rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from generators.negative_captions.changes import problem
from generators.negative_captions.kinds import COLUMNS, KINDS
from generators.negative_captions.rules.engine import negative
from generators.negative_captions.rules.vocabulary import vocabulary
from generators.negative_captions.source import NegativeCaptions
from generators.scene_graphs.generator import ParsedCaptionGenerator
from generators.scene_graphs.relations import BATCH, LIBRARIES
from manifests.candidate import Candidate
from manifests.canonical import generator_for, identity_of, sample_key
from shards.kinds.samples import Rejected, TableRows


@dataclass(frozen=True, slots=True, kw_only=True)
class NegativeCandidate(Candidate):
    """A caption and the kind of its negative (`generators.negative_captions.kinds`)."""

    caption_id: str
    image_id: str
    image: str
    caption: str
    negative_kind: str

    @property
    def counted_as(self) -> str:
        """As `Candidate.counted_as`: the kind of its negative."""
        return self.negative_kind


class NegativeGenerator(ParsedCaptionGenerator[NegativeCaptions]):
    """One negative caption a candidate; those of a caption are a group."""

    version = 1
    candidate = NegativeCandidate
    libraries = (*LIBRARIES, "inflect")
    columns = COLUMNS

    def weights(self) -> Mapping[str, str]:
        """Digests of the pipeline and of the word lists."""
        return {**super().weights(), "vocabulary": vocabulary().digest}

    def plan(self) -> Iterator[NegativeCandidate]:
        """The kinds of one caption after the other."""
        for read in self.captions():
            group = sample_key(self.name, read.caption_id)
            for kind in self.source.kinds:
                yield NegativeCandidate(
                    key=sample_key(self.name, read.caption_id, kind),
                    identity=identity_of(read.caption_id, kind),
                    group=group,
                    split=self.split,
                    caption_id=read.caption_id,
                    image_id=read.image_id,
                    image=read.image,
                    caption=read.caption,
                    negative_kind=kind,
                )

    def make(self, candidates: Sequence[Candidate]) -> Iterator[TableRows | Rejected]:
        """A row each, or why there is none. Raises `WrongUse` when the pipeline cannot be used."""
        planned = cast(Sequence[NegativeCandidate], candidates)
        texts = list(dict.fromkeys(one.caption for one in planned))
        nlp, words = self.parser.nlp, vocabulary()
        with nlp.memory_zone():
            docs = dict(zip(texts, nlp.pipe(texts, batch_size=BATCH), strict=True))
            written = [
                negative(one.negative_kind, docs[one.caption], words, generator_for(self.seed, self.name, one.key))
                for one in planned
            ]
        for one, text in zip(planned, written, strict=True):
            kind = KINDS[one.negative_kind]
            if text is None:
                yield Rejected(one.key, "nothing-to-change")
            elif reason := problem(kind.type, one.caption, text):
                yield Rejected(one.key, reason, text)
            else:
                row = {name: getattr(one, name) for name in ("caption_id", "image_id", "image", "caption")}
                kinds = {"type": kind.type, "subtype": kind.subtype}
                yield TableRows(one.key, [{**row, "negative_caption": text, **kinds}])
