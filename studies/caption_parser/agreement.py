"""Captions on whose whole tree two pipelines agree: more sentences to learn from, of which few are wrong.

Labels and parts of speech that the two schemes of annotation tell apart differently count as the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from studies.caption_parser.trees import Sentence, Token

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc
    from spacy.tokens import Token as Word

SHORTEST, LONGEST = 5, 25  # tokens
_LABELS = {
    "attr": "object", "dobj": "object", "acomp": "object", "amod": "modifier", "compound": "modifier",
    "nmod": "modifier", "nummod": "modifier", "prt": "advmod", "npadvmod": "advmod", "agent": "prep",
    "xcomp": "clause", "ccomp": "clause", "advcl": "clause", "aux": "aux", "auxpass": "aux", "nsubjpass": "nsubj",
    "predet": "det", "relcl": "acl",
}  # fmt: skip
_POS = {
    "PROPN": "NOUN",
    "AUX": "VERB",
    "SCONJ": "ADP",
    "ADV": "ADP",
    "PART": "ADP",
    "NUM": "DET",
    "ADJ": "DET",
    "PRON": "DET",
}


def agreed(captions: Iterable[str], first: Language, second: Language) -> Iterator[Sentence]:
    """The trees of the first pipeline, of the captions on which the second agrees; lemmas are the second's."""
    texts = list(captions)
    for one, other in zip(first.pipe(texts), second.pipe(texts), strict=True):
        if SHORTEST <= len(one) <= LONGEST and is_plausible(one) and same_tree(one, other):
            yield [
                Token(
                    token.text, _lemma(twin), token.tag_, token.pos_, token.head.i, token.dep_, bool(token.whitespace_)
                )
                for token, twin in zip(one, other, strict=True)
            ]  # fmt: skip


def same_tree(one: Doc, other: Doc) -> bool:
    """Whether two documents of one caption have the same words, heads and labels; punctuation may hang elsewhere."""
    if [token.text for token in one] != [token.text for token in other]:
        return False
    trees = [_normalised(doc) for doc in (one, other)]
    there = any(token.dep_ == "expl" for token in one)  # "there is a dog": subject in one scheme, object in the other
    for token, twin, (head, label), (its_head, its_label) in zip(one, other, *trees, strict=True):
        if label == its_label == "punct":
            continue
        labels = {_LABELS.get(name, name) for name in (label, its_label)}
        if head != its_head or (len(labels) > 1 and not (there and labels == {"nsubj", "object"})):
            return False
        if _POS.get(token.pos_, token.pos_) != _POS.get(twin.pos_, twin.pos_):
            return False
    return True


def _normalised(doc: Doc) -> list[tuple[int, str]]:
    """Head and label of each token as the treebank's conversion has them: all conjuncts and the conjunction hang on
    the first one, and a noun with a participle is the head of it ("a dog running")."""
    found = []
    for token in doc:
        head = token.head
        while token.dep_ in ("conj", "cc") and head.dep_ == "conj":
            head = head.head
        found.append((head.i, token.dep_))
    for root in (token for token in doc if token.head == token and token.tag_ in ("VBG", "VBN")):
        labels = [child.dep_ for child in root.children]
        if labels.count("nsubj") == 1 and not {"aux", "auxpass"} & set(labels):
            subject = next(child for child in root.children if child.dep_ == "nsubj")
            found[subject.i], found[root.i] = (subject.i, "ROOT"), (subject.i, "acl")
    return found


def is_plausible(doc: Doc) -> bool:
    """Whether a parse has one root and no mistake that shows by itself.

    Such are ``a`` before a plural or a finite verb, as where *pounces* was taken for a noun; a space as a token; and a
    dependency without a label (``dep``).
    """
    if sum(token.head == token for token in doc) != 1:
        return False
    return not any(
        token.dep_ == "det" and token.lower_ in ("a", "an") and token.head.tag_ in ("NNS", "NNPS", "VBZ", "VBP")
        for token in doc
    ) and not any(token.is_space or token.dep_ == "dep" for token in doc)


def _lemma(token: Word) -> str:
    return "a" if token.lower_ == "an" else token.lemma_
