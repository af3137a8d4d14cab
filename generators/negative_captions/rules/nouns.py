"""The nouns of a parsed caption that rules may touch, and other words put in: articles, plurals, capitals follow."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from twinset.generators.negative_captions.rules.vocabulary import Group, Vocabulary

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

_ARTICLE = re.compile(r"\b(an?)\b(\s+)(\w[\w-]*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """Characters from start to end of a caption become other words. An insertion has start = end."""

    start: int
    end: int
    text: str


def edited(caption: str, edits: Sequence[Edit]) -> str:
    """The caption with its edits, which must not overlap; "a" and "an" before words that are new are corrected."""
    parts, at = [], 0
    for edit in sorted(edits):
        parts += [caption[at : edit.start], _with_capital(caption, edit)]
        at = edit.end
    text = "".join([*parts, caption[at:]])
    known = {(article.lower(), word) for article, _, word in _ARTICLE.findall(caption)}

    def corrected(found: re.Match[str]) -> str:
        article, space, word = found.groups()
        if (article.lower(), word) in known:
            return found.group()  # whoever wrote the caption may have had it wrong
        right = article_of(word)
        return f"{right.capitalize() if article[0].isupper() else right}{space}{word}"

    return _ARTICLE.sub(corrected, text)


def _with_capital(caption: str, edit: Edit) -> str:
    """A capital where the caption begins with one."""
    begins = not caption[: edit.start].strip()
    if begins and edit.text and caption[edit.start : edit.start + 1].isupper():
        return edit.text[0].upper() + edit.text[1:]
    return edit.text


def article_of(words: str) -> str:
    """``a`` or ``an``, by sound."""
    return str(_inflect().a(words)).split()[0]


def plural_of(noun: str) -> str:
    """The plural of a noun in the singular."""
    return str(_inflect().plural_noun(noun))


def replacing(token: Token, word: str) -> Edit:
    """A word in place of a token."""
    return Edit(token.idx, token.idx + len(token), word)


@cache
def _inflect() -> Any:
    import inflect

    return inflect.engine()


_PLURAL = ("NNS", "NNPS")
_OTHER_THINGS = ("stuffed", "hot", "polar", "toy", "fake", "stop", "double")
_FIXED = ("det", "poss", "nummod")


@dataclass(frozen=True, slots=True)
class Noun:
    """A noun that the vocabulary knows. name: its singular, as the vocabulary writes it."""

    token: Token
    name: str
    plural: bool
    group: Group


def nouns(doc: Doc, words: Vocabulary) -> Iterator[Noun]:
    """Nouns with a group that are neither part of a compound nor of an idiom, and stand as such nouns do."""
    for token in doc:
        if token.pos_ != "NOUN" or is_idiom(token, words):
            continue
        name = name_of(token)
        group = words.groups.get(name)
        if group is None or any(map(_makes_another, token.children)):
            continue
        plural = token.tag_ in _PLURAL
        bare = not plural and not any(child.dep_ in _FIXED for child in token.children)
        if token.dep_ == "compound" or bare is not group.mass:
            continue
        yield Noun(token, name, plural, group)


def is_idiom(token: Token, words: Vocabulary) -> bool:
    """Whether a noun stands in a phrase with a meaning of its own, or counts what comes after it."""
    if name_of(token) in words.idioms:
        return True
    here = [token, *token.lefts] if token.lefts else [token]
    phrase = " ".join(one.lower_ for one in sorted(here, key=lambda one: one.i)[-2:])
    return phrase in words.idioms


def name_of(token: Token) -> str:
    """The singular of a noun in lower case; small pipelines give odd lemmas of plurals now and then."""
    lemma = str(token.lemma_).lower()
    return lemma if token.tag_ in _PLURAL else str(token.lower_) if token.pos_ == "NOUN" else lemma


def said(doc: Doc, words: Vocabulary) -> frozenset[str]:
    """Every word of a caption, its lemma and all other names of what it names: none of these changes the scene."""
    met = {one for token in doc for one in (token.lower_, token.lemma_.lower())}
    return frozenset(met | {other for one in met for other in words.synonyms.get(one, ())})


def head_noun(token: Token) -> Token | None:
    """The noun that an adjective stands with."""
    return token.head if token.dep_ == "amod" and token.head.pos_ in ("NOUN", "PROPN") else None


def actor_of(verb: Token) -> Token | None:
    """Who does what a verb says."""
    for child in verb.children:
        if child.dep_ == "nsubj":
            return child
    return verb.head if verb.dep_ == "acl" and verb.head.pos_ == "NOUN" else None


def _makes_another(child: Token) -> bool:
    """Whether a modifier makes a noun the name of another thing ("fire truck", "stuffed bear")."""
    return child.dep_ == "compound" or (child.dep_ == "amod" and child.lower_ in _OTHER_THINGS)
