"""Relations of captions: one pass of spaCy over many, and `sng_parser`'s rules on the documents that it gives.

GeneCIS (section 5.2) takes "subject -> predicate -> object" from captions with an off-the-shelf parser, `sng_parser`.
Its release 0.1.0 runs spaCy on one caption at a time, which is most of its time. Here `nlp.pipe` parses them in batches
and its parser is given ready documents; the relations are those of ``sng_parser.parse(caption)``, caption by caption.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from twinset.models import spacy_pipelines
from twinset.models.spacy_pipelines import Pipeline, load_pipeline

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc, Span, Token

_NUMBERS = {"NN": "singular", "NNP": "singular", "NNS": "plural", "NNPS": "plural"}  # of the Penn Treebank

#: Words that deny what they belong to: a closed class.
NEGATIVE = frozenset({"no", "not", "n't", "n’t", "never", "neither", "nor", "none", "zero", "without", "cannot"})
NOUNS = ("NOUN", "PROPN")
PARTICIPLES = ("VBG", "VBN")  # of the Penn Treebank
#: Words that make another thing of the noun after them: a toy car is no car.
UNREAL = frozenset({"fake", "stuffed", "toy"})
#: What stands for a name in captions like Conceptual Captions', where it has no word of its own before it.
STAND_INS = frozenset({"animal", "person", "species"})
#: What makes of a noun the measure or the owner of another thing: "a cup *of* coffee", "a person *'s* hands".
MEASURING = frozenset({"of", "'s", "’s"})
#: Adverbs that make another deed of a verb, before its object or after it.
PARTICLES = frozenset({"apart", "away", "back", "down", "off", "out", "over", "up"})
#: Where the things stand that a picture shows behind its subject ("a girl with trees in the background").
BACKDROP = frozenset({"background", "backdrop", "foreground", "distance", "behind"})


class Grammar(NamedTuple):
    """Of one relation.

    subject_pos, object_pos: parts of speech of both heads, by Universal Dependencies (``NOUN``, ``PROPN``, ``PRON`` …).
    subject_number: ``singular``, ``plural``, or empty where the pipeline gives none. verb: lemma of the verb that a
    preposition belongs to, where the predicate leaves the verb out ("look", of "man at window"), else empty. negated:
    whether a word denies the relation. backdrop: whether "with" names what is in the background. contested: whether
    another noun may be meant for the subject, for the object ("a *rock* climbing wall", "a cup *of* coffee") or for
    what the preposition belongs to; or the subject is one of several; or the verb has a particle that no predicate
    keeps ("blows *out* a fire"). stand_in: whether subject or object stands for a name (`STAND_INS`). plain: whether
    the sentence begins with the subject, with nothing but the predicate between it and the object.
    """

    subject_pos: str
    object_pos: str
    subject_number: str
    verb: str
    negated: bool
    backdrop: bool
    contested: bool
    stand_in: bool
    plain: bool


def grammar_of(subject_phrase: Span, predicate: str, object_phrase: Span) -> Grammar:
    """The grammar of a relation, by the noun phrases of its subject and its object."""
    subject, object_ = nouns = subject_phrase.root, object_phrase.root
    path = _path(subject, object_)
    verb = next((word for word in path if word.pos_ in ("VERB", "AUX")), None)
    between = subject.doc[subject_phrase.end : object_phrase.start].text
    return Grammar(
        subject.pos_,
        object_.pos_,
        _NUMBERS.get(subject.tag_, ""),
        verb.lemma_ if verb is not None and verb.lower_ not in predicate.lower().split() else "",
        any(
            word.lower_ in NEGATIVE or word.dep_ == "neg"
            for head in (subject, *path)
            for word in (head, *head.children)
        ),
        predicate.lower() == "with" and _is_backdrop(object_),
        _is_contested(subject, path)
        or bool(subject.conjuncts)
        or any(map(_is_another_thing, nouns))
        or _begins_compound(object_)
        or any(map(_has_particle, path)),
        any(map(_is_stand_in, nouns)),
        between.lower() == predicate.lower() and subject_phrase.start == subject_phrase.sent.start,
    )


def _path(subject: Token, object_: Token) -> list[Token]:
    """The object and the words that it depends on, up to the subject or the word that the subject depends on."""
    path = [object_]
    for word in object_.ancestors:
        if word.i == subject.i:
            break
        path.append(word)
        if word.i == subject.head.i:
            break
    return path


def _is_backdrop(object_: Token) -> bool:
    """Whether "in the background", or the like, follows the object in its sentence with no verb of its own between."""
    for word in object_.doc[object_.i + 1 : object_.sent.end]:
        if word.lower_ in BACKDROP:
            return True
        if word.pos_ in ("VERB", "AUX"):
            return False
    return False


def _is_contested(subject: Token, path: list[Token]) -> bool:
    """Whether the attachment is one of those that parsers get wrong.

    Either a noun stands between a preposition and the word that it is said to belong to ("a statue holding a kite in
    its hand": statue in hand); or the subject depends on another noun, and is said to do something ("a man in a jacket
    sitting on a bench": jacket sitting).
    """
    for word in path:
        if word.dep_ == "prep" and any(map(_is_noun, subject.doc[min(word.head.i, word.i) + 1 : word.i])):
            return True
        if word.dep_ == "acl" and word.head.i == subject.i and any(map(_is_noun, subject.ancestors)):
            return True
    return False


def _is_another_thing(noun: Token) -> bool:
    """Whether the words beside a noun make something else of it: a toy dog is no dog, nor is a hot one.

    Before another noun or a hyphen it names a kind of that ("dog sled"); or it is the measure, the shape or the owner
    of what follows.
    """
    before = noun.doc[noun.i - 1].lower_ if noun.i else ""
    following = noun.doc[noun.i + 1 : noun.i + 2]
    return (
        before in UNREAL
        or (before, noun.lower_.removesuffix("s")) == ("hot", "dog")
        or any(_is_noun(word) or word.lower_ == "-" or word.lower_ in MEASURING for word in following)
    )


def _is_stand_in(noun: Token) -> bool:
    """Whether a noun has neither article nor number nor owner, where English asks for one."""
    return noun.lower_ in STAND_INS and not any(child.dep_ in ("det", "poss", "nummod") for child in noun.children)


def _begins_compound(noun: Token) -> bool:
    """Whether a participle and a noun follow at once ("rock climbing wall", "horse drawn carriage")."""
    following = noun.doc[noun.i + 1 : noun.i + 3]
    return len(following) == 2 and following[0].tag_ in PARTICIPLES and _is_noun(following[1])


def _has_particle(word: Token) -> bool:
    """Whether a verb with an object has a particle too ("takes a pizza *out*"); that of "sits down" changes nothing."""
    if word.pos_ != "VERB":
        return False
    parts = {child.dep_ for child in word.children}
    return "dobj" in parts and ("prt" in parts or any(child.lower_ in PARTICLES for child in word.children))


def _is_noun(word: Token) -> bool:
    return word.pos_ in NOUNS


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
        self.nlp: Language = load_pipeline(pipeline)
        import sng_parser  # imports spaCy, which `load_pipeline` may import without torch

        self._parser = sng_parser.Parser("spacy", model=str(pipeline.source))
        self._parser.unwrapped.nlp = _as_it_is

    def relations(self, captions: Sequence[str]) -> Iterator[list[Relation]]:
        """The relations of each caption, in order."""
        for start in range(0, len(captions), ZONE):
            zone = captions[start : start + ZONE]
            with self.nlp.memory_zone():
                docs = zip(zone, self.docs(zone), strict=True)
                relations = [_relations(doc, self._parser.parse(doc), places_in(caption)) for caption, doc in docs]
            yield from relations

    def docs(self, captions: Iterable[str]) -> Iterator[Doc]:
        """The document of each caption with one blank between words: a parser takes further ones for words."""
        return self.nlp.pipe(map(single_spaced, captions), batch_size=BATCH)


def _as_it_is(doc: Doc) -> Doc:
    """What sng_parser asks its pipeline for: the document of a caption, which is parsed already."""
    return doc


@cache
def parser_of(pipeline: Pipeline) -> SceneGraphParser:
    """The parser with a pipeline, loaded once a process."""
    return SceneGraphParser(pipeline)


def single_spaced(caption: str) -> str:
    """A caption with one blank between words and none around them."""
    return " ".join(caption.split())


def places_in(caption: str) -> list[int]:
    """Where in a caption each character of `single_spaced` stands, and the end; a blank, where those there begin."""
    words = (word.span() for word in re.finditer(r"\S+", caption))
    return [place for start, end in words for place in range(start, end + 1)]


def _relations(doc: Doc, graph: dict[str, Any], places: Sequence[int]) -> list[Relation]:
    """The relations of a scene graph. places: as `places_in` the caption of the document."""
    relations = []
    for edge in graph["relations"]:
        subject, object_ = (graph["entities"][edge[end]] for end in ("subject", "object"))
        first, second = (doc[slice(*entity["span_bounds"])] for entity in (subject, object_))
        relations.append(
            Relation(
                *(subject["head"], edge["relation"], object_["head"]),
                *(subject["lemma_head"], edge["lemma_relation"], object_["lemma_head"]),
                *(places[first.start_char], places[first.end_char]),
                *(places[second.start_char], places[second.end_char]),
                grammar_of(first, edge["relation"], second),
            )
        )
    return relations
