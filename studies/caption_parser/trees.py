"""Sentences with ClearNLP-style dependency trees, and spaCy's documents made of them."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spacy.tokens import Doc
    from spacy.vocab import Vocab


@dataclass(slots=True)
class Token:
    """A word of a sentence.

    tag: Penn Treebank's. pos: Universal Dependencies' part of speech. head: position of its head in the sentence; its
    own for the root. label: ClearNLP's, as in spaCy's English pipelines. space: whether a space follows.
    """

    form: str
    lemma: str
    tag: str
    pos: str
    head: int
    label: str
    space: bool = True


Sentence = list[Token]
SIZES = (1, 1, 1, 2, 3)  # sentences a document; most captions are one sentence


def is_tree(sentence: Sequence[Token]) -> bool:
    """Whether every token reaches the one root."""
    roots = [at for at, token in enumerate(sentence) if token.head == at]
    for at in range(len(sentence)):
        steps = 0
        while sentence[at].head != at:
            at, steps = sentence[at].head, steps + 1
            if steps > len(sentence):
                return False
    return len(roots) == 1


def without(sentence: Sentence, dropped: Iterable[int]) -> Sentence:
    """A sentence without some of its tokens; what hangs on a dropped one hangs on its nearest kept ancestor.

    The root must be kept. The tokens are changed in place.
    """
    gone = set(dropped)
    kept = [at for at in range(len(sentence)) if at not in gone]
    place = {at: new for new, at in enumerate(kept)}
    for at in kept:
        head = sentence[at].head
        while head in gone:
            head = sentence[head].head
        sentence[at].head = head
        if at and at - 1 in gone and sentence[at].pos == "PUNCT" and place[at]:
            sentence[kept[place[at] - 1]].space = False
    found = [sentence[at] for at in kept]
    for token in found:
        token.head = place[token.head]
    return found


def as_doc(vocab: Vocab, sentences: Sequence[Sentence]) -> Doc:
    """One document of one or more sentences."""
    from spacy.tokens import Doc

    tokens: list[Token] = []
    heads: list[int] = []
    starts: list[bool] = []
    spaces: list[bool] = []
    for sentence in sentences:
        first = len(tokens)
        tokens += sentence
        heads += [first + token.head for token in sentence]
        starts += [at == 0 for at in range(len(sentence))]
        spaces += [token.space for token in sentence]
        spaces[-1] = True
    return Doc(
        vocab,
        words=[token.form for token in tokens],
        spaces=spaces,
        tags=[token.tag for token in tokens],
        pos=[token.pos for token in tokens],
        lemmas=[token.lemma for token in tokens],
        heads=heads,
        deps=[token.label for token in tokens],
        sent_starts=starts,  # type: ignore[arg-type]  # spaCy also takes booleans
    )


def documents(vocab: Vocab, sentences: Iterable[Sentence], rng: random.Random) -> list[Doc]:
    """Documents of one to three sentences, so that a parser learns to tell sentences apart."""
    found: list[Doc] = []
    held: list[Sentence] = []
    for sentence in sentences:
        held.append(sentence)
        if len(held) >= rng.choice(SIZES):
            found.append(as_doc(vocab, held))
            held = []
    if held:
        found.append(as_doc(vocab, held))
    return found
