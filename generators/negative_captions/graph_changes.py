"""How many things of the scene graph a negative caption changes: a replacement or an addition must change one.

Counting words is not enough: "a black dog" and "a white cat" differ in two words side by side, and in two things.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any, NamedTuple

from twinset.generators.negative_captions.kinds import NegativeKind

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

_ROLES = ("object", "attribute", "relation")
_ARTICLES = ("a", "an", "the")
_NOUNS = ("NOUN", "PROPN")
#: Which of these stands before a noun, the noun says: "in chairs", "on couches".
_WITHIN = frozenset(("in", "on", "at", "into", "onto", "inside", "of"))
#: Parts of a place, which are no things of their own.
_PLACES = frozenset(
    (
        *("side", "top", "bottom", "front", "back", "middle", "center", "centre", "edge", "corner", "end"),
        *("background", "foreground", "distance"),
    )
)


class GraphPart(NamedTuple):
    """What a word is a part of.

    role: one of `_ROLES`. lemma: of its head. place: of its head in the caption. tells: whether it only tells where
    another thing is, as the wall in "a picture on the wall".
    """

    role: str
    lemma: str
    place: int
    tells: bool = False


@dataclass(frozen=True, slots=True)
class Graph:
    """The words of a caption without articles and punctuation, and what each is a part of in its scene graph."""

    tokens: tuple[str, ...]
    things: tuple[GraphPart | None, ...]


def graph_of(doc: Doc, parsed: Mapping[str, Any]) -> Graph:
    """The graph of a caption.

    Args:
        doc: spaCy's parse.
        parsed: what `sng_parser` makes of it.
    """
    roots = [doc[slice(*one["span_bounds"])].root for one in parsed["entities"]]
    heads = {root.i for root in roots if root.pos_ in _NOUNS}
    kept = [token for token in doc if not token.is_punct and not token.is_space and token.lower_ not in _ARTICLES]
    return Graph(tuple(token.lower_ for token in kept), tuple(_things(kept, heads)))


def _things(tokens: Sequence[Token], heads: Collection[int]) -> Iterator[GraphPart | None]:
    relation: GraphPart | None = None  # that goes on: "standing right next to" is one
    for token in tokens:
        thing = None
        noun = token.head if token.dep_ == "compound" else token
        if noun.i in heads:
            noun, relation = _whole(noun, heads), None
            thing = GraphPart("object", noun.lemma_.lower(), noun.i, _tells(noun))
            thing = None if noun.lemma_.lower() in _PLACES else thing
        elif token.pos_ in ("ADJ", "NUM"):
            thing, relation = GraphPart("attribute", token.lower_, token.i), None
        elif token.pos_ == "VERB":
            thing = relation = GraphPart("relation", token.lemma_.lower(), token.i)
        elif token.pos_ == "ADP" and token.lower_ not in _WITHIN:
            thing = relation = relation or GraphPart("relation", token.lower_, token.i)
        yield thing


def _whole(noun: Token, heads: Collection[int]) -> Token:
    """The slice of a slice of pizza: what something is of is the same thing."""
    while noun.dep_ == "pobj" and noun.head.lower_ == "of" and noun.head.head.i in heads:
        noun = noun.head.head
    return noun


def _tells(noun: Token) -> bool:
    return bool(noun.dep_ == "pobj" and noun.head.lower_ not in ("with", "without", "of"))


def things_changed(kind: NegativeKind, caption: Graph, negative: Graph) -> int:
    """How many things of a scene graph differ where a caption was replaced or added to; 1 for a swap or a negation.

    What only one of both has beside an object that is replaced goes with that object, as in "a dog" and "a small cat".
    What is added with another thing, to say where that is, is not counted.
    """
    if kind.type in ("swap", "negate"):
        return 1
    found = 0
    for what, a, b, c, d in SequenceMatcher(None, caption.tokens, negative.tokens, autojunk=False).get_opcodes():
        if what == "equal":
            continue
        gone, come = _lemmas(caption.things[a:b]), _lemmas(negative.things[c:d])
        found += sum(min((gone[role] - come[role]).total(), (come[role] - gone[role]).total()) for role in _ROLES)
        added = {
            one.place for one in negative.things[c:d] if one is not None and one.role == "object" and not one.tells
        }
        found += max(0, len(added) - max(gone["object"].total(), 1)) + (kind.type == "add")
    return found


def _lemmas(things: Iterable[GraphPart | None]) -> dict[str, Counter[str]]:
    """Lemmas of things by role, each thing once."""
    each = {one for one in things if one is not None}
    return {role: Counter(one.lemma for one in each if one.role == role) for role in _ROLES}
