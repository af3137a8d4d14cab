"""What part a word plays in a caption: both captions of twins, and both parsers, must agree on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinset.generators.scene_graphs.relations import NOUNS
from twinset_extras.caption_twins.vocabulary import vocabulary

if TYPE_CHECKING:
    from spacy.tokens import Doc, Span, Token


def role_of(doc: Doc, start: int, end: int, kind: str, set_name: str) -> str | None:
    """What a word or phrase is in a caption; None where it cannot be what its set is of.

    start, end: its characters. kind, set_name: of the set (`vocabulary.Line`).
    """
    span = doc.char_span(start, end)
    if span is None or (set_name in vocabulary().together and _is_beside(span.root)):
        return None
    return _CHECKS[kind](span, span.root)


def _is_beside(noun: Token) -> bool:
    """Whether there may be others beside it: "a street with a car", "a car and", "a room has a bed"."""
    listed = noun.dep_ == "conj" or any(child.dep_ == "cc" for child in noun.children)
    return listed or noun.head.lower_ == "with" or (noun.dep_ == "dobj" and noun.head.lemma_.lower() == "have")


def _object(span: Span, noun: Token) -> str | None:
    return "noun" if _is_thing(span, noun) else None


def _place(span: Span, noun: Token) -> str | None:
    where = noun.dep_ == "pobj" and noun.head.lower_ in vocabulary().where
    return "place" if where and _is_thing(span, noun) else None


def _is_thing(span: Span, noun: Token) -> bool:
    """A noun that stands alone: not part of another thing's name, on either side, nor its measure or owner."""
    beside = [noun.doc[at] for at in (span.start - 1, span.end) if 0 <= at < len(noun.doc)]
    return (
        noun.pos_ in NOUNS
        and noun.dep_ not in ("compound", "amod", "nmod", "poss")
        and not any(token.pos_ in NOUNS and token.dep_ == "compound" and token.head == noun for token in beside)
        and not any(child.dep_ == "prep" and child.lower_ == "of" for child in noun.children)
    )


def _count(span: Span, number: Token) -> str | None:
    return "number" if number.dep_ == "nummod" and number.head.pos_ in NOUNS else None


def _attribute(span: Span, word: Token) -> str | None:
    first = word.head if word.dep_ == "conj" else word  # "black and white dog"
    of_noun = first.dep_ in ("amod", "compound", "nmod") and first.head.pos_ in NOUNS and first.head.i >= span.end
    return "attribute" if of_noun else None


def _relation(span: Span, word: Token) -> str | None:
    if word.pos_ in ("VERB", "AUX"):
        return "verb" if word.dep_ not in ("amod", "compound") else None
    return "preposition" if word.pos_ in ("ADP", "ADV", "SCONJ", "PART") else None


_CHECKS = {"object": _object, "place": _place, "count": _count, "attribute": _attribute, "relation": _relation}
