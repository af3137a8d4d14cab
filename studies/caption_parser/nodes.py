"""Trees that are put together from the head: nodes with what stands before and after them."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from studies.caption_parser.trees import Sentence, Token

_POS = {
    "NN": "NOUN", "NNS": "NOUN", "NNP": "PROPN", "JJ": "ADJ", "RB": "ADV", "IN": "ADP", "DT": "DET", "CD": "NUM",
    "PRP": "PRON", "PRP$": "PRON", "WP": "PRON", "WDT": "PRON", "EX": "PRON", "CC": "CCONJ", "TO": "PART",
    "POS": "PART", "RP": "ADP", ".": "PUNCT", ",": "PUNCT", "HYPH": "PUNCT",
}  # fmt: skip


@dataclass(slots=True)
class Node:
    """A word with its dependents, in the order in which they stand."""

    form: str
    tag: str
    lemma: str
    pos: str
    label: str = ""
    before: list[Node] = field(default_factory=list)
    after: list[Node] = field(default_factory=list)

    def add(self, label: str, node: Node) -> Node:
        """Put a dependent behind what is there, and return self."""
        node.label = label
        self.after.append(node)
        return self

    def add_before(self, label: str, node: Node) -> Node:
        """Put a dependent first, and return self."""
        node.label = label
        self.before.insert(0, node)
        return self


def word(form: str, tag: str, lemma: str = "", pos: str = "") -> Node:
    """A node without dependents."""
    return Node(form, tag, lemma or form.lower(), pos or _POS.get(tag, "VERB"))


def sentence_of(root: Node) -> Sentence:
    """The words of a tree in order."""
    found: Sentence = []
    places: dict[int, int] = {}

    def visit(node: Node) -> None:
        for child in node.before:
            visit(child)
        places[id(node)] = len(found)
        found.append(Token(node.form, node.lemma, node.tag, node.pos, -1, node.label))
        for child in node.after:
            visit(child)

    def link(node: Node) -> None:
        for child in (*node.before, *node.after):
            found[places[id(child)]].head = places[id(node)]
            link(child)

    visit(root)
    link(root)
    at = places[id(root)]
    found[at].head, found[at].label = at, "ROOT"
    for before, after in pairwise(found):
        before.space = after.tag not in (".", ",", "POS", "HYPH") and before.tag != "HYPH"
    return found
