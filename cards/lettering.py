"""Text that fits into a picture, in Pillow's own font, which needs none of the system's."""

from __future__ import annotations

import unicodedata
from functools import cache

from PIL import ImageFont

from cards.word_diff import Marked

Font = ImageFont.FreeTypeFont | ImageFont.ImageFont

LONGEST_LINE = 200  # characters; more than fits in any width
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
    text = plain(text[:LONGEST_LINE])
    if face.getlength(text) <= width:
        return text
    while text and face.getlength(text + ELLIPSIS) > width:
        text = text[:-1]
    return text + ELLIPSIS


def wrapped(words: Marked, face: Font, width: float, most: int) -> list[Marked]:
    """At most ``most`` lines of words no wider than ``width`` pixels; a word that is wider by itself is cut."""
    lines: list[list[tuple[str, bool]]] = [[]]
    for word, marked in words:
        word = fitted(word, face, width)
        line = " ".join([*(before for before, _ in lines[-1]), word])
        if lines[-1] and face.getlength(line) > width:
            if len(lines) == most:
                last, of_last = lines[-1][-1]
                lines[-1][-1] = (fitted(last + ELLIPSIS, face, width), of_last)
                break
            lines.append([])
        lines[-1].append((word, marked))
    return [line for line in lines if line]
