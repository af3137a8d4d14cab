"""What a parsed caption says that there is: its entities, and which noun names which."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from generators.image_verification.vocabulary import Vocabulary
from generators.negative_captions.rules.wording import article_of

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

_PLURAL = ("NNS", "NNPS")
_NOUNS = ("NOUN", "PROPN")
_LATIN = re.compile(r"[A-Za-z]{2}")
_DEFINITE = ("the", "this", "that", "these", "those", "its", "his", "her", "their")
_UNIQUE = ("sky", "ocean", "sea", "ground", "air", "moon", "sun")
_AGAIN = ("", "other ", "third ", "fourth ", "fifth ")


@dataclass(frozen=True, slots=True)
class Entity:
    """Something that a caption names.

    number: its place among the entities, from 0. name: in lower case, with what is compounded to it. lemma: of its head.
    plural: whether it takes "are". there: as it stands after "is there". the: how a question refers to it.
    """

    number: int
    name: str
    lemma: str
    plural: bool
    there: str
    the: str


class Entities:
    """The entities of a caption in its order, by their tokens.

    all: each once. pictures: nouns such as "photo" in "a photo of a dog". counts: what "a pair of dogs" counts.
    """

    def __init__(self, doc: Doc, words: Vocabulary) -> None:
        self.words = words
        self.all: list[Entity] = []
        self.pictures: list[Token] = []
        self.counts: list[tuple[Entity, int]] = []
        self._of: dict[int, Entity] = {}
        self._group_of: dict[int, Token] = {}
        for token in doc:
            if is_noun(token, words) and not self._is_picture(token) and not self._is_group(token):
                self._of[token.i] = self._entity(token)
        for at, member in self._group_of.items():
            if (entity := self.of(member)) is not None:
                self._of[at] = entity
                number = words.groups[lemma_of(doc[at])]
                if number and entity.plural and entity.lemma not in words.clothing:
                    self.counts.append((entity, number))

    def of(self, token: Token) -> Entity | None:
        """The entity that a noun names; None where it names none, or is a pronoun."""
        return self._of.get(token.i)

    def tokens(self, doc: Doc) -> Iterator[tuple[Token, Entity]]:
        """Nouns with their entities, in the order of the caption; of "a group of dogs" both."""
        for at in sorted(self._of):
            yield doc[at], self._of[at]

    def _entity(self, token: Token) -> Entity:
        name, lemma, plural = name_of(token, self.words), lemma_of(token), token.tag_ in _PLURAL
        plural = plural or lemma in ("people", "cattle", "police")
        fixed = {child.lower_ for child in modifiers(token, self.words) if child.dep_ in ("det", "poss")}
        before = [one for one in self.all if one.name == name]
        if before and fixed & set(_DEFINITE):
            return before[-1]
        again = _AGAIN[min(len(before), len(_AGAIN) - 1)]
        the = name if token.pos_ == "PROPN" and not fixed else f"the {again}{name}"
        if again:
            there = f"{again}{name}" if plural else f"another {name}" if again == "other " else f"a {again}{name}"
        elif plural or token.pos_ == "PROPN" or (lemma in self.words.mass and not fixed & {"a", "an"}):
            there = name
        else:
            there = f"{article_of(name)} {name}"
        entity = Entity(len(self.all), name, lemma, plural, the if lemma in _UNIQUE else there, the)
        self.all.append(entity)
        return entity

    def _is_picture(self, token: Token) -> bool:
        begins = token.dep_ == "ROOT" or token.head.dep_ == "ROOT"
        found = lemma_of(token) in self.words.pictures and begins and _member(token) is not None
        if found:
            self.pictures.append(token)
        return found

    def _is_group(self, token: Token) -> bool:
        member = _member(token) if lemma_of(token) in self.words.groups else None
        if member is not None:
            self._group_of[token.i] = member
        return member is not None


def is_noun(token: Token, words: Vocabulary) -> bool:
    """Whether a token is the head of a noun phrase that names something visible."""
    if token.pos_ not in _NOUNS or not _LATIN.search(token.text) or token.dep_ == "npadvmod":
        return False
    if (is_verb_taken_for_noun(token) or token.dep_ == "compound") and not is_verb_taken_for_noun(token.head):
        return False
    if is_verb_taken_for_noun(token.head) and token.dep_ == "compound" and token.i + 1 != token.head.i:
        return False  # a part of the compound before it
    lemma = lemma_of(token)
    children = {child.lower_ for child in token.children if child.dep_ in ("det", "neg")}
    governor = token.head if token.dep_ == "pobj" else None
    if "no" in children or (governor is not None and governor.lower_ in ("without", "as", "like", "during")):
        return False
    if lemma in words.unseen and _member(token) is None and not words.groups.get(lemma):
        return False
    if governor is not None:
        if lemma in words.times or (lemma in words.scenery and not _has_own_words(token)):
            return False
        if lemma in words.places and next_word(token) in ("of", "to", "with"):
            return False
    copula = token.dep_ == "attr" and token.head.lemma_ == "be"
    return not (copula and not any(child.dep_ == "expl" for child in token.head.children) and _has_subject(token.head))


def is_verb_taken_for_noun(token: Token) -> bool:
    """Whether a tagger took a verb for a plural: "a clock hangs" has the article of a singular."""
    lefts = list(token.lefts)
    article = any(child.lower_ in ("a", "an") for child in lefts)
    noun_before = bool(lefts) and lefts[-1].dep_ == "compound" and lefts[-1].i + 1 == token.i
    return token.tag_ == "NNS" and article and noun_before and lefts[-1].tag_ in ("NN", "NNP")


def modifiers(token: Token, words: Vocabulary) -> list[Token]:
    """The words that modify a noun, without the compounds that are part of its name."""
    found = list(token.children)
    if token.dep_ == "compound" and is_verb_taken_for_noun(token.head):
        found += [child for child in token.head.lefts if child.i != token.i]
    named = {one.i for one in _name_tokens(token, words)}
    return sorted((child for child in found if child.i not in named), key=lambda child: child.i)


def name_of(token: Token, words: Vocabulary) -> str:
    """A noun with what is compounded to it, such as ``traffic light``."""
    return " ".join(_cased(one) for one in _name_tokens(token, words))


def lemma_of(token: Token) -> str:
    """The singular of a noun in lower case."""
    return str(token.lemma_ if token.tag_ in _PLURAL else token.text).lower()


def next_word(token: Token) -> str:
    """The word after a token in lower case; empty at the end."""
    return str(token.nbor(1).lower_) if token.i + 1 < len(token.doc) else ""


def is_attribute(token: Token, words: Vocabulary) -> bool:
    """Whether a compounded word is an adjective ("wooden") that the parser took for a noun."""
    return token.lower_ in words.colours or token.lower_ in words.attributes or token.tag_.startswith("JJ")


def _name_tokens(token: Token, words: Vocabulary) -> list[Token]:
    lefts = list(token.lefts)
    if token.dep_ == "compound" and is_verb_taken_for_noun(token.head):
        lefts = [one for one in token.head.lefts if one.i != token.i] + lefts
    parts = [token]
    for one in sorted(lefts, key=lambda left: left.i, reverse=True):
        adjacent = one.i + 1 == parts[0].i
        phrase = f"{one.lower_} {lemma_of(token)}"
        known = phrase in words.names or f"{one.lower_} {token.lower_}" in words.names
        compound = one.dep_ in ("compound", "nmod") and not is_attribute(one, words) and one.pos_ in (*_NOUNS, "X")
        if adjacent and (known or compound):
            parts = [*(left for left in one.lefts if left.dep_ == "compound" and left.i + 1 == one.i), one, *parts]
    return parts


def _cased(token: Token) -> str:
    keep = token.pos_ == "PROPN" and not token.is_sent_start and token.i > 0
    return str(token.text if keep or (token.is_upper and len(token) < 4 and len(token) > 1) else token.lower_)


def _member(token: Token) -> Token | None:
    """What a group is of, or a picture shows: the noun after "of"."""
    for child in token.children:
        if child.lower_ == "of":
            for noun in child.children:
                if noun.dep_ == "pobj" and noun.pos_ in _NOUNS:
                    return noun
    return None


def _has_own_words(token: Token) -> bool:
    return any(child.dep_ in ("amod", "compound", "nummod", "poss") for child in token.children)


def _has_subject(verb: Token) -> bool:
    return any(child.dep_ == "nsubj" for child in verb.children)
