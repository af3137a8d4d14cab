"""Relations of captions: one pass of spaCy over many, and `sng_parser`'s rules on the documents that it gives.

GeneCIS (section 5.2) takes "subject -> predicate -> object" from captions with an off-the-shelf parser, `sng_parser`.
Its release 0.1.0 runs spaCy on one caption at a time, which is most of its time. Here `nlp.pipe` parses them in batches
and the rules are given ready documents; the relations are those of ``sng_parser.parse(caption)``, caption by caption.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from generators.scene_graphs.pipelines import Pipeline, check_pipeline, import_spacy_alone
from manifests.errors import WrongUse

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

BATCH = 128  # captions a call of the network
ZONE = 4096  # captions after which spaCy forgets the words that it met, which would fill the memory


@dataclass(frozen=True, slots=True)
class Relation:
    """One relation of a caption, with surface words and lemmas exactly as `sng_parser` gives them.

    subject, object: head nouns, with what is compounded to them. subject_span, object_span: where their noun phrases
    stand in the caption, as characters from and to.
    """

    subject: str
    predicate: str
    object: str
    subject_lemma: str
    predicate_lemma: str
    object_lemma: str
    subject_span: tuple[int, int]
    object_span: tuple[int, int]


class SceneGraphParser:
    """Parses captions in batches, with one pipeline loaded once.

    nlp: the pipeline, as it comes from spaCy.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        """Raises `WrongUse` when the pipeline cannot be loaded or lacks what the rules need."""
        import sng_parser

        try:
            parser = sng_parser.Parser("spacy", model=pipeline.source)
        except (ImportError, OSError, ValueError) as error:
            why = error.__cause__ or error
            raise WrongUse(f"pipeline {pipeline.name}: spaCy cannot load it ({why}); install it again") from error
        backend = parser.unwrapped
        self.nlp: Language = backend.nlp
        check_pipeline(pipeline.name, self.nlp)
        # The rules begin with `doc = self.nlp(sentence)`: now they are given the document itself.
        backend.nlp = _ready
        self._rules = backend.parse

    def relations(self, captions: Sequence[str]) -> Iterator[list[Relation]]:
        """The relations of each caption, in order."""
        for start in range(0, len(captions), ZONE):
            with self.nlp.memory_zone():
                docs = self.nlp.pipe(captions[start : start + ZONE], batch_size=BATCH)
                zone = [_relations(doc, self._rules(doc)) for doc in docs]
            yield from zone


@cache
def parser_of(pipeline: Pipeline) -> SceneGraphParser:
    """The parser with a pipeline, loaded once a process."""
    if not pipeline.torch:
        import_spacy_alone()
    return SceneGraphParser(pipeline)


def _ready(doc: Doc) -> Doc:
    return doc


def _relations(doc: Doc, graph: dict[str, Any]) -> list[Relation]:
    entities = graph["entities"]
    found = []
    for relation in graph["relations"]:
        subject, object_ = entities[relation["subject"]], entities[relation["object"]]
        found.append(
            Relation(
                subject=subject["head"],
                predicate=relation["relation"],
                object=object_["head"],
                subject_lemma=subject["lemma_head"],
                predicate_lemma=relation["lemma_relation"],
                object_lemma=object_["lemma_head"],
                subject_span=_characters(doc, *subject["span_bounds"]),
                object_span=_characters(doc, *object_["span_bounds"]),
            )
        )
    return found


def _characters(doc: Doc, start: int, end: int) -> tuple[int, int]:
    """Characters from and to of the tokens from ``start`` up to ``end``."""
    return doc[start].idx, doc[end - 1].idx + len(doc[end - 1])
