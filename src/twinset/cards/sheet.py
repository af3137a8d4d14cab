"""Samples as people look at them, on sheets and on the page: a grid of cells, each a picture with words below.

A contact sheet is a plain grid of pictures, so that a glance tells whether a subset is sound.
"""

import difflib
import io
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Literal

from PIL import Image, ImageDraw, ImageFont, ImageOps

from twinset.shards.media.decode import decode

#: Words of a caption, each with whether it is marked.
Marked = Sequence[tuple[str, bool]]

_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_EDGES = re.compile(r"^\W+|\W+$")


def mark_difference(caption0: str, caption1: str) -> tuple[Marked, Marked]:
    """Both captions as (word, differs) lists. Case and punctuation around a word do not count as a difference."""
    words0, words1 = (caption[:LONGEST_TEXT].split()[:MOST_COMPARED] for caption in (caption0, caption1))
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
MOST_COMPARED = 200  # words, about as many as fit: of few different words, a thousand would take a minute


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
    """One sample. cells: in reading order, ``columns`` side by side. note: small print besides the key.

    terms: licence, credit and address, which the page shows.
    """

    key: str
    cells: Sequence[Cell]
    columns: int
    note: str
    terms: str = ""


def in_group(key: str, group: str) -> list[str]:
    """The group of a sample for its small print; nothing where the sample is a group by itself."""
    return [f"group {group}"] if group != key else []


def words(text: str, marked: bool = False) -> Marked:
    """The words of a text, cut where it is very long, all marked or none."""
    return [(word, marked) for word in text[:LONGEST_TEXT].split()]


WIDTH, MARGIN, GAP, CELL_GAP = 1580, 40, 36, 8  # pixels: between the margins; around, between blocks, between cells
TEXT, SMALL, TITLE = 15, 12, 28
LINE = 21
LABEL = SMALL + 5  # height of the words above a picture, and of the small print below a block
TALLEST = 4 / 3  # of a picture, as a multiple of its width
MOST_LINES = 8  # of a caption
STROKE = 4  # pixels of an outline
LONGEST_LINE = 200  # characters; more than fits in any width
ELLIPSIS = "..."

