"""Relations of captions: one pass of spaCy over many, and `sng_parser`'s rules on the documents that it gives.

GeneCIS (section 5.2) takes "subject -> predicate -> object" from captions with an off-the-shelf parser, `sng_parser`.
Its release 0.1.0 runs spaCy on one caption at a time, which is most of its time. Here `nlp.pipe` parses them in batches
and the rules are given ready documents; the relations are those of ``sng_parser.parse(caption)``, caption by caption.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from twinset.generators.scene_graphs.grammar import Grammar, grammar_of
from twinset.models import spacy_pipelines
from twinset.models.spacy_pipelines import Pipeline, load_pipeline

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

LIBRARIES = (*spacy_pipelines.LIBRARIES, "SceneGraphParser")  # what the relations depend on, besides pyarrow

BATCH = 128  # captions a call of the network
ZONE = 4096  # captions after which spaCy forgets the words that it met, which would fill the memory


class Relation(NamedTuple):
    """One relation of a caption, with surface words and lemmas exactly as `sng_parser` gives them.

    subject, object: head nouns, with what is compounded to them. start, end: where their noun phrases stand in the
    caption, as characters from and to.
    """

    subject: str
    predicate: str
    object: str
    subject_lemma: str
    predicate_lemma: str
    object_lemma: str
    subject_start: int
    subject_end: int
    object_start: int
    object_end: int
    grammar: Grammar

    def row(self) -> dict[str, str | int | bool]:
        """Its columns in a table: its own fields, then those of its grammar."""
        return {**dict(zip(self._fields[:-1], self, strict=False)), **self.grammar._asdict()}


class SceneGraphParser:
    """Parses captions in batches, with one pipeline loaded once.

    nlp: the pipeline, as it comes from spaCy.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        """Raises `WrongUse` when the pipeline cannot be loaded or lacks what the rules need."""
        self.nlp: Language = load_pipeline(pipeline, ("DEP", "POS", "LEMMA"))
        import sng_parser.backends  # imports spaCy, which `load_pipeline` may import without torch

        # The rules begin with `doc = self.nlp(sentence)`: they are given the document itself. Its `__init__` would load
        # the pipeline a second time.
        kind: Any = sng_parser.Parser._backend_registry["spacy"]
        backend = kind.__new__(kind)
        backend.nlp = _ready
        self._rules = backend.parse

    def relations(self, captions: Sequence[str]) -> Iterator[list[Relation]]:
        """The relations of each caption, in order."""
        for start in range(0, len(captions), ZONE):
            with self.nlp.memory_zone():
                docs = self.nlp.pipe(captions[start : start + ZONE], batch_size=BATCH)
                zone = [_relations(doc, self._rules(doc)) for doc in docs]
            yield from zone

    def graphs(self, captions: Sequence[str]) -> list[tuple[Doc, Mapping[str, Any]]]:
        """The document of each of a few captions, and what `sng_parser` makes of it."""
        return [(doc, self._rules(doc)) for doc in self.nlp.pipe(captions, batch_size=BATCH)]


@cache
def parser_of(pipeline: Pipeline) -> SceneGraphParser:
    """The parser with a pipeline, loaded once a process."""
    return SceneGraphParser(pipeline)


def _ready(doc: Doc) -> Doc:
    return doc


def _relations(doc: Doc, graph: dict[str, Any]) -> list[Relation]:
    entities = graph["entities"]
    found = []
    for relation in graph["relations"]:
        subject, object_ = entities[relation["subject"]], entities[relation["object"]]
        one, other = doc[slice(*subject["span_bounds"])], doc[slice(*object_["span_bounds"])]
        found.append(
            Relation(
                *(subject["head"], relation["relation"], object_["head"]),
                *(subject["lemma_head"], relation["lemma_relation"], object_["lemma_head"]),
                *(one.start_char, one.end_char, other.start_char, other.end_char),
                grammar_of(one.root, relation["relation"], other.root),
            )
        )
    return found
