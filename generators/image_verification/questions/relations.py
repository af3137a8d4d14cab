"""What the entities of a parsed caption do, and where they are to each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from twinset.generators.image_verification.questions.actors import Actors
from twinset.generators.image_verification.questions.entities import Entities, Entity
from twinset.generators.image_verification.questions.facts import Fact, adjective, attribute, be, do
from twinset.generators.image_verification.questions.nouns import is_verb_taken_for_noun
from twinset.generators.image_verification.questions.places import Places
from twinset.generators.image_verification.questions.vocabulary import Vocabulary
from twinset.generators.negative_captions.rules.wording import article_of

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

_LOCAL = ("in", "on", "at", "near", "by", "beside", "behind", "under", "inside", "outside", "next", "above", "below")
_NO_VERBS = ("aux", "auxpass", "amod", "compound")


class Relations:
    """Reads relations off one document."""

    def __init__(self, doc: Doc, entities: Entities, words: Vocabulary) -> None:
        self.doc, self.entities, self.words = doc, entities, words
        self.places, self.actors = Places(doc, entities, words), Actors(entities, words)

    def facts(self) -> Iterator[Fact]:
        """Facts in the order of the words that say them."""
        for token in self.doc:
            if any(child.dep_ == "neg" for child in token.children):
                continue
            entity, misread = self.entities.of(token), is_verb_taken_for_noun(token)
            if entity is not None and not misread:
                yield from self._of_noun(token, entity)
            elif token.dep_ == "ROOT" and token.pos_ == "ADP":  # "Two dogs on the street."
                yield from self._of_preposition(token)
            elif misread or (token.pos_ in ("VERB", "AUX") and token.dep_ not in _NO_VERBS):
                yield from self._of_verb(token)

    def _of_noun(self, token: Token, entity: Entity) -> Iterator[Fact]:
        for child in token.children:
            if child.dep_ == "poss" and (owner := self.entities.of(child)) is not None:
                yield _has(owner, entity, "have")
        for phrase, objects, owned in self.places.of(token):
            if phrase == "of" and self.entities.stands_for_another(token):
                continue
            worn = phrase == "in" and entity.lemma in self.words.people and objects[:1] and self._worn(objects[0])
            for other in objects:
                if other is entity or (worn and not self._worn(other)):
                    continue
                if phrase != "with" and owned and entity.lemma in self.words.movers:
                    continue  # "a woman with rings all over her face": she is not over it
                if phrase == "with":
                    yield self._with(entity, other)
                elif phrase == "of":
                    yield self._made_of(token, entity, other)
                elif worn:
                    yield _wears(entity, other)
                else:
                    yield _relation(entity, other, phrase, f"{be(entity)} {entity.the} {phrase} {other.object}?")
            if not objects:
                yield from self.places.scenery(token, phrase, (entity,), "")

    def _of_preposition(self, token: Token) -> Iterator[Fact]:
        named = [self.entities.of(token.nbor(-1))] if token.i else []
        for phrase, objects, _ in self.places.behind(token, token.lower_):
            for entity in named:
                for other in objects if entity is not None else ():
                    assert entity is not None
                    yield _relation(entity, other, phrase, f"{be(entity)} {entity.the} {phrase} {other.object}?")

    def _of_verb(self, verb: Token) -> Iterator[Fact]:
        subjects = self.actors.subjects(verb)
        if not subjects:
            return
        if verb.lemma_ == "be":
            yield from self._of_copula(verb, subjects)
            return
        began = 0
        direct = self.actors.objects(verb)
        for subject in subjects:
            auxiliary, said = self.actors.said(verb, subject)
            for other in direct:
                if other is not subject:
                    began += 1
                    if verb.lemma_ in ("have", "wear") and self._worn(other):
                        yield _wears(subject, other)
                    elif verb.lemma_ == "have":
                        yield _has(subject, other, "have")
                    else:
                        yield _relation(subject, other, said, f"{auxiliary} {subject.the} {said} {other.object}?")
            for phrase, others, owned in self.places.of(verb):
                if (phrase == "of" and verb.tag_ != "VBN") or (
                    phrase == "with" and direct and subject.lemma not in self.words.movers
                ):
                    continue
                for other in others:
                    if other is subject or other in direct:
                        continue
                    began += 1
                    if phrase == "in" and subject.lemma in self.words.people and self._worn(other):
                        yield _wears(subject, other)
                    elif direct and not owned and phrase.split()[0] in _LOCAL:
                        yield _relation(subject, other, phrase, f"{be(subject)} {subject.the} {phrase} {other.object}?")
                    else:
                        full = " ".join([said, *(one.object for one in direct[:1]), phrase])
                        words = f"{said} {phrase}"
                        yield _relation(subject, other, words, f"{auxiliary} {subject.the} {full} {other.object}?")
        for child in verb.children:
            if child.dep_ == "dobj" and child.lower_ in self.words.colours and self.entities.of(child) is None:
                began += 1
                yield attribute(subjects[0], f"{self.actors.said(verb, subjects[0])[1]} {child.lower_}")
        for phrase, others, _ in self.places.of(verb):
            if not others:
                for fact in self.places.scenery(
                    verb, phrase, tuple(subjects[:1]), self.actors.said(verb, subjects[0])[1]
                ):
                    began += 1
                    yield fact
        chained = any(child.dep_ in ("xcomp", "dobj", "ccomp") for child in verb.children)
        if not began and not chained and verb.lemma_ not in self.words.weak:
            for subject in subjects:
                auxiliary, said = self.actors.said(verb, subject)
                yield Fact("attribute", (subject,), (subject.name, said), f"{auxiliary} {subject.the} {said}?")

    def _of_copula(self, verb: Token, subjects: list[Entity]) -> Iterator[Fact]:
        for subject in subjects:
            for child in verb.children:
                if child.dep_ == "acomp" or (child.dep_ == "attr" and child.pos_ == "ADJ"):
                    places = list(self.places.of(child))
                    for phrase, others, _ in places:
                        said = f"{adjective(child)} {phrase}"
                        for other in others:
                            yield _relation(subject, other, said, f"{be(subject)} {subject.the} {said} {other.object}?")
                    if not places:
                        for one in (child, *child.conjuncts):
                            yield attribute(subject, adjective(one))
                elif child.dep_ == "attr" and child.tag_ == "VBG":
                    yield attribute(subject, child.lower_)
                elif child.dep_ == "attr" and child.pos_ == "NOUN" and self.entities.of(child) is None:
                    said = " ".join(one.lower_ for one in child.lefts if one.dep_ in ("amod", "compound"))
                    name = f"{said} {child.lower_}".strip()
                    yield attribute(subject, name if child.tag_ == "NNS" else f"{article_of(name)} {name}")
            for phrase, others, _ in self.places.of(verb):
                for other in others:
                    if other is not subject and phrase != "of":
                        yield _relation(subject, other, phrase, f"{be(subject)} {subject.the} {phrase} {other.object}?")
                if not others:
                    yield from self.places.scenery(verb, phrase, (subject,), "")

    def _with(self, entity: Entity, other: Entity) -> Fact:
        beings = self.words.people | self.words.animals
        if entity.lemma in self.words.people and self._worn(other):
            return _wears(entity, other)
        if entity.lemma in beings and other.lemma in beings:
            return _relation(entity, other, "with", f"{be(entity)} {entity.the} with {other.object}?")
        return _has(entity, other, "have")

    def _worn(self, entity: Entity) -> bool:
        return entity.lemma in self.words.clothing

    def _made_of(self, token: Token, entity: Entity, other: Entity) -> Fact:
        noun = next(one for child in token.children if child.lower_ == "of" for one in child.children)
        one = any(child.dep_ == "det" and child.lower_ in ("a", "an", "the", "this") for child in noun.children)
        if one and entity.lemma not in self.words.depictions:
            return _has(other, entity, "have")
        there, of = "Are there" if entity.plural else "Is there", other.there if one else other.name
        return _relation(entity, other, "of", f"{there} {entity.there} of {of}?")


def _relation(entity: Entity, other: Entity, said: str, question: str) -> Fact:
    return Fact("relation", (entity, other), (entity.name, other.name, said), question)


def _wears(entity: Entity, other: Entity) -> Fact:
    return _relation(entity, other, "wear", f"{be(entity)} {entity.the} wearing {other.there}?")


def _has(entity: Entity, other: Entity, said: str) -> Fact:
    return _relation(entity, other, said, f"{do(entity)} {entity.the} have {other.there}?")
