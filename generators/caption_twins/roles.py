"""What part a word plays in a caption: both captions of twins, and both parsers, must agree on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinset.generators.caption_twins.columns import ARTICLES
from twinset.generators.caption_twins.vocabulary import vocabulary
from twinset.generators.scene_graphs.relations import NOUNS

if TYPE_CHECKING:
    from spacy.tokens import Doc, Span, Token

Role = tuple[str, str, int]


def role_of(doc: Doc, start: int, end: int, kind: str) -> Role | None:
    """Kind of word, dependency, and how many words away its head is; None where the word cannot be of a kind.

    start, end: characters of the word or phrase.
    """
    span = doc.char_span(start, end)
    if span is None:
        return None
    root = span.root
    role = _CHECKS[kind](span, root)
    if role is None:
        return None
    head = root.head
    between = doc[head.i : span.start] if head.i < span.start else doc[span.end : head.i + 1]
    away = sum(1 for word in between if word.lower_ not in ARTICLES and not word.is_punct)
    return role, root.dep_, -away if head.i < span.start else away


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
        and not any(one.pos_ in NOUNS and one.dep_ == "compound" and one.head == noun for one in beside)
        and not any(child.dep_ == "prep" and child.lower_ == "of" for child in noun.children)
    )


def _count(span: Span, number: Token) -> str | None:
    return "number" if number.dep_ == "nummod" and number.head.pos_ in NOUNS else None


def _attribute(span: Span, word: Token) -> str | None:
    of_noun = word.dep_ in ("amod", "compound", "nmod") and word.head.pos_ in NOUNS and word.head.i >= span.end
    return "attribute" if of_noun else None


def _relation(span: Span, word: Token) -> str | None:
    if word.pos_ in ("VERB", "AUX"):
        return "verb" if word.dep_ not in ("amod", "compound") else None
    return "preposition" if word.pos_ in ("ADP", "ADV", "SCONJ", "PART") else None


_CHECKS = {"object": _object, "place": _place, "count": _count, "attribute": _attribute, "relation": _relation}
