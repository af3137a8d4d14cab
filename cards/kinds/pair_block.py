"""A pair on a contact sheet: its images side by side, their captions below, the words that differ marked."""

from __future__ import annotations

from typing import ClassVar

from PIL import Image, ImageDraw

from cards.lettering import LONGEST_TEXT, font, wrapped_words
from cards.sheet import INK, LINE, TEXT, block_width, thumbnail
from cards.word_diff import Marked, mark_difference
from shards.kinds.reading import StoredPair

TWIN_GAP = 6
MOST_LINES = 16  # of a caption
MARKS = ("#0b5cad", "#b3470b")  # words of caption 0 and of caption 1 that the other lacks; told apart by all eyes
WASHES = ("#deebf8", "#fbe6d6")


class PairBlock:
    """A pair. An image fills the width that it has, whatever its shape; only tall ones, over 4 : 3, do not."""

    columns: ClassVar[int] = 3
    width: ClassVar[int] = (block_width(3) - TWIN_GAP) // 2  # of one image
    box: ClassVar[tuple[int, int]] = (width, width * 4 // 3)

    def __init__(self, pair: StoredPair) -> None:
        captions = (pair.caption0[:LONGEST_TEXT], pair.caption1[:LONGEST_TEXT])
        marked = mark_difference(*captions)
        self._pictures = [thumbnail(image, pair.key, self.box) for image in (pair.image0, pair.image1)]
        self._lines = [wrapped_words(side, font(TEXT), self.width, MOST_LINES) for side in marked]
        self._captions = 8 + max(picture.height for picture in self._pictures)
        self.height = self._captions + 4 + LINE * max(map(len, self._lines))
        self.small_print = f"{pair.key} | {pair.json.group}"

    def draw(self, sheet: Image.Image, draw: ImageDraw.ImageDraw, corner: tuple[int, int]) -> None:
        """As `cards.sheet.Block.draw`."""
        for side, (picture, lines) in enumerate(zip(self._pictures, self._lines, strict=True)):
            left = corner[0] + side * (self.width + TWIN_GAP)
            sheet.paste(picture, (left, corner[1]))
            for place, line in enumerate(lines):
                _draw_line(draw, (left, corner[1] + self._captions + place * LINE), line, side)


def _draw_line(draw: ImageDraw.ImageDraw, corner: tuple[int, int], line: Marked, side: int) -> None:
    """One line of a caption; neighbouring marked words share one wash and one underline."""
    left, top = float(corner[0]), corner[1]
    face = font(TEXT)
    space = face.getlength(" ")
    for place, (word, differs) in enumerate(line):
        length = face.getlength(word)
        if differs:
            joined = space if place + 1 < len(line) and line[place + 1][1] else 0
            draw.rectangle((left - 1, top, left + length + joined, top + LINE - 3), WASHES[side])
            draw.rectangle((left - 1, top + LINE - 4, left + length + joined, top + LINE - 3), MARKS[side])
        draw.text((left, top), word, MARKS[side] if differs else INK, face)
        left += length + space
