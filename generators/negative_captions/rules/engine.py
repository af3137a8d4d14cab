"""The rules at work: every change that they know for a caption, and one of them by chance."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from twinset.generators.negative_captions.rules import replace, swap
from twinset.generators.negative_captions.rules.nouns import Edit, article_of, edited, nouns, said
from twinset.generators.negative_captions.rules.replace import Proposal
from twinset.generators.negative_captions.rules.vocabulary import Vocabulary

if TYPE_CHECKING:
    from spacy.tokens import Doc


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
    "replace_obj": replace.objects,
    "replace_att": replace.attributes,
    "replace_rel": replace.relations,
    "swap_obj": swap.objects,
    "swap_att": swap.attributes,
    "add_obj": added_objects,
    "add_att": added_attributes,
}


def negative(kind: str, doc: Doc, words: Vocabulary, random: np.random.Generator) -> str | None:
    """One negative of a parsed caption; None where the rules of the kind find nothing to change.

    First one of the places is drawn, then one of the changes there: a place with many substitutes weighs no more.
    In captions that are mostly in another script there is none: parse and words are English.
    """
    if not _mostly_latin(doc.text):
        return None
    places: dict[tuple[int, ...], list[Proposal]] = {}
    for proposal in RULES[kind](doc, words):
        places.setdefault(tuple(edit.start for edit in proposal), []).append(proposal)
    if not places:
        return None
    choices = list(places.values())[random.integers(len(places))]
    return edited(doc.text, choices[random.integers(len(choices))])


def _mostly_latin(text: str) -> bool:
    letters = [ord(one) for one in text if one.isalpha()]
    return 2 * sum(one < 0x250 or 0x1E00 <= one < 0x1F00 for one in letters) > len(letters)
