"""Draws the captions of EQ-SD: what changes, in which wording, with near-uniform statistics (EqBen, Figure 15)."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from itertools import count, permutations
from typing import Literal

from generators.edited_pairs.vocabulary import KINDS, CaptionVocabulary, Kind
from generators.even_sampling import Balance
from manifests.canonical import generator_for


@dataclass(frozen=True, slots=True)
class DrawnEdit:
    """The index-th pair of a stream; tuples are of image 0 and image 1.

    row: of the vocabulary. words: what the captions differ in, "" where it is left out. region: the words that name the
    edited thing, None where the whole picture changes. plain: the image that is drawn from its caption alone; the other
    one is its edited version.
    """

    index: int
    kind: Kind
    row: int
    captions: tuple[str, str]
    words: tuple[str, str]
    region: tuple[str, str] | None
    plain: Literal[0, 1]


def draw_edits(vocabulary: CaptionVocabulary, seed: int, subset: str) -> Iterator[DrawnEdit]:
    """An endless stream of pairs, the same for the same arguments: asking for more keeps the first ones.

    Kinds come equally often, and so do the rows of a kind and the words of a row. Captions that come again are drawn
    from another noise. Either image can be the edited one, so that no side betrays itself by traces of editing; of two
    captions with and without a phrase it is always the one with it, which prompt-to-prompt adds.
    """
    balance = Balance(generator_for(seed, subset, "captions"))
    for index in count():
        kind = balance.pick("kind", KINDS)
        number = balance.pick(f"row of {kind}", vocabulary.of_kind(kind))
        row = vocabulary.rows[number]
        words = balance.pick(f"{number} changes", list(permutations(row.words[row.changes], 2)))
        chosen: dict[str, str] = {}
        given: list[Hashable] = [words]
        for slot, options in row.words.items():
            if slot != row.changes:
                chosen[slot] = balance.pick(f"{number} {slot}", options, *given)
                given.append((*given, chosen[slot]))
        sides = [{**chosen, row.changes: word} for word in words]
        plain = words.index("") if "" in words else balance.pick("plain", (0, 1), kind)
        yield DrawnEdit(
            index,
            kind,
            number,
            (row.caption(sides[0]), row.caption(sides[1])),
            words,
            None if row.region is None else (sides[0][row.region], sides[1][row.region]),
            1 if plain else 0,
        )
