"""What captions add to a noun, an adjective before it or a thing behind it, and where the like can be added."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from twinset.generators.exchanged_negatives.sites import (
    GIVEN,
    PLURAL,
    Site,
    is_joined,
    is_thing,
    says_what_is_seen,
    site,
)
from twinset.generators.exchanged_negatives.vocabulary import Exchanges
from twinset.generators.negative_captions.rules.nouns import is_idiom, name_of
from twinset.generators.negative_captions.rules.vocabulary import Vocabulary

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

_BEFORE = ("a", "an", "the", "some", "his", "her", "their")
_MODIFIERS = ("amod", "nummod", "nmod", "compound")
_ROLES = ("nsubj", "nsubjpass", "dobj", "pobj", "conj", "ROOT", "attr")
_SUBJECTS = ("nsubj", "nsubjpass", "ROOT")
_WHERE = ("on", "in", "at")
_COUNTED = ("a", "an", "some", "two", "three")


def additions_of(doc: Doc, words: Exchanges, rules: Vocabulary) -> Iterator[Site]:
    """Sites of both kinds. Pools: nouns of people, others that live, and things; for phrases also what follows."""
    if not says_what_is_seen(doc, words):
        return
    nouns = [token for token in doc if is_thing(token, rules)]
    for noun in nouns:
        if name_of(noun) not in rules.people:
            yield from _adjective(noun, words, rules)
    told = any(token.lower_ in words.pronouns or token.lower_ in ("it", "its") for token in doc)
    for noun in nouns if not told else ():
        yield from _phrase(noun, words, rules)


def _kind(noun: Token, rules: Vocabulary) -> str:
    """Whether a noun is of people, others that live, or neither."""
    name = name_of(noun)
    return "people" if name in rules.people else "beings" if name in rules.beings else "things"


def _adjective(noun: Token, words: Exchanges, rules: Vocabulary) -> Iterator[Site]:
    modifiers = [child for child in noun.children if child.dep_ in _MODIFIERS]
    first = modifiers[0] if modifiers else noun
    stands = noun.tag_ in PLURAL and not any(child.dep_ == "det" for child in noun.children)
    part = noun.head.lower_ == "of" and noun.head.head.lower_ == "pair"
    if noun.dep_ not in _ROLES or part or not (stands or (first.i and first.nbor(-1).lower_ in _BEFORE)):
        return
    pool = f"{_kind(noun, rules)} {noun.tag_ in PLURAL:d}"
    if not modifiers:
        yield site("add_att", pool, "", noun, noun, name_of(noun))._replace(word="", end=noun.idx)
    elif len(modifiers) == 1 and first.i == noun.i - 1 and not is_joined(first):
        for klass, name in words.adjectives.get(first.lower_, ()):
            if klass in words.added:
                found = site(GIVEN["add_att"], pool, name, first, first, name_of(noun))
                yield found._replace(before=klass, size=1)
                return


def _phrase(noun: Token, words: Exchanges, rules: Vocabulary) -> Iterator[Site]:
    """Behind a noun that has nothing there, or of what stands there: "next to a small dog"."""
    unknown = name_of(noun) in words.anyone or (noun.tag_ in PLURAL and name_of(noun) in rules.people)
    joined = any(child.dep_ == "conj" for child in noun.children)
    behind = noun.dep_ == "pobj" and any(one[-1] == noun.head.lower_ for one in words.companions)
    if noun.dep_ == "conj" or behind or unknown or (joined and noun.doc[noun.i + 1 : noun.i + 2].text.lower() != "and"):
        return
    kind = _kind(noun, rules)
    if follows := _follows(noun, noun.i + 1):
        if any(child.dep_ == "det" for child in noun.children):
            start, pool = noun.idx + len(noun), f"{kind} {follows}"
            found = site("add_obj", pool, "", noun, noun, name_of(noun))
            yield found._replace(word="", start=start, end=start, after=kind)
        return
    phrase = next((one for one in words.companions if _stands(noun.doc, noun.i + 1, one)), ())
    start = noun.i + 1 + len(phrase)
    end = next((at for at in range(start + 1, min(start + 3, len(noun.doc))) if noun.doc[at].dep_ != "amod"), start)
    if not phrase or end == start or noun.doc[start].lower_ not in _COUNTED:
        return
    thing, follows = noun.doc[end], _follows(noun, end + 1)
    name = _named(thing, words, rules)
    fits = bool(follows) and not (phrase == ("and",) and follows in ("verb", "end"))
    if name and fits and all(child.i < end or (child.i == end + 1 and follows == "where") for child in thing.children):
        found = site(GIVEN["add_obj"], f"{kind} {follows}", name, noun.doc[noun.i + 1], thing, name_of(noun))
        yield found._replace(before=phrase[0], after=kind, size=end - noun.i)


def _follows(noun: Token, at: int) -> str:
    """What comes where something else can be put behind a noun: nothing more, or what a subject does or where it is."""
    rest = noun.doc[at:]
    if all(token.is_punct or token.is_space for token in rest):
        return "end"
    if noun.dep_ not in _SUBJECTS:
        return ""
    if rest[0].lower_ in _WHERE:
        return "where"
    return {"VBG": "-ing", "VBZ": "verb", "VBP": "verb"}.get(rest[0].tag_, "")


def _stands(doc: Doc, at: int, phrase: tuple[str, ...]) -> bool:
    return tuple(token.lower_ for token in doc[at : at + len(phrase)]) == phrase


def _named(thing: Token, words: Exchanges, rules: Vocabulary) -> str:
    """The name of a thing that a caption would have named; empty of others."""
    if thing.tag_ not in ("NN", *PLURAL) or not is_thing(thing, rules) or is_idiom(thing, rules):
        return ""
    name = name_of(thing)
    return next((shared for klass, shared in words.nouns.get(name, ()) if klass in words.named), "")
