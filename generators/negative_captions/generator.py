"""Plans a negative caption of each kind for every caption, and writes them by the rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from twinset.generators.negative_captions.changes import problem
from twinset.generators.negative_captions.kinds import COLUMNS, KINDS, NegativeCandidate, planned
from twinset.generators.negative_captions.rules.engine import negative
from twinset.generators.negative_captions.rules.vocabulary import vocabulary
from twinset.generators.negative_captions.source import NegativeCaptions
from twinset.generators.scene_graphs.generator import ParsedCaptionGenerator
from twinset.generators.scene_graphs.relations import BATCH, LIBRARIES
from twinset.manifests.candidate import Candidate
from twinset.manifests.canonical import generator_for
from twinset.shards.kinds.samples import Rejected, TableRows


class NegativeGenerator(ParsedCaptionGenerator[NegativeCaptions]):
    """One negative caption a candidate; those of a caption are a group."""

    version = 2
    candidate = NegativeCandidate
    libraries = (*LIBRARIES, "inflect")
    columns = COLUMNS

    def weights(self) -> Mapping[str, str]:
        """Digests of the pipeline and of the word lists."""
        return {**super().weights(), "vocabulary": vocabulary().digest}

    def plan(self) -> Iterator[NegativeCandidate]:
        """The kinds of one caption after the other."""
        return planned(self.captions(), self.source.kinds, self.name, self.split)

    def make(self, candidates: Sequence[Candidate]) -> Iterator[TableRows | Rejected]:
        """A row each, or why there is none. Raises `WrongUse` when the pipeline cannot be used."""
        asked = cast(Sequence[NegativeCandidate], candidates)
        texts = list(dict.fromkeys(one.caption for one in asked))
        nlp, words = self.parser.nlp, vocabulary()
        with nlp.memory_zone():
            docs = dict(zip(texts, nlp.pipe(texts, batch_size=BATCH), strict=True))
            written = [
                negative(one.negative_kind, docs[one.caption], words, generator_for(self.seed, self.name, one.key))
                for one in asked
            ]
        for one, text in zip(asked, written, strict=True):
            if text is None:
                yield Rejected(one.key, "nothing-to-change")
            elif reason := problem(KINDS[one.negative_kind].type, one.caption, text):
                yield Rejected(one.key, reason, text)
            else:
                yield one.negative(text)
