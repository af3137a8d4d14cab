"""A sample as people look at it, on sheets and on the page: a grid of cells, each a picture with words below."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from twinset.cards.word_diff import Marked

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
