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


def noted(sample: Stored[Any], *notes: str) -> str:
    """Small print of a sample: each note once, and its group unless that is the sample itself."""
    group = "" if sample.json.group == sample.key else f"group {sample.json.group}"
    return " | ".join(dict.fromkeys(filter(None, (*notes, group))))


WIDTH, MARGIN, GAP, CELL_GAP = 1580, 40, 36, 8  # pixels: between the margins; around, between blocks, between cells
TEXT, SMALL, TITLE = 15, 12, 28
LINE = 21
LABEL = SMALL + 5  # height of the words above a picture, and of the small print below a block
PICTURES, FEWEST_BLOCKS = 6, 2  # side by side
TALLEST = 4 / 3  # of a picture, as a multiple of its width
MOST_LINES = 8  # of a caption
STROKE = 4  # pixels of an outline
LONGEST_LINE = 200  # characters; more than fits in any width
ELLIPSIS = "..."

Font = ImageFont.FreeTypeFont
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
    lines = [subtitle, *([legend] if legend else [])]
    head = Image.new("RGB", (WIDTH, TITLE + 18 + LINE * len(lines)), PAPER)
    _write(head, (0, 0), title, TITLE, INK)
    for number, line in enumerate(lines):
        _write(head, (0, TITLE + 14 + number * LINE), line, TEXT)
    below = _grid([_block(block, width) for block in blocks], across, GAP)
    sheet = _grid([head, *([below] if blocks else [])], 1, 24)
    stream = io.BytesIO()
    ImageOps.expand(sheet, MARGIN, PAPER).save(stream, "PNG")
    return stream.getvalue()


def thumbnail(content: bytes, key: str, box: tuple[int, int]) -> Image.Image:
    """An encoded image of the sample ``key``, made to fit (width, height) pixels."""
    picture = decode(content, key, (2 * box[0], 2 * box[1]))
    return ImageOps.contain(picture, box, Image.Resampling.LANCZOS)


def boxed(content: bytes, key: str, boxes: Sequence[tuple[int, int, int, int]]) -> bytes:
    """An encoded image of the sample ``key`` with outlines of boxes (left, top, width, height), as PNG."""
    picture, stream = decode(content, key), io.BytesIO()
    pen, width = ImageDraw.Draw(picture), max(1, max(picture.size) // 150)
    for left, top, wide, high in boxes:
        pen.rectangle((left - 1, top - 1, left + wide, top + high), outline=OUTLINES["reference"], width=width)
    picture.save(stream, "PNG", compress_level=1)
    return stream.getvalue()


def _grid(pictures: Sequence[Image.Image], across: int, gap: int) -> Image.Image:
    """Pictures in reading order, each row as high as its highest."""
    rows = [pictures[start : start + across] for start in range(0, len(pictures), across)]
    width = across * (pictures[0].width + gap) - gap if pictures else 1
    heights = [max(picture.height for picture in row) for row in rows]
    canvas = Image.new("RGB", (width, sum(heights) + gap * max(len(rows) - 1, 0)), PAPER)
    top = 0
    for row, height in zip(rows, heights, strict=True):
        for column, picture in enumerate(row):
            canvas.paste(picture, (column * (picture.width + gap), top))
        top += height + gap
    return canvas


def _block(block: Block, width: int) -> Image.Image:
    cell_width = (width - (block.columns - 1) * CELL_GAP) // block.columns
    cells = _grid([_cell(cell, cell_width, block.key) for cell in block.cells], block.columns, CELL_GAP)
    drawn = Image.new("RGB", (width, cells.height + CELL_GAP + LABEL), PAPER)
    drawn.paste(cells)
    _write(drawn, (0, cells.height + CELL_GAP), " | ".join([block.key, block.note]), SMALL)
    return drawn


def _cell(cell: Cell, width: int, key: str) -> Image.Image:
    pictures = []
    if cell.image is not None:
        stroke = STROKE if cell.outline else 0
        room = width - 2 * stroke
        picture = thumbnail(cell.image, key, (room, int(room * TALLEST)))
        pictures.append(ImageOps.expand(picture, stroke, OUTLINES.get(cell.outline, PAPER)))
    lines, top = wrapped(cell.words, font(TEXT), width, MOST_LINES), LABEL if cell.label else 0
    drawn = Image.new("RGB", (width, top + sum(one.height + 5 for one in pictures) + LINE * len(lines)), PAPER)
    if cell.label:
        _write(drawn, (0, 0), cell.label, SMALL)
    for picture in pictures:
        drawn.paste(picture, (0, top))
        top += picture.height + 5
    pen = ImageDraw.Draw(drawn)
    for line in lines:
        x = 0.0
        for word, marked in line:
            pen.text((x, top), word, MARKS[cell.side] if marked else INK, font(TEXT))
            length = font(TEXT).getlength(word)
            if marked:
                pen.line((x, top + LINE - 4, x + length, top + LINE - 4), MARKS[cell.side], 2)
            x += length + font(TEXT).getlength(" ")
        top += LINE
    return drawn


def _write(canvas: Image.Image, place: tuple[int, int], text: str, size: int, colour: str = GREY) -> None:
    ImageDraw.Draw(canvas).text(place, fitted(text, font(size), canvas.width), colour, font(size))


@cache
def font(size: int) -> Font:
    """DejaVu Sans, as matplotlib brings it."""
    import matplotlib

    return ImageFont.truetype(f"{matplotlib.get_data_path()}/fonts/ttf/DejaVuSans.ttf", size)


@cache
def _letters(path: str) -> frozenset[int]:
    from matplotlib.ft2font import FT2Font

    return frozenset(FT2Font(path).get_charmap())


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
