"""Strangers' text made to fit a picture: cut, wrapped and measured in Pillow's own font, which needs no system's."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from functools import cache

from PIL import ImageFont

from cards.word_diff import Marked

Font = ImageFont.FreeTypeFont | ImageFont.ImageFont

LONGEST_WORD = 200  # characters; more than fits in any width
LONGEST_TEXT = 2_000  # characters; more than fits in any number of lines here
ELLIPSIS = "..."


@cache
def font(size: int) -> Font:
    """Pillow's own font. It has no accents, which `plain` leaves out, and draws other scripts as boxes."""
    return ImageFont.load_default(size)


def plain(text: str) -> str:
    """One line without accents."""
    parts = unicodedata.normalize("NFKD", " ".join(text.split()))
    return "".join(letter for letter in parts if not unicodedata.combining(letter))


def fitted(text: str, face: Font, width: float) -> str:
    """As much of a line as fits in ``width`` pixels."""
    text = text[:LONGEST_WORD]  # Pillow refuses to measure very long texts
    if face.getlength(text) <= width:
        return text
    # Bisected: a hostile caption can be one word of megabytes.
    fits, beyond = 0, len(text)
    while beyond - fits > 1:
        middle = (fits + beyond) // 2
        fits, beyond = (middle, beyond) if face.getlength(text[:middle] + ELLIPSIS) <= width else (fits, middle)
    return text[:fits] + ELLIPSIS


def wrapped_words(words: Iterable[tuple[str, bool]], face: Font, width: float, most: int) -> list[Marked]:
    """At most ``most`` lines of words no wider than ``width`` pixels; a word that is wider by itself is cut."""
    lines: list[Marked] = [[]]
    used, space = 0.0, face.getlength(" ")
    for word, marked in words:
        word = fitted(plain(word), face, width)
        length = face.getlength(word)
        if lines[-1] and used + space + length > width:
            if len(lines) == most:
                last, of_last = lines[-1][-1]
                lines[-1][-1] = (fitted(last + ELLIPSIS, face, width), of_last)
                break
            lines.append([])
            used = 0.0
        used += length + (space if lines[-1] else 0)
        lines[-1].append((word, marked))
    return lines


def wrapped(text: str, face: Font, width: float, most: int) -> list[str]:
    """At most ``most`` lines of a text; none for an empty one."""
    words = ((word, False) for word in text[:LONGEST_TEXT].split())
    return [line for words in wrapped_words(words, face, width, most) if (line := " ".join(word for word, _ in words))]
