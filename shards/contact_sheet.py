"""A contact sheet: pairs side by side, differing words marked, so that a glance tells whether a subset is sound."""

from __future__ import annotations

import io
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from PIL import Image, ImageDraw, ImageFont

from shards.decode import decode
from shards.stored import StoredPair
from shards.word_diff import Marked, mark_difference

COLUMNS = 3
LONGEST_WORD = 200  # characters
THUMB = (248, 186)  # an image fits in this box; its shape is kept
TWIN_GAP, GAP, MARGIN = 6, 36, 40
TEXT, SMALL, TITLE = 15, 12, 30
LINE = 21

PAPER, INK, GREY, MAT = "#fbfaf7", "#1f2328", "#7b8087", "#eeece6"
MARKS = ("#0b5cad", "#b3470b")  # words of caption 0 and of caption 1 that the other lacks; told apart by all eyes
WASHES = ("#deebf8", "#fbe6d6")

Font = ImageFont.FreeTypeFont | ImageFont.ImageFont


@dataclass(frozen=True, slots=True)
class _Cell:
    pair: StoredPair
    pictures: tuple[Image.Image, Image.Image]
    lines: tuple[list[Marked], list[Marked]]


@dataclass(frozen=True, slots=True)
class _Row:
    """Cells side by side. pictures, text: heights in pixels that all cells of the row share."""

    cells: list[_Cell]

    @property
    def pictures(self) -> int:
        return max(picture.height for cell in self.cells for picture in cell.pictures)

    @property
    def text(self) -> int:
        return 12 + LINE * max(len(lines) for cell in self.cells for lines in cell.lines)

    @property
    def height(self) -> int:
        return self.pictures + self.text + SMALL + 6


def contact_sheet(pairs: Sequence[StoredPair], title: str, subtitle: str) -> bytes:
    """A PNG of the pairs in reading order: image 0, image 1, their captions below, key and group in small print.

    Needs no font on the system: Pillow's own has no accents, which are left out, and draws other scripts as boxes.
    """
    text = ImageFont.load_default(TEXT)
    title, subtitle = _plain(title), _plain(subtitle)
    cells = [_lay_out(pair, text) for pair in pairs]
    rows = [_Row(cells[start : start + COLUMNS]) for start in range(0, len(cells), COLUMNS)]
    header = MARGIN + TITLE + 10 + LINE + 24
    cell_width = 2 * THUMB[0] + TWIN_GAP
    width = 2 * MARGIN + COLUMNS * cell_width + (COLUMNS - 1) * GAP
    height = header + sum(row.height + GAP for row in rows) + MARGIN - GAP
    sheet = Image.new("RGB", (width, height), PAPER)
    draw = ImageDraw.Draw(sheet)
    draw.text((MARGIN, MARGIN - 6), title, INK, ImageFont.load_default(TITLE))
    draw.text((MARGIN, MARGIN + TITLE + 6), _fitted(subtitle, text, width - 2 * MARGIN), GREY, text)
    top = header
    for row in rows:
        for column, cell in enumerate(row.cells):
            _draw_cell(sheet, draw, (MARGIN + column * (cell_width + GAP), top), cell, row, text)
        top += row.height + GAP
    stream = io.BytesIO()
    sheet.save(stream, "PNG")
    return stream.getvalue()


def thumbnail(content: bytes, key: str, box: tuple[int, int]) -> Image.Image:
    """An encoded image of the sample ``key``, made to fit (width, height) pixels."""
    picture = decode(content, key, (2 * box[0], 2 * box[1]))
    scale = min(box[0] / picture.width, box[1] / picture.height)
    size = max(1, round(picture.width * scale)), max(1, round(picture.height * scale))
    return picture.resize(size, Image.Resampling.LANCZOS)


def _lay_out(pair: StoredPair, font: Font) -> _Cell:
    marked0, marked1 = mark_difference(pair.caption0, pair.caption1)
    pictures = (thumbnail(pair.image0, pair.key, THUMB), thumbnail(pair.image1, pair.key, THUMB))
    return _Cell(pair, pictures, (_wrap(marked0, font), _wrap(marked1, font)))


def _wrap(words: Marked, font: Font) -> list[Marked]:
    """Lines no wider than a thumbnail; a word that is wider by itself is cut."""
    lines: list[Marked] = [[]]
    used, space = 0.0, font.getlength(" ")
    for word, differs in words:
        word = _fitted(_plain(word), font, THUMB[0])
        length = font.getlength(word)
        if lines[-1] and used + space + length > THUMB[0]:
            lines.append([])
            used = 0.0
        used += length + (space if lines[-1] else 0)
        lines[-1].append((word, differs))
    return lines


def _plain(text: str) -> str:
    """One line without accents."""
    parts = unicodedata.normalize("NFKD", " ".join(text.split()))
    return "".join(letter for letter in parts if not unicodedata.combining(letter))


def _fitted(text: str, font: Font, width: float) -> str:
    text = text[:LONGEST_WORD]  # more than fits in any font; Pillow refuses to measure very long texts
    if font.getlength(text) <= width:
        return text
    # Bisected: a hostile caption can be one word of megabytes.
    fits, beyond = 0, len(text)
    while beyond - fits > 1:
        middle = (fits + beyond) // 2
        fits, beyond = (middle, beyond) if font.getlength(text[:middle] + "...") <= width else (fits, middle)
    return text[:fits] + "..."


def _draw_cell(
    sheet: Image.Image, draw: ImageDraw.ImageDraw, corner: tuple[int, int], cell: _Cell, row: _Row, font: Font
) -> None:
    top = corner[1]
    for number, picture in enumerate(cell.pictures):
        left = corner[0] + number * (THUMB[0] + TWIN_GAP)
        draw.rectangle((left, top, left + THUMB[0] - 1, top + row.pictures - 1), MAT)
        sheet.paste(picture, (left + (THUMB[0] - picture.width) // 2, top + (row.pictures - picture.height) // 2))
        for place, line in enumerate(cell.lines[number]):
            _draw_line(draw, (left, top + row.pictures + 8 + place * LINE), line, number, font)
    small = ImageFont.load_default(SMALL)
    foot = _fitted(_plain(f"{cell.pair.key} | {cell.pair.json.group}"), small, 2 * THUMB[0] + TWIN_GAP)
    draw.text((corner[0], top + row.pictures + row.text), foot, GREY, small)


def _draw_line(draw: ImageDraw.ImageDraw, corner: tuple[int, int], line: Marked, side: int, font: Font) -> None:
    """One line of a caption; neighbouring marked words share one wash and one underline."""
    left, top = float(corner[0]), corner[1]
    space = font.getlength(" ")
    for place, (word, differs) in enumerate(line):
        length = font.getlength(word)
        if differs:
            joined = space if place + 1 < len(line) and line[place + 1][1] else 0
            draw.rectangle((left - 1, top, left + length + joined, top + LINE - 3), WASHES[side])
            draw.rectangle((left - 1, top + LINE - 4, left + length + joined, top + LINE - 3), MARKS[side])
        draw.text((left, top), word, MARKS[side] if differs else INK, font)
        left += length + space
