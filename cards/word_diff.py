"""Captions as words, and what differs between two of them."""

import difflib
import re
from collections.abc import Sequence
from functools import lru_cache

#: Words of a caption, each with whether it is marked.
Marked = Sequence[tuple[str, bool]]

_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_EDGES = re.compile(r"^\W+|\W+$")


def mark_difference(caption0: str, caption1: str) -> tuple[Marked, Marked]:
    """Both captions as (word, differs) lists. Case and punctuation around a word do not count as a difference."""
    words0, words1 = caption0.split(), caption1.split()
    bare0, bare1 = ([_EDGES.sub("", word).lower() for word in words] for words in (words0, words1))
    marked0, marked1 = [(word, True) for word in words0], [(word, True) for word in words1]
    for block in difflib.SequenceMatcher(None, bare0, bare1, autojunk=False).get_matching_blocks():
        for marked, words, start in ((marked0, words0, block.a), (marked1, words1, block.b)):
            marked[start : start + block.size] = [(word, False) for word in words[start : start + block.size]]
    return marked0, marked1


@lru_cache(maxsize=65_536)  # captions repeat: every frame of YouCook2 stands in many pairs
def words_of(caption: str) -> tuple[str, ...]:
    """The words of a caption in lower case, without punctuation."""
    return tuple(word.lower() for word in _WORD.findall(caption))
