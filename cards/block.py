"""A sample as people look at it, on sheets and on the page: a grid of cells, each a picture with words below."""

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

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


Outline = Literal["", "right", "reference", "other"]
LONGEST_TEXT = 2_000  # characters that are shown


@dataclass(frozen=True, slots=True)
class Cell:
    """One place of a block; without image and words it stays empty.

    label: what it is, above the picture; empty for none. image: encoded. words: below the picture, each with whether it
    is marked. side: 0 or 1, the colour of the marks. outline: around the picture, ``right`` for the right answer.
    """

    label: str = ""
    image: bytes | None = None
    words: Marked = ()
    side: int = 0
    outline: Outline = ""


@dataclass(frozen=True, slots=True)
class Block:
    """One sample. cells: in reading order, ``columns`` side by side. note: small print besides the key."""

    key: str
    cells: Sequence[Cell]
    columns: int
    note: str


def in_group(key: str, group: str) -> list[str]:
    """The group of a sample for its small print; nothing where the sample is a group by itself."""
    return [f"group {group}"] if group != key else []


def words(text: str, marked: bool = False) -> Marked:
    """The words of a text, cut where it is very long, all marked or none."""
    return [(word, marked) for word in text[:LONGEST_TEXT].split()]
