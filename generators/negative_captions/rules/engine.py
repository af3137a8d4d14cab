"""The rules at work: every change that they know for a caption, and one of them by chance."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from twinset.generators.negative_captions.rules import add, replace, swap
from twinset.generators.negative_captions.rules.replace import Proposal
from twinset.generators.negative_captions.rules.vocabulary import Vocabulary
from twinset.generators.negative_captions.rules.wording import edited

if TYPE_CHECKING:
    from spacy.tokens import Doc

RULES: Mapping[str, Callable[[Doc, Vocabulary], Iterator[Proposal]]] = {
    "replace_obj": replace.objects,
    "replace_att": replace.attributes,
    "replace_rel": replace.relations,
    "swap_obj": swap.objects,
    "swap_att": swap.attributes,
    "add_obj": add.objects,
    "add_att": add.attributes,
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
