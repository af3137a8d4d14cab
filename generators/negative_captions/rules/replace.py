"""Replaced words: another object, another attribute, another relation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from twinset.generators.negative_captions.rules.nouns import (
    Edit,
    actor_of,
    head_noun,
    is_idiom,
    name_of,
    nouns,
    plural_of,
    replacing,
    said,
)
from twinset.generators.negative_captions.rules.vocabulary import Preposition, Vocabulary

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

Proposal = tuple[Edit, ...]
#: Behind a verb they belong to it: another verb does not go with them.
_DIRECTIONS = ("up", "out", "after", "across", "into", "off", "away", "around", "back", "through", "at", "for", "to")


def objects(doc: Doc, words: Vocabulary) -> Iterator[Proposal]:
    """A noun becomes another of its group."""
    met = said(doc, words)
    for noun in nouns(doc, words):
        for names in noun.group.names:
            if noun.name not in names and not met & {*names}:
                yield (replacing(noun.token, plural_of(names[0]) if noun.plural else names[0]),)


def attributes(doc: Doc, words: Vocabulary) -> Iterator[Proposal]:
    """An adjective becomes its opposite, a colour another one, a number another one."""
    met = {token.lower_ for token in doc}
    for token in doc:
        head = head_noun(token)
        if token.dep_ == "nummod" and token.head.tag_ == "NNS" and not is_idiom(token.head, words):
            instead = words.numbers.get(token.lower_, ())
        elif head is None or is_idiom(head, words) or (token.i and token.nbor(-1).lower_ in ("very", "lush", "-")):
            continue
        elif token.lower_ in words.colours:
            if any(child.dep_ in ("cc", "conj") for child in token.children):
                continue  # "black and white"
            instead = tuple(dict.fromkeys(words.colours.values()))
        elif name_of(head) in words.people and token.lower_ in words.of_people:
            instead = words.of_people[token.lower_]
        else:
            instead = words.opposites.get(token.lower_, ())
        for word in instead:
            barred = head is not None and name_of(head) in words.never.get(word, ())
            if word not in met and words.colours.get(token.lower_, "") != word and not barred:
                yield (replacing(token, word),)


def relations(doc: Doc, words: Vocabulary) -> Iterator[Proposal]:
    """A preposition or a verb becomes another."""
    for token in doc:
        yield from _prepositions(doc, token, words)
        yield from _verbs(token, words)


def _prepositions(doc: Doc, token: Token, words: Vocabulary) -> Iterator[Proposal]:
    matching = [one for one in words.prepositions if _stands_at(doc, token.i, one)]
    longest = max((len(one.words) for one in matching), default=0)
    for one in matching:
        if len(one.words) < longest:
            continue
        last = doc[token.i + longest - 1]
        noun = next((child for child in last.children if child.dep_ == "pobj"), None)
        if noun is None or noun.pos_ != "NOUN" or is_idiom(noun, words):
            continue
        group = words.groups.get(name_of(noun))
        if one.among and (group is None or group.name not in one.among):
            continue
        if token.head.lemma_.lower() in one.unless:
            continue
        for instead in one.instead:
            yield (Edit(token.idx, last.idx + len(last), instead),)
        return  # the first that fits counts


def _stands_at(doc: Doc, start: int, one: Preposition) -> bool:
    found = doc[start : start + len(one.words)]
    if tuple(token.lower_ for token in found) != one.words:
        return False
    # "on top of", not "on" of "sitting on top of"; and no particle ("turn on the light")
    after = doc[start + len(one.words)] if start + len(one.words) < len(doc) else None
    return found[-1].dep_ == "prep" and after is not None and after.dep_ not in ("pcomp", "prep")


def _verbs(token: Token, words: Vocabulary) -> Iterator[Proposal]:
    if token.tag_ not in ("VBG", "VBZ") or token.dep_ in ("compound", "amod", "aux"):
        return
    verb = words.verbs.get(token.lemma_.lower())
    if verb is None or any(child.dep_ in ("prt", "neg") for child in token.children):
        return
    if token.i + 1 < len(token.doc) and token.nbor().lower_ in _DIRECTIONS:
        return
    object_ = any(child.dep_ == "dobj" and child.pos_ == "NOUN" for child in token.children)
    if verb.object is not None and object_ is not verb.object:
        return
    actor = actor_of(token)
    allowed = {"people": words.people, "beings": words.beings}.get(verb.by)
    if allowed is not None and (actor is None or name_of(actor) not in allowed):
        return
    for ing, third in verb.instead:
        yield (replacing(token, ing if token.tag_ == "VBG" else third),)
