"""Who does what a verb of a parsed caption says, to whom, and how a question says it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinset.generators.image_verification.questions.entities import Entities, Entity
from twinset.generators.image_verification.questions.facts import be, do
from twinset.generators.image_verification.questions.nouns import lemma_of, next_word, verb_subject
from twinset.generators.image_verification.questions.places import joined
from twinset.generators.image_verification.questions.vocabulary import Vocabulary

if TYPE_CHECKING:
    from spacy.tokens import Token

_WHO = ("that", "which", "who", "whom", "whose")
_PERSONS = ("he", "she", "they")
_PARTICLES = ("down", "up", "out", "off", "over", "around", "together", "through", "away")


class Actors:
    """Subjects and objects of the verbs of one document."""

    def __init__(self, entities: Entities, words: Vocabulary) -> None:
        self.entities, self.words = entities, words

    def subjects(self, verb: Token) -> list[Entity]:
        """Who does it: its subject, or the noun that it describes."""
        said = [child for child in verb.children if child.dep_ in ("nsubj", "nsubjpass")]
        token = said[0] if said else None
        if (misread := verb_subject(verb)) is not None:
            token = misread if misread.dep_ == "nsubj" else self._mover(misread, verb.dep_, verb.head)
        elif token is not None and token.lower_ in _WHO:
            token = verb.head if verb.dep_ == "relcl" else None
        elif token is not None and token.lower_ in _PERSONS:
            people = [one for one in self.entities.all if one.lemma in self.words.people | self.words.animals]
            return people[:1] if len(people) == 1 else []
        elif token is None and verb.dep_ == "dep" and verb.i and self.entities.of(verb.nbor(-1)) is not None:
            token = self._mover(verb.nbor(-1), verb.nbor(-1).dep_, verb.nbor(-1).head)
        elif token is None and verb.dep_ in ("acl", "relcl", "dep") and verb.tag_ == "VBN":
            token = verb.head
        elif token is None and verb.dep_ == "acl" and self._is_nearer(verb.nbor(-1), verb.head):
            token = verb.nbor(-1)
        elif token is None and verb.dep_ in ("acl", "relcl", "dep"):
            token = self._mover(verb.head, verb.head.dep_, verb.head.head)
        elif token is None and verb.dep_ in ("conj", "advcl", "xcomp") and verb.head.pos_ in ("VERB", "AUX"):
            return self.subjects(verb.head)
        elif token is None and verb.dep_ == "attr" and verb.tag_ == "VBG":
            return []
        if token is None:
            return []
        named = [self.entities.of(one) for one in self._all_of(token, verb)]
        return list(dict.fromkeys(one for one in named if one is not None))

    def _all_of(self, token: Token, verb: Token) -> list[Token]:
        before = [one for one in token.conjuncts if one.i < token.i and token.dep_ == "conj"]
        return [*before, *(one for one in joined(token) if one.i < verb.i or verb.dep_ != "acl")]

    def _is_nearer(self, noun: Token, head: Token) -> bool:
        """Whether of "a hill with a cloud hanging over it" the cloud hangs, though a parser says the hill."""
        held = noun.dep_ == "pobj" and noun.head.lower_ == "with" and noun.head.head.i == head.i
        return held and self.entities.of(noun) is not None and lemma_of(head) not in self.words.movers

    def _mover(self, noun: Token, role: str, head: Token) -> Token:
        """Who a participle describes: of "a boy wearing a shirt posing" the boy, since shirts do not pose."""
        while lemma_of(noun) not in self.words.movers and self.entities.of(noun) is not None:
            if role == "dobj" and head.pos_ == "VERB":
                subjects = [one for one in head.children if one.dep_ == "nsubj"]
                above = subjects[0] if subjects else head.head if head.dep_ == "acl" else noun
            elif role == "pobj" and head.lower_ in ("with", "in", "on", "at") and head.head.pos_ in ("NOUN", "PROPN"):
                above = head.head
            elif role == "pobj" and head.lower_ in ("with", "in", "on", "at") and head.head.pos_ in ("VERB", "AUX"):
                above = next((one for one in head.head.children if one.dep_ == "nsubj"), noun)
                above = head.head.head if above.i == noun.i and head.head.dep_ == "acl" else above
            else:
                above = noun
            if above.i == noun.i or lemma_of(above) not in self.words.movers:
                break
            noun, role, head = above, above.dep_, above.head
        return noun

    def said(self, verb: Token, subject: Entity) -> tuple[str, str]:
        """The auxiliary of a question and the verb after its subject: ``Is … sitting``, ``Does … hold``."""
        particle = " ".join(
            one.lower_
            for one in verb.children
            if one.dep_ == "prt"
            or (one.dep_ in ("advmod", "prep") and one.lower_ in _PARTICLES and not list(one.children))
        )
        passive = any(child.dep_ == "auxpass" for child in verb.children)
        behind = verb.dep_ == "acl" or next_word(verb) in ("with", "by", "in") or verb.lemma_ in self.words.participles
        behind = behind and not any(one.dep_ == "dobj" for one in verb.children)
        perfect = any(child.dep_ == "aux" and child.lemma_ == "have" for child in verb.children)
        if verb.tag_ == "VBG" or passive or (verb.tag_ == "VBN" and not perfect) or (verb.tag_ == "VBD" and behind):
            return be(subject), f"{verb.lower_} {particle}".strip()
        said = f"{lemma_of(verb) if verb.pos_ != 'VERB' else verb.lemma_.lower()} {particle}".strip()
        if verb.dep_ == "xcomp" and verb.head.pos_ == "VERB" and verb.head.lemma_ not in self.words.weak:
            auxiliary, before = self.said(verb.head, subject)
            return auxiliary, f"{before} to {said}"
        return do(subject), said

    def objects(self, verb: Token) -> list[Entity]:
        """To whom or what it is done, without a preposition."""
        held = [child for child in verb.children if _is_object(child)]
        if verb.dep_ == "conj" and not held:  # "smiling and brushing her teeth", where a parser takes both for one
            held = [child for child in verb.head.children if _is_object(child) and child.i > verb.i]
        else:
            held = [
                child
                for child in held
                if not any(one.pos_ == "VERB" and verb.i < one.i < child.i for one in verb.conjuncts)
            ]
        tokens = [one for child in held for one in joined(child)]
        named = [self.entities.of(one) for one in tokens]
        return list(dict.fromkeys(one for one in named if one is not None))


def _is_object(token: Token) -> bool:
    named = token.dep_ == "npadvmod" and any(child.dep_ == "det" for child in token.children)
    return token.dep_ == "dobj" or named
