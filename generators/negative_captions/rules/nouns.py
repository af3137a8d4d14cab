"""The nouns of a parsed caption that rules may touch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from twinset.generators.negative_captions.rules.vocabulary import Group, Vocabulary

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

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
