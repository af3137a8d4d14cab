"""What prepositions say in a parsed caption: where something is, and what it is with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from twinset.generators.image_verification.questions.entities import Entities, Entity
from twinset.generators.image_verification.questions.facts import Fact, attribute
from twinset.generators.image_verification.questions.nouns import lemma_of, next_word
from twinset.generators.image_verification.questions.vocabulary import Vocabulary

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

_SILENT = (
    *("as", "about", "like", "during", "despite", "without", "except", "before", "after", "until", "since", "because"),
)


class Places:
    """Reads prepositional phrases off one document."""

    def __init__(self, doc: Doc, entities: Entities, words: Vocabulary) -> None:
        self.doc, self.entities, self.words = doc, entities, words

    def of(self, token: Token) -> Iterator[tuple[str, list[Entity], bool]]:
        """Prepositions that hang on a token: the phrase, what stands behind it, and whether that is someone's own."""
        for child in token.children:
            linked = child.lower_ in ("of", "to") and child.i > 0 and lemma_of(child.nbor(-1)) in self.words.places
            if linked and child.nbor(-1).dep_ == "pobj":
                continue  # the end of "on top of", which its preposition brings
            if child.dep_ in ("prep", "agent") and child.lower_ not in _SILENT:
                yield from self.behind(child, child.lower_)
            elif child.dep_ in ("advmod", "amod", "acomp") and child.i > token.i:
                for one in child.children:
                    if one.dep_ == "prep" and one.i == child.i + 1:
                        yield from self.behind(one, f"{child.lower_} {one.lower_}")

    def behind(self, preposition: Token, phrase: str) -> Iterator[tuple[str, list[Entity], bool]]:
        """As `of`, for one preposition that begins with a phrase."""
        for child in preposition.children:
            if child.dep_ in ("prep", "pcomp") and child.pos_ == "ADP":
                yield from self.behind(child, f"{phrase} {child.lower_}")
            elif child.dep_ == "pobj":
                if lemma_of(child) in self.words.places and next_word(child) in ("of", "to", "with"):
                    link = child.nbor(1)
                    inner = self.doc[preposition.i + 1 : link.i + 1].text.lower()
                    yield from self.behind(link, f"{phrase} {inner}")
                else:
                    named = [self.entities.of(one) for one in joined(child)]
                    named += self._it(preposition, child)
                    owned = any(one.dep_ == "poss" and one.pos_ == "PRON" for one in child.children)
                    yield phrase, list(dict.fromkeys(one for one in named if one is not None)), owned

    def _it(self, preposition: Token, pronoun: Token) -> list[Entity | None]:
        """What "it" is in "a bench with a dog on it"."""
        if pronoun.lower_ not in ("it", "them"):
            return []
        noun = preposition.head
        while noun.dep_ != "ROOT" and not (noun.dep_ == "pobj" and noun.head.lower_ == "with"):
            noun = noun.head
        holds = noun.dep_ == "pobj" and noun.head.lower_ == "with"
        if holds:
            return [self.entities.of(noun.head.head)]
        # Where the parser says that the bench, not the dog, is sitting on it.
        verb = preposition.head
        return [self.entities.of(verb.head)] if verb.dep_ == "acl" and verb.head.i == noun.i else []

    def scenery(self, token: Token, phrase: str, about: tuple[Entity, ...], said: str) -> Iterator[Fact]:
        """Where in the picture something is: "in the background"."""
        for child in token.children:
            for one in child.children if child.lower_ == phrase else ():
                known = lemma_of(one) in self.words.scenery or one.lower_ in self.words.colours
                if one.dep_ == "pobj" and known and self.entities.of(one) is None:
                    last = [one, *(two for two in one.conjuncts if two.lower_ in self.words.colours)][-1]
                    where = self.doc[one.left_edge.i : last.i + 1].text.lower()
                    for entity in about:
                        yield attribute(entity, f"{said} {phrase} {where}".strip())


def joined(noun: Token) -> list[Token]:
    """A noun and those that are joined to it by "and"."""
    return [noun, *(one for one in noun.conjuncts if one.i > noun.i and one.pos_ in ("NOUN", "PROPN"))]
