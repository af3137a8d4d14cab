"""Added words: an object beside the last one, an attribute that an object is not said to have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from twinset.generators.negative_captions.rules.nouns import nouns, said
from twinset.generators.negative_captions.rules.replace import Proposal
from twinset.generators.negative_captions.rules.vocabulary import Vocabulary
from twinset.generators.negative_captions.rules.wording import Edit, article_of

if TYPE_CHECKING:
    from spacy.tokens import Doc


def objects(doc: Doc, words: Vocabulary) -> Iterator[Proposal]:
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


def attributes(doc: Doc, words: Vocabulary) -> Iterator[Proposal]:
    """A noun without an adjective gets one that such things hardly ever have."""
    met = {token.lower_ for token in doc}
    for noun in nouns(doc, words):
        if any(child.dep_ == "amod" for child in noun.token.children):
            continue
        for word in noun.group.attributes:
            if word not in met:
                yield (Edit(noun.token.idx, noun.token.idx, f"{word} "),)
