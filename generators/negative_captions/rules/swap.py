"""Swapped words: two objects of a directed relation, or the attributes of two objects."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import TYPE_CHECKING

from twinset.generators.negative_captions.rules.nouns import (
    Edit,
    actor_of,
    head_noun,
    is_idiom,
    name_of,
    nouns,
    replacing,
)
from twinset.generators.negative_captions.rules.replace import Proposal
from twinset.generators.negative_captions.rules.vocabulary import Vocabulary

if TYPE_CHECKING:
    from spacy.tokens import Doc, Span, Token

_PLURAL = ("NNS", "NNPS")


def objects(doc: Doc, words: Vocabulary) -> Iterator[Proposal]:
    """Subject and object of a relation with a direction change places ("a man riding a horse")."""
    chunks = {chunk.root.i: chunk for chunk in doc.noun_chunks if _movable(chunk, words)}
    for subject, object_ in _related(doc, words):
        first, second = chunks.get(subject.i), chunks.get(object_.i)
        if first is None or second is None or first.end > second.start or _number(first) != _number(second):
            continue
        by_verb = object_.dep_ == "dobj" or object_.head.head.pos_ == "VERB"
        if by_verb and (name_of(subject) in words.beings) != (name_of(object_) in words.beings):
            continue  # "the ball kicks a man"
        if name_of(second.root) not in words.synonyms.get(name_of(first.root), {name_of(first.root)}):
            yield (_moved(first, second), _moved(second, first))


def _related(doc: Doc, words: Vocabulary) -> Iterator[tuple[Token, Token]]:
    """Subjects and objects of verbs and of prepositions that have a direction."""
    for token in doc:
        if token.dep_ == "dobj" and token.head.lower_ not in words.unswappable:
            subject = actor_of(token.head)
        elif token.dep_ == "pobj" and token.head.lower_ not in words.unswappable and token.head.dep_ == "prep":
            holder = token.head.head
            if holder.dep_ in ("prep", "advmod"):  # "on top of", "next to"
                continue
            has_object = any(child.dep_ == "dobj" for child in holder.children)
            subject = holder if holder.pos_ == "NOUN" else None if has_object else actor_of(holder)
        else:
            continue
        if subject is not None and not {subject.dep_, *(child.dep_ for child in subject.children)} & {"conj"}:
            yield subject, token


def attributes(doc: Doc, words: Vocabulary) -> Iterator[Proposal]:
    """The adjectives of two nouns change places; a colour moves to a noun that never has it."""
    found = [token for token in doc if (head := head_noun(token)) is not None and _is_visible(token, head, words)]
    for first, second in combinations(found, 2):
        if first.head == second.head or name_of(first.head) == name_of(second.head):
            continue
        if {_sort(first, words), _sort(second, words)} == {"large", "small"} or (
            first.lower_ != second.lower_ and first.lower_ in words.colours and second.lower_ in words.colours
        ):
            yield (replacing(first, second.lower_), replacing(second, first.lower_))
    for adjective in found:
        alone = sum(child.dep_ == "amod" for child in adjective.head.children) == 1
        if not alone or adjective.head.i != adjective.i + 1:
            continue
        for noun in nouns(doc, words):
            bare = not any(child.dep_ == "amod" for child in noun.token.children)
            if bare and noun.token != adjective.head and adjective.lower_ in words.moves.get(noun.group.name, ()):
                taken = Edit(adjective.idx, adjective.head.idx, "")
                yield (taken, Edit(noun.token.idx, noun.token.idx, f"{adjective.lower_} "))


def _movable(chunk: Span, words: Vocabulary) -> bool:
    """Whether a phrase is a whole one of something that can be seen, and nothing binds it to its place."""
    root = chunk.root
    after = root.doc[chunk.end].lower_ if chunk.end < len(root.doc) else ""
    determined = any(child.dep_ in ("det", "nummod") for child in root.children) or root.tag_ in _PLURAL
    bound = any(token.dep_ == "poss" or token.lower_ in ("other", "another", "each", "there") for token in chunk)
    seen = name_of(root) in words.groups or name_of(root) in words.beings
    return seen and determined and not bound and after not in ("of", "and") and not is_idiom(root, words)


def _number(chunk: Span) -> bool:
    return chunk.root.tag_ in _PLURAL


def _moved(to: Span, chunk: Span) -> Edit:
    """A phrase in the place of another, without the capital that it had at the caption's beginning."""
    text = chunk.text
    if chunk.start == 0 and (chunk[0].text == "A" or not chunk[0].text.isupper()):
        text = text[0].lower() + text[1:]
    return Edit(to.start_char, to.end_char, text)


def _is_visible(adjective: Token, head: Token, words: Vocabulary) -> bool:
    joined = any(one.lower_ == "and" for one in adjective.doc[max(adjective.i - 1, 0) : adjective.i + 2])
    return bool(_sort(adjective, words)) and not joined and not is_idiom(head, words)


def _sort(adjective: Token, words: Vocabulary) -> str:
    """``colour``, ``large``, ``small``, or empty for other adjectives."""
    return "colour" if adjective.lower_ in words.colours else words.sizes.get(adjective.lower_, "")
