"""The rules: words replaced, swapped and added; every change that they know for a caption, and one by chance."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from twinset.generators.negative_captions.rules.nouns import (
    Edit,
    actor_of,
    article_of,
    edited,
    head_noun,
    is_idiom,
    name_of,
    nouns,
    plural_of,
    replacing,
    said,
)
from twinset.generators.negative_captions.rules.vocabulary import Preposition, Vocabulary
from twinset.generators.scene_graphs.relations import places_in

if TYPE_CHECKING:
    from spacy.tokens import Doc, Span, Token


Proposal = tuple[Edit, ...]
#: Behind a verb they belong to it: another verb does not go with them.
_DIRECTIONS = ("up", "out", "after", "across", "into", "off", "away", "around", "back", "through", "at", "for", "to")


def replaced_objects(doc: Doc, words: Vocabulary) -> Iterator[Proposal]:
    """A noun becomes another of its group."""
    met = said(doc, words)
    for noun in nouns(doc, words):
        for names in noun.group.names:
            if noun.name not in names and not met & {*names}:
                yield (replacing(noun.token, plural_of(names[0]) if noun.plural else names[0]),)


def replaced_attributes(doc: Doc, words: Vocabulary) -> Iterator[Proposal]:
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


def replaced_relations(doc: Doc, words: Vocabulary) -> Iterator[Proposal]:
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


def swapped_objects(doc: Doc, words: Vocabulary) -> Iterator[Proposal]:
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


def swapped_attributes(doc: Doc, words: Vocabulary) -> Iterator[Proposal]:
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
    determined = any(child.dep_ in ("det", "nummod") for child in root.children) or root.tag_ in ("NNS", "NNPS")
    bound = any(token.dep_ == "poss" or token.lower_ in ("other", "another", "each", "there") for token in chunk)
    seen = name_of(root) in words.groups or name_of(root) in words.beings
    return seen and determined and not bound and after not in ("of", "and") and not is_idiom(root, words)


def _number(chunk: Span) -> bool:
    return chunk.root.tag_ in ("NNS", "NNPS")


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


def added_objects(doc: Doc, words: Vocabulary) -> Iterator[Proposal]:
    """Another object stands beside the last one that the caption names, where the caption ends with it."""
    chunks = list(doc.noun_chunks)
    if not chunks or chunks[-1].root.pos_ != "NOUN":
        return
    last, met = chunks[-1], said(doc, words)
    if any(not token.is_punct and not token.is_space for token in doc[last.end :]):
        return
    seen = last.root.lemma_.lower() in words.groups and "next" not in met
    for name in words.additions:
        if not met & {*name.split()}:
            added = f"{article_of(name)} {name}"
            yield (Edit(last.end_char, last.end_char, f" next to {added}" if seen else f" with {added} nearby"),)


def added_attributes(doc: Doc, words: Vocabulary) -> Iterator[Proposal]:
    """A noun without an adjective gets one that such things hardly ever have."""
    met = {token.lower_ for token in doc}
    for noun in nouns(doc, words):
        if any(child.dep_ == "amod" for child in noun.token.children):
            continue
        for word in noun.group.attributes:
            if word not in met:
                yield (Edit(noun.token.idx, noun.token.idx, f"{word} "),)


RULES: Mapping[str, Callable[[Doc, Vocabulary], Iterator[Proposal]]] = {
    "replace_obj": replaced_objects,
    "replace_att": replaced_attributes,
    "replace_rel": replaced_relations,
    "swap_obj": swapped_objects,
    "swap_att": swapped_attributes,
    "add_obj": added_objects,
    "add_att": added_attributes,
}


def negative(kind: str, doc: Doc, words: Vocabulary, random: np.random.Generator, caption: str = "") -> str | None:
    """One negative of a parsed caption; None where the rules of the kind find nothing to change.

    First one of the places is drawn, then one of the changes there: a place with many substitutes weighs no more.
    In captions that are mostly in another script there is none: parse and words are English. caption: with its own
    blanks, where the document's are others.
    """
    if not _mostly_latin(doc.text):
        return None
    places: dict[tuple[int, ...], list[Proposal]] = {}
    for proposal in RULES[kind](doc, words):
        places.setdefault(tuple(edit.start for edit in proposal), []).append(proposal)
    if not places:
        return None
    choices = list(places.values())[random.integers(len(places))]
    change: Sequence[Edit] = choices[random.integers(len(choices))]
    if caption:
        at = places_in(caption)
        change = [Edit(at[edit.start], at[edit.end], edit.text) for edit in change]
    return edited(caption or doc.text, change)


def _mostly_latin(text: str) -> bool:
    letters = [ord(one) for one in text if one.isalpha()]
    return 2 * sum(one < 0x250 or 0x1E00 <= one < 0x1F00 for one in letters) > len(letters)
