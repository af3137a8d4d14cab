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
from typing import Any, Literal

from PIL import Image, ImageDraw, ImageFont, ImageOps

from twinset.contracts.kinds.kind import Stored
from twinset.shards.media.decode import decode

#: Words of a caption, each with whether it is marked.
Marked = Sequence[tuple[str, bool]]
Outline = Literal["", "right", "reference", "other"]

LONGEST_TEXT = 2_000  # characters that are shown
MOST_COMPARED = 200  # words, about as many as fit: of few different words, a thousand would take a minute
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


def words(text: str, marked: bool = False) -> Marked:
    """The words of a text, cut where it is very long, all marked or none."""
    return [(word, marked) for word in text[:LONGEST_TEXT].split()]


@dataclass(frozen=True, slots=True)
class Cell:
    """One place of a block; without image and words it stays empty.

    label: above the picture; empty for none. image: encoded. words: below it. side: 0 or 1, the colour of the marks.
    outline: around the picture, ``right`` for the right answer.
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


def noted(sample: Stored[Any], *notes: str) -> str:
    """Small print of a sample: each note once, and its group unless that is the sample itself."""
    group = "" if sample.json.group == sample.key else f"group {sample.json.group}"
    return " | ".join(dict.fromkeys(filter(None, (*notes, group))))


WIDTH, MARGIN, GAP, CELL_GAP = 1580, 40, 36, 8  # pixels: between the margins; around, between blocks, between cells
TEXT, SMALL, TITLE = 15, 12, 28
LINE = 21
PICTURES, FEWEST_BLOCKS = 6, 2  # side by side
TALLEST = 4 / 3  # of a picture, as a multiple of its width
MOST_LINES = 8  # of a caption
STROKE = 4  # pixels of an outline
LONGEST_LINE = 200  # characters; more than fits in any width
ELLIPSIS = "..."

PAPER, INK, GREY = "#fbfaf7", "#1f2328", "#7b8087"
MARKS = ("#0b5cad", "#b3470b")  # of side 0 and side 1; told apart by all eyes
OUTLINES: Mapping[Outline, str] = {"right": "#2b9348", "reference": "#e3b505"}


def contact_sheet(blocks: Sequence[Block], title: str, subtitle: str, legend: str = "") -> bytes:
    """A PNG of blocks in reading order, each with its key in small print.

    Raises:
        BrokenTar: an image cannot be decoded.
    """
    across = max(FEWEST_BLOCKS, PICTURES // max((block.columns for block in blocks), default=PICTURES))
    width = (WIDTH - (across - 1) * GAP) // across
    lines = [_line(title, WIDTH, TITLE, INK), *(_line(text, WIDTH, TEXT) for text in (subtitle, legend, ""))]
    sheet = _grid([*lines, _grid([_block(block, width) for block in blocks], across, width, GAP)], 1, WIDTH, 4)
    stream = io.BytesIO()
    ImageOps.expand(sheet, MARGIN, PAPER).save(stream, "PNG")
    return stream.getvalue()


def thumbnail(content: bytes, key: str, box: tuple[int, int]) -> Image.Image:
    """An encoded image of the sample ``key``, made to fit (width, height) pixels."""
    picture = decode(content, key, (2 * box[0], 2 * box[1]))
    scale = min(box[0] / picture.width, box[1] / picture.height)
    size = max(1, round(picture.width * scale)), max(1, round(picture.height * scale))
    return picture.resize(size, Image.Resampling.LANCZOS)


def _grid(pictures: Sequence[Image.Image], across: int, width: int, gap: int) -> Image.Image:
    """Pictures in columns of one width, in reading order, each row as high as its highest."""
    rows = [pictures[start : start + across] for start in range(0, len(pictures), across)]
    heights = [max(picture.height for picture in row) for row in rows]
    drawn = Image.new("RGB", (across * (width + gap) - gap, max(sum(heights) + gap * (len(rows) - 1), 0)), PAPER)
    top = 0
    for row, height in zip(rows, heights, strict=True):
        for column, picture in enumerate(row):
            drawn.paste(picture, (column * (width + gap), top))
        top += height + gap
    return drawn


def _block(block: Block, width: int) -> Image.Image:
    column = (width - (block.columns - 1) * CELL_GAP) // block.columns
    cells = _grid([_cell(cell, column, block.key) for cell in block.cells], block.columns, column, CELL_GAP)
    return _grid([cells, _line(" | ".join([block.key, block.note]), width, SMALL)], 1, width, CELL_GAP)


def _cell(cell: Cell, width: int, key: str) -> Image.Image:
    parts = [_line(cell.label, width, SMALL)] if cell.label else []
    if cell.image is not None:
        stroke = STROKE if cell.outline else 0
        room = width - 2 * stroke
        picture = thumbnail(cell.image, key, (room, int(room * TALLEST)))
        parts.append(ImageOps.expand(picture, stroke, OUTLINES.get(cell.outline, PAPER)))
    if cell.words:
        parts.append(_text(cell.words, MARKS[cell.side], width))
    return _grid(parts, 1, width, 4)


def _line(text: str, width: int, size: int, colour: str = GREY) -> Image.Image:
    drawn = Image.new("RGB", (width, size * 7 // 5), PAPER)
    ImageDraw.Draw(drawn).text((0, 0), fitted(text, size, width), colour, font(size))
    return drawn


def _text(words: Marked, mark: str, width: int) -> Image.Image:
    """Words in lines; where there are more than `MOST_LINES`, the last line is an ellipsis."""
    drawn = Image.new("RGB", (width, LINE * (MOST_LINES + 1)), PAPER)
    pen, face, x, y = ImageDraw.Draw(drawn), font(TEXT), 0.0, 0
    for whole, marked in words:
        word = fitted(whole, TEXT, width)
        length = face.getlength(word)
        if x and x + length > width:
            x, y = 0.0, y + LINE
        if y == LINE * MOST_LINES:
            pen.text((x, y), ELLIPSIS, INK, face)
            break
        pen.text((x, y), word, mark if marked else INK, face)
        if marked:
            pen.line((x, y + LINE - 4, x + length, y + LINE - 4), mark, 2)
        x += length + face.getlength(" ")
    return drawn.crop((0, 0, width, y + LINE))


@cache
def font(size: int) -> ImageFont.FreeTypeFont:
    """DejaVu Sans, as matplotlib brings it."""
    import matplotlib

    return ImageFont.truetype(f"{matplotlib.get_data_path()}/fonts/ttf/DejaVuSans.ttf", size)


@cache
def _letters() -> frozenset[int]:
    from matplotlib.ft2font import FT2Font

    return frozenset(FT2Font(str(font(TEXT).path)).get_charmap())


def fitted(text: str, size: int, width: float) -> str:
    """As much of a line as fits in ``width`` pixels; letters that the font does not have as their numbers."""
    line = unicodedata.normalize("NFC", " ".join(text[:LONGEST_LINE].split()))
    text = "".join(letter if ord(letter) in _letters() else f"\\u{ord(letter):04x}" for letter in line)
    if font(size).getlength(text) <= width:
        return text
    while text and font(size).getlength(text + ELLIPSIS) > width:
        text = text[:-1]
    return text + ELLIPSIS
