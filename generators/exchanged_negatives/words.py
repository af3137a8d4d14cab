"""The words of captions that can change places, as a table for `exchanged-negatives`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal, cast

import pyarrow as pa

from twinset.contracts.candidate import Candidate
from twinset.contracts.kinds.samples import Rejected, TableRows
from twinset.generators.captions.tables import CAPTION_REASONS
from twinset.generators.exchanged_negatives.given import additions_of
from twinset.generators.exchanged_negatives.sites import Site, named_in, said_in, sites_of
from twinset.generators.exchanged_negatives.vocabulary import Exchanges, exchanges
from twinset.generators.negative_captions.changes import words as words_in
from twinset.generators.negative_captions.rules.vocabulary import Vocabulary, vocabulary
from twinset.generators.papers import BIVLC
from twinset.generators.scene_graphs.relations import LIBRARIES, places_in
from twinset.generators.scene_graphs.source import CaptionCandidate, ParsedCaptions

if TYPE_CHECKING:
    from spacy.tokens import Doc

SAID = "said"
TEXTS = ("caption_id", "image_id", "image", "caption")
_PLACES = ("start", "end", "other_start", "other_end")
_NUMBERS = (*_PLACES, "size")
COLUMNS = pa.schema(
    [pa.field(name, pa.string(), nullable=False) for name in TEXTS]
    + [pa.field(name, pa.int32() if name in _NUMBERS else pa.string(), nullable=False) for name in Site._fields]
)


class CaptionWords(ParsedCaptions):
    """The words of captions that have a place in the vocabulary of exchanges, and where something can be added.

    captions, pipeline, licence: as `ParsedCaptions`.
    """

    kind: Literal["caption-words"]

    paper = BIVLC
    verb = "parsed from"
    reasons: ClassVar[Mapping[str, str]] = CAPTION_REASONS

    version = 4
    candidate = CaptionCandidate
    row_schema = COLUMNS
    libraries = LIBRARIES

    def weights(self) -> Mapping[str, str]:
        return {**super().weights(), "vocabulary": vocabulary().digest, "exchanges": exchanges().digest}

    def plan(self) -> Iterator[CaptionCandidate]:
        for read in self.read_captions():
            told = {name: getattr(read, name) for name in (*TEXTS, "place")}
            yield CaptionCandidate(**self.identified(read.caption_id, terms=read.terms), **told)

    def make(self, candidates: Sequence[Candidate]) -> Iterator[TableRows | Rejected]:
        """The rows of each caption. Raises `WrongUse` when the pipeline cannot be used."""
        captions = cast(Sequence[CaptionCandidate], candidates)
        words, rules, parser = exchanges(), vocabulary(), self.parser
        with parser.nlp.memory_zone():
            for one, doc in zip(captions, parser.docs(one.caption for one in captions), strict=True):
                told, places = {name: getattr(one, name) for name in TEXTS}, [*places_in(one.caption), -1]  # -1: none
                sites = (site._asdict() for site in sites_in(doc, words, rules))
                yield TableRows(
                    one.key, [{**told, **site, **{name: places[site[name]] for name in _PLACES}} for site in sites]
                )


def sites_in(doc: Doc, words: Exchanges, rules: Vocabulary) -> Iterator[Site]:
    """Of a caption: first what it says, its name what it names, then its sites."""
    said, named = (" ".join(sorted(some(doc, words))) for some in (said_in, named_in))
    yield Site(SAID, "", said, named, 0, 0, "", "", "")._replace(size=len(words_in(doc.text)))
    yield from sites_of(doc, words, rules)
    yield from additions_of(doc, words, rules)
