"""What a parsed caption says that there is: its entities, and which noun names which."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from twinset.generators.negative_captions.wording import article_of
from twinset_extras.image_questions.nouns import (
    PLURAL,
    is_noun,
    lemma_of,
    member_of,
    modifiers,
    name_of,
    verb_subject,
)
from twinset_extras.image_questions.vocabulary import Vocabulary

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

_DEFINITE = ("the", "this", "that", "these", "those", "its", "his", "her", "their")
_UNIQUE = ("sky", "ocean", "sea", "ground", "air", "moon", "sun")
_QUOTED = re.compile(r"(?<!\w)['\"“‘]([^'\"“”‘’]{1,60})['\"”’](?!\w)")
_AGAIN = ("", "other ", "third ", "fourth ", "fifth ")


@dataclass(frozen=True, slots=True)
class Entity:
    """Something that a caption names.

    number: its place among the entities, from 0. name: in lower case, with what is compounded to it. lemma: of its
    head. plural: whether it takes "are". there: as it stands after "is there". the: how a question refers to it.
    object: the same behind a verb or preposition, where "grass" and "horses" need no article. singular: its name with
    the head in the singular.
    """

    number: int
    name: str
    lemma: str
    plural: bool
    there: str
    the: str
    object: str
    singular: str


class Entities:
    """The entities of a caption in its order, by their tokens.

    all: each once. pictures: nouns such as "photo" in "a photo of a dog", which stand for what they show.
    counts: what "a pair of dogs" counts. quoted: texts in quotes.
    """

    def __init__(self, doc: Doc, words: Vocabulary) -> None:
        self.words = words
        self.all: list[Entity] = []
        self.pictures: list[Token] = []
        self.counts: list[tuple[Entity, int]] = []
        self._of: dict[int, Entity] = {}
        self._group_of: dict[int, Token] = {}
        self.quoted = [match[1].strip() for match in _QUOTED.finditer(doc.text)]
        inside = {at for match in _QUOTED.finditer(doc.text) for at in range(*match.span(1))}
        for token in doc:
            if token.idx in inside:
                continue
            if is_noun(token, words) and not self._is_picture(token) and not self._is_group(token):
                self._of[token.i] = self._entity(token)
        for at, member in self._group_of.items():
            if (entity := self.of(member)) is not None:
                self._of[at] = entity
                number = words.groups.get(lemma_of(doc[at]), 0)
                if number and entity.plural and entity.lemma not in (*words.clothing, "scissors"):
                    self.counts.append((entity, number))

    def of(self, token: Token) -> Entity | None:
        """The entity that a noun names; None where it names none, or is a pronoun."""
        misread = verb_subject(token)
        return self._of.get(token.i if misread is None else misread.i)

    def stands_for_another(self, token: Token) -> bool:
        """Whether a noun such as "group" names what comes after "of"."""
        return token.i in self._group_of

    def tokens(self, doc: Doc) -> Iterator[tuple[Token, Entity]]:
        """Nouns with their entities, in the order of the caption; of "a group of dogs" both."""
        for at in sorted(self._of):
            yield doc[at], self._of[at]

    def _entity(self, token: Token) -> Entity:
        name, lemma, plural = name_of(token, self.words), lemma_of(token), token.tag_ in PLURAL
        head = token.lower_ if token.lower_ in self.words.clothing else lemma
        singular = f"{name[: -len(token.text)]}{head}"
        lemma = name if name in self.words.names else lemma  # a hot dog is not a dog
        fixed = {child.lower_ for child in modifiers(token, self.words) if child.dep_ in ("det", "poss")}
        plural = (plural and not fixed & {"a", "an"}) or lemma in ("people", "cattle", "police")
        lemma = token.lower_ if token.lower_ in self.words.clothing else lemma
        before = [entity for entity in self.all if entity.name == name]
        proper = token.pos_ == "PROPN" and token.text[0].isupper()
        numbered = any(child.dep_ == "nummod" for child in token.children)
        if before and (fixed & set(_DEFINITE) or (not fixed and not numbered and not plural)):
            return before[-1]
        again = _AGAIN[min(len(before), len(_AGAIN) - 1)]
        the = name if proper and not fixed else f"the {again}{name}"
        if again:
            there = f"{again}{name}" if plural else f"another {name}" if again == "other " else f"a {again}{name}"
        elif plural or proper or (lemma in self.words.mass and not fixed & {"a", "an"}):
            there = name
        else:
            there = f"{article_of(name)} {name}"
        bare = not fixed and not again and (plural or lemma in self.words.mass)
        there = the if lemma in _UNIQUE else there
        entity = Entity(len(self.all), name, lemma, plural, there, the, name if bare else the, singular)
        self.all.append(entity)
        return entity

    def _is_picture(self, token: Token) -> bool:
        # "A man takes a picture of his food" is not of a picture.
        begins = token.i < 5 and not any(child.dep_ == "nsubj" for child in token.head.children if token.dep_ == "dobj")
        member = member_of(token) if lemma_of(token) in self.words.pictures and begins else None
        if member is not None:
            self.pictures.append(token)
            self._group_of[token.i] = member
        return member is not None

    def _is_group(self, token: Token) -> bool:
        lemma = lemma_of(token)
        member = member_of(token) if lemma in self.words.groups or lemma in self.words.unseen else None
        if member is not None:
            self._group_of[token.i] = member
        return member is not None
