"""What the entities of a parsed caption do, and where they are to each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from twinset.generators.negative_captions.wording import article_of
from twinset_extras.image_questions.entities import Entities, Entity
from twinset_extras.image_questions.facts import Fact, Places, adjective, attribute, be, do, joined
from twinset_extras.image_questions.nouns import (
    is_verb_taken_for_noun,
    lemma_of,
    next_word,
    verb_subject,
)
from twinset_extras.image_questions.vocabulary import Vocabulary

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

_WHO = ("that", "which", "who", "whom", "whose")
_PERSONS = ("he", "she", "they")
_PARTICLES = ("down", "up", "out", "off", "over", "around", "together", "through", "away")


class Actors:
    """Subjects and objects of the verbs of one document."""

    def __init__(self, entities: Entities, words: Vocabulary) -> None:
        self.entities, self.words = entities, words

    def subjects(self, verb: Token) -> list[Entity]:
        """Who does it: its subject, or the noun that it describes."""
        children = [child for child in verb.children if child.dep_ in ("nsubj", "nsubjpass")]
        token = children[0] if children else None
        if (misread := verb_subject(verb)) is not None:
            token = misread if misread.dep_ == "nsubj" else self._mover(misread, verb.dep_, verb.head)
        elif token is not None and token.lower_ in _WHO:
            token = verb.head if verb.dep_ == "relcl" else None
        elif token is not None and token.lower_ in _PERSONS:
            people = [entity for entity in self.entities.all if entity.lemma in self.words.people | self.words.animals]
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
        named = [self.entities.of(noun) for noun in self._all_of(token, verb)]
        return list(dict.fromkeys(entity for entity in named if entity is not None))

    def _all_of(self, token: Token, verb: Token) -> list[Token]:
        before = [noun for noun in token.conjuncts if noun.i < token.i and token.dep_ == "conj"]
        return [*before, *(noun for noun in joined(token) if noun.i < verb.i or verb.dep_ != "acl")]

    def _is_nearer(self, noun: Token, head: Token) -> bool:
        """Whether of "a hill with a cloud hanging over it" the cloud hangs, though a parser says the hill."""
        held = noun.dep_ == "pobj" and noun.head.lower_ == "with" and noun.head.head.i == head.i
        return held and self.entities.of(noun) is not None and lemma_of(head) not in self.words.movers

    def _mover(self, noun: Token, role: str, head: Token) -> Token:
        """Who a participle describes: of "a boy wearing a shirt posing" the boy, since shirts do not pose."""
        while lemma_of(noun) not in self.words.movers and self.entities.of(noun) is not None:
            if role == "dobj" and head.pos_ == "VERB":
                subjects = [child for child in head.children if child.dep_ == "nsubj"]
                above = subjects[0] if subjects else head.head if head.dep_ == "acl" else noun
            elif role == "pobj" and head.lower_ in ("with", "in", "on", "at") and head.head.pos_ in ("NOUN", "PROPN"):
                above = head.head
            elif role == "pobj" and head.lower_ in ("with", "in", "on", "at") and head.head.pos_ in ("VERB", "AUX"):
                above = next((child for child in head.head.children if child.dep_ == "nsubj"), noun)
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
            child.lower_
            for child in verb.children
            if child.dep_ == "prt"
            or (child.dep_ in ("advmod", "prep") and child.lower_ in _PARTICLES and not list(child.children))
        )
        passive = any(child.dep_ == "auxpass" for child in verb.children)
        behind = verb.dep_ == "acl" or next_word(verb) in ("with", "by", "in") or verb.lemma_ in self.words.participles
        behind = behind and not any(child.dep_ == "dobj" for child in verb.children)
        perfect = any(child.dep_ == "aux" and child.lemma_ == "have" for child in verb.children)
        if verb.tag_ == "VBG" or passive or (verb.tag_ == "VBN" and not perfect) or (verb.tag_ == "VBD" and behind):
            return be(subject), f"{verb.lower_} {particle}".strip()
        phrase = f"{lemma_of(verb) if verb.pos_ != 'VERB' else verb.lemma_.lower()} {particle}".strip()
        if verb.dep_ == "xcomp" and verb.head.pos_ == "VERB" and verb.head.lemma_ not in self.words.weak:
            auxiliary, before = self.said(verb.head, subject)
            return auxiliary, f"{before} to {phrase}"
        return do(subject), phrase

    def objects(self, verb: Token) -> list[Entity]:
        """To whom or what it is done, without a preposition."""
        held = [child for child in verb.children if _is_object(child)]
        if verb.dep_ == "conj" and not held:  # "smiling and brushing her teeth", where a parser takes both for one
            held = [child for child in verb.head.children if _is_object(child) and child.i > verb.i]
        else:
            held = [
                child
                for child in held
                if not any(conjunct.pos_ == "VERB" and verb.i < conjunct.i < child.i for conjunct in verb.conjuncts)
            ]
        tokens = [noun for child in held for noun in joined(child)]
        named = [self.entities.of(noun) for noun in tokens]
        return list(dict.fromkeys(entity for entity in named if entity is not None))


def _is_object(token: Token) -> bool:
    named = token.dep_ == "npadvmod" and any(child.dep_ == "det" for child in token.children)
    return token.dep_ == "dobj" or named


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
            for obj in objects:
                if obj is entity or (worn and not self._worn(obj)):
                    continue
                if phrase != "with" and owned and entity.lemma in self.words.movers:
                    continue  # "a woman with rings all over her face": she is not over it
                if phrase == "with":
                    yield self._with(entity, obj)
                elif phrase == "of":
                    yield self._made_of(token, entity, obj)
                elif worn:
                    yield _wears(entity, obj)
                else:
                    yield _relation(entity, obj, phrase, f"{be(entity)} {entity.the} {phrase} {obj.object}?")
            if not objects:
                yield from self.places.scenery(token, phrase, (entity,), "")

    def _of_preposition(self, token: Token) -> Iterator[Fact]:
        named = [self.entities.of(token.nbor(-1))] if token.i else []
        for phrase, objects, _ in self.places.behind(token, token.lower_):
            for entity in named:
                for obj in objects if entity is not None else ():
                    assert entity is not None
                    yield _relation(entity, obj, phrase, f"{be(entity)} {entity.the} {phrase} {obj.object}?")

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
            auxiliary, deed = self.actors.said(verb, subject)
            for obj in direct:
                if obj is not subject:
                    began += 1
                    if verb.lemma_ in ("have", "wear") and self._worn(obj):
                        yield _wears(subject, obj)
                    elif verb.lemma_ == "have":
                        yield _has(subject, obj, "have")
                    else:
                        yield _relation(subject, obj, deed, f"{auxiliary} {subject.the} {deed} {obj.object}?")
            for phrase, objects, owned in self.places.of(verb):
                if (phrase == "of" and verb.tag_ != "VBN") or (
                    phrase == "with" and direct and subject.lemma not in self.words.movers
                ):
                    continue
                for obj in objects:
                    if obj is subject or obj in direct:
                        continue
                    began += 1
                    if phrase == "in" and subject.lemma in self.words.people and self._worn(obj):
                        yield _wears(subject, obj)
                    elif direct and not owned and phrase.split()[0] in _LOCAL:
                        yield _relation(subject, obj, phrase, f"{be(subject)} {subject.the} {phrase} {obj.object}?")
                    else:
                        full = " ".join([deed, *(obj.object for obj in direct[:1]), phrase])
                        words = f"{deed} {phrase}"
                        yield _relation(subject, obj, words, f"{auxiliary} {subject.the} {full} {obj.object}?")
        for child in verb.children:
            if child.dep_ == "dobj" and child.lower_ in self.words.colours and self.entities.of(child) is None:
                began += 1
                yield attribute(subjects[0], f"{self.actors.said(verb, subjects[0])[1]} {child.lower_}")
        for phrase, objects, _ in self.places.of(verb):
            if not objects:
                for fact in self.places.scenery(
                    verb, phrase, tuple(subjects[:1]), self.actors.said(verb, subjects[0])[1]
                ):
                    began += 1
                    yield fact
        chained = any(child.dep_ in ("xcomp", "dobj", "ccomp") for child in verb.children)
        if not began and not chained and verb.lemma_ not in self.words.weak:
            for subject in subjects:
                auxiliary, deed = self.actors.said(verb, subject)
                yield Fact("attribute", (subject,), (subject.name, deed), f"{auxiliary} {subject.the} {deed}?")

    def _of_copula(self, verb: Token, subjects: list[Entity]) -> Iterator[Fact]:
        for subject in subjects:
            for child in verb.children:
                if child.dep_ == "acomp" or (child.dep_ == "attr" and child.pos_ == "ADJ"):
                    places = list(self.places.of(child))
                    for phrase, objects, _ in places:
                        deed = f"{adjective(child)} {phrase}"
                        for obj in objects:
                            yield _relation(subject, obj, deed, f"{be(subject)} {subject.the} {deed} {obj.object}?")
                    if not places:
                        for word in (child, *child.conjuncts):
                            yield attribute(subject, adjective(word))
                elif child.dep_ == "attr" and child.tag_ == "VBG":
                    yield attribute(subject, child.lower_)
                elif child.dep_ == "attr" and child.pos_ == "NOUN" and self.entities.of(child) is None:
                    before = " ".join(left.lower_ for left in child.lefts if left.dep_ in ("amod", "compound"))
                    name = f"{before} {child.lower_}".strip()
                    yield attribute(subject, name if child.tag_ == "NNS" else f"{article_of(name)} {name}")
            for phrase, objects, _ in self.places.of(verb):
                for obj in objects:
                    if obj is not subject and phrase != "of":
                        yield _relation(subject, obj, phrase, f"{be(subject)} {subject.the} {phrase} {obj.object}?")
                if not objects:
                    yield from self.places.scenery(verb, phrase, (subject,), "")

    def _with(self, entity: Entity, obj: Entity) -> Fact:
        beings = self.words.people | self.words.animals
        if entity.lemma in self.words.people and self._worn(obj):
            return _wears(entity, obj)
        if entity.lemma in beings and obj.lemma in beings:
            return _relation(entity, obj, "with", f"{be(entity)} {entity.the} with {obj.object}?")
        return _has(entity, obj, "have")

    def _worn(self, entity: Entity) -> bool:
        return entity.lemma in self.words.clothing

    def _made_of(self, token: Token, entity: Entity, obj: Entity) -> Fact:
        noun = next(depicted for child in token.children if child.lower_ == "of" for depicted in child.children)
        single = any(child.dep_ == "det" and child.lower_ in ("a", "an", "the", "this") for child in noun.children)
        if single and entity.lemma not in self.words.depictions:
            return _has(obj, entity, "have")
        there, of = "Are there" if entity.plural else "Is there", obj.there if single else obj.name
        return _relation(entity, obj, "of", f"{there} {entity.there} of {of}?")


def _relation(entity: Entity, obj: Entity, predicate: str, question: str) -> Fact:
    return Fact("relation", (entity, obj), (entity.name, obj.name, predicate), question)


def _wears(entity: Entity, obj: Entity) -> Fact:
    return _relation(entity, obj, "wear", f"{be(entity)} {entity.the} wearing {obj.there}?")


def _has(entity: Entity, obj: Entity, predicate: str) -> Fact:
    return _relation(entity, obj, predicate, f"{do(entity)} {entity.the} have {obj.there}?")