Font = ImageFont.FreeTypeFont
PAPER, INK, GREY = "#fbfaf7", "#1f2328", "#7b8087"
MARKS = ("#0b5cad", "#b3470b")  # of side 0 and side 1; told apart by all eyes
OUTLINES: Mapping[Outline, str] = {"right": "#2b9348", "reference": "#e3b505"}


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A cell with its picture, outlined, and lines made to fit. width: of the cell, in pixels."""

    cell: Cell
    width: int
    picture: Image.Image | None
    lines: Sequence[Marked]
    face: Font


def contact_sheet(blocks: Sequence[Block], across: int, title: str, subtitle: str, legend: str = "") -> bytes:
    """A PNG of blocks in reading order, ``across`` side by side, each with its key in small print. Raises `BrokenTar`:
    an image cannot be decoded.
    """
    cell = (WIDTH - (across - 1) * GAP) // across
    drawn = [_rows(block, cell) for block in blocks]
    heights = [sum(map(_height, rows)) + LABEL for rows in drawn]
    bands = [max(heights[start : start + across]) for start in range(0, len(blocks), across)]
    head = MARGIN + TITLE + 10 + LINE * (2 if legend else 1) + 24
    sheet = Image.new("RGB", (WIDTH + 2 * MARGIN, head + sum(bands) + GAP * max(len(bands) - 1, 0) + MARGIN), PAPER)
    pen = ImageDraw.Draw(sheet)
    _write(pen, (MARGIN, MARGIN - 6), title, TITLE, WIDTH, INK)
    drawn_words = (word for rows in drawn for row in rows for one in row for line in one.lines for word, _ in line)
    if absent := re.search(r"\\u[0-9a-f]{4,}", " ".join(drawn_words)):
        subtitle += f"; {absent[0]}: a character that no font here has; install one that has it, such as Noto Sans CJK"
    for place, line in enumerate((subtitle, legend)):
        _write(pen, (MARGIN, MARGIN + TITLE + 8 + place * LINE), line, TEXT, WIDTH)
    for number, (block, rows) in enumerate(zip(blocks, drawn, strict=True)):
        left = MARGIN + number % across * (cell + GAP)
        top = head + sum(bands[: number // across]) + number // across * GAP
        for row in rows:
            for column, one in enumerate(row):
                _draw(sheet, pen, one, left + column * (one.width + CELL_GAP), top)
            top += _height(row)
        _write(pen, (left, top), " | ".join([block.key, block.note]), SMALL, cell)
    stream = io.BytesIO()
    sheet.save(stream, "PNG")
    return stream.getvalue()


def thumbnail(content: bytes, key: str, box: tuple[int, int]) -> Image.Image:
    """An encoded image of the sample ``key``, made to fit (width, height) pixels."""
    picture = decode(content, key, (2 * box[0], 2 * box[1]))
    scale = min(box[0] / picture.width, box[1] / picture.height)
    size = max(1, round(picture.width * scale)), max(1, round(picture.height * scale))
    return picture.resize(size, Image.Resampling.LANCZOS)


def boxed(content: bytes, key: str, boxes: Sequence[tuple[int, int, int, int]]) -> bytes:
    """An encoded image of the sample ``key`` with outlines of boxes (left, top, width, height), as PNG."""
    picture, stream = decode(content, key), io.BytesIO()
    pen, width = ImageDraw.Draw(picture), max(1, max(picture.size) // 150)
    for left, top, wide, high in boxes:
        pen.rectangle((left - 1, top - 1, left + wide, top + high), outline=OUTLINES["reference"], width=width)
    picture.save(stream, "PNG", compress_level=1)
    return stream.getvalue()


def _rows(block: Block, width: int) -> list[list[_Drawn]]:
    cell = (width - (block.columns - 1) * CELL_GAP) // block.columns
    drawn = [_fit(one, cell, block.key) for one in block.cells]
    return [drawn[start : start + block.columns] for start in range(0, len(drawn), block.columns)]


def _fit(cell: Cell, width: int, key: str) -> _Drawn:
    picture = None
    if cell.image is not None:
        stroke = STROKE if cell.outline else 0
        room = width - 2 * stroke
        picture = thumbnail(cell.image, key, (room, int(room * TALLEST)))
        picture = ImageOps.expand(picture, stroke, OUTLINES.get(cell.outline, PAPER))
    face = font(TEXT, " ".join(word for word, _ in cell.words))
    return _Drawn(cell, width, picture, wrapped(cell.words, face, width, MOST_LINES), face)


def _height(row: Sequence[_Drawn]) -> int:
    label = LABEL if any(one.cell.label for one in row) else 0
    heights = [(one.picture.height if one.picture is not None else 0) + LINE * len(one.lines) for one in row]
    return label + max(heights) + 5 + CELL_GAP


def _write(
    pen: ImageDraw.ImageDraw, place: tuple[int, int], text: str, size: int, width: int, colour: str = GREY
) -> None:
    face = font(size, text)
    pen.text(place, fitted(text, face, width), colour, face)


def _draw(sheet: Image.Image, pen: ImageDraw.ImageDraw, one: _Drawn, left: int, top: int) -> None:
    if one.cell.label:
        _write(pen, (left, top), one.cell.label, SMALL, one.width)
        top += LABEL
    if one.picture is not None:
        sheet.paste(one.picture, (left, top))
        top += one.picture.height + 5
    for line in one.lines:
        x = float(left)
        for word, marked in line:
            pen.text((x, top), word, MARKS[one.cell.side] if marked else INK, one.face)
            length = one.face.getlength(word)
            if marked:
                pen.line((x, top + LINE - 4, x + length, top + LINE - 4), MARKS[one.cell.side], 2)
            x += length + one.face.getlength(" ")
        top += LINE


def font(size: int, text: str) -> Font:
    """The font of a text: matplotlib's DejaVu Sans; an installed one that has all letters, where that lacks some."""
    import matplotlib

    letters = {ord(letter) for letter in unicodedata.normalize("NFC", text) if not letter.isspace()}
    own = f"{matplotlib.get_data_path()}/fonts/ttf/DejaVuSans.ttf"
    if letters <= _letters(own):
        return _font(own, size)
    return _font(next((path for path in _installed() if letters <= _letters(path)), own), size)


_font = cache(ImageFont.truetype)


@cache
def _installed() -> Sequence[str]:
    from matplotlib.font_manager import fontManager  # looks for all fonts, which takes seconds the first time

    upright = {one.fname for one in fontManager.ttflist if one.weight in (400, "normal") and one.style == "normal"}
    return sorted(path for path in upright if not re.search("lastresort|emoji", path, re.IGNORECASE))  # boxes, pictures


@cache
def _letters(path: str) -> frozenset[int]:
    from matplotlib.ft2font import FT2Font

    try:
        return frozenset(FT2Font(path).get_charmap())
    except (OSError, RuntimeError):  # a font that only others can read
        return frozenset()


def fitted(text: str, face: Font, width: float) -> str:
    """As much of a line as fits in ``width`` pixels; letters that the font does not have as their numbers."""
    known = _letters(str(face.path))
    line = unicodedata.normalize("NFC", " ".join(text[:LONGEST_LINE].split()))
    text = "".join(letter if ord(letter) in known else f"\\u{ord(letter):04x}" for letter in line)
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
