"""Contact sheets: samples as a plain grid of pictures, so that a glance tells whether a subset is sound."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from PIL import Image, ImageDraw

from cards.block import Block, Cell, Outline
from cards.lettering import fitted, font, wrapped
from cards.word_diff import Marked
from shards.media.decode import decode

WIDTH, MARGIN, GAP, CELL_GAP = 1580, 40, 36, 8  # pixels: between the margins; around, between blocks, between cells
TEXT, SMALL, TITLE = 15, 12, 28
LINE = 21
LABEL = SMALL + 5  # height of the words above a picture, and of the small print below a block
TALLEST = 4 / 3  # of a picture, as a multiple of its width
MOST_LINES = 8  # of a caption
STROKE = 4  # pixels of an outline

PAPER, INK, GREY = "#fbfaf7", "#1f2328", "#7b8087"
MARKS = ("#0b5cad", "#b3470b")  # of side 0 and side 1; told apart by all eyes
OUTLINES: Mapping[Outline, str] = {"right": "#2b9348", "reference": "#e3b505"}


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A cell with its picture and lines made to fit. width: of the cell, in pixels."""

    cell: Cell
    width: int
    picture: Image.Image | None
    lines: Sequence[Marked]


def contact_sheet(blocks: Sequence[Block], across: int, title: str, subtitle: str, legend: str = "") -> bytes:
    """A PNG of blocks in reading order, ``across`` side by side, each with its key in small print.

    Raises:
        BrokenTar: an image cannot be decoded.
    """
    cell = (WIDTH - (across - 1) * GAP) // across
    drawn = [_rows(block, cell) for block in blocks]
    heights = [sum(map(_height, rows)) + LABEL for rows in drawn]
    bands = [max(heights[start : start + across]) for start in range(0, len(blocks), across)]
    head = MARGIN + TITLE + 10 + LINE * (2 if legend else 1) + 24
    sheet = Image.new("RGB", (WIDTH + 2 * MARGIN, head + sum(bands) + GAP * max(len(bands) - 1, 0) + MARGIN), PAPER)
    pen = ImageDraw.Draw(sheet)
    pen.text((MARGIN, MARGIN - 6), fitted(title, font(TITLE), WIDTH), INK, font(TITLE))
    for place, line in enumerate((subtitle, legend)):
        pen.text((MARGIN, MARGIN + TITLE + 8 + place * LINE), fitted(line, font(TEXT), WIDTH), GREY, font(TEXT))
    for number, (block, rows) in enumerate(zip(blocks, drawn, strict=True)):
        left = MARGIN + number % across * (cell + GAP)
        top = head + sum(bands[: number // across]) + number // across * GAP
        for row in rows:
            for column, one in enumerate(row):
                _draw(sheet, pen, one, left + column * (one.width + CELL_GAP), top)
            top += _height(row)
        pen.text((left, top), fitted(" | ".join([block.key, block.note]), font(SMALL), cell), GREY, font(SMALL))
    stream = io.BytesIO()
    sheet.save(stream, "PNG")
    return stream.getvalue()


def thumbnail(content: bytes, key: str, box: tuple[int, int]) -> Image.Image:
    """An encoded image of the sample ``key``, made to fit (width, height) pixels."""
    picture = decode(content, key, (2 * box[0], 2 * box[1]))
    scale = min(box[0] / picture.width, box[1] / picture.height)
    size = max(1, round(picture.width * scale)), max(1, round(picture.height * scale))
    return picture.resize(size, Image.Resampling.LANCZOS)


def _rows(block: Block, width: int) -> list[list[_Drawn]]:
    cell = (width - (block.columns - 1) * CELL_GAP) // block.columns
    drawn = [_fit(one, cell, block.key) for one in block.cells]
    return [drawn[start : start + block.columns] for start in range(0, len(drawn), block.columns)]


def _fit(cell: Cell, width: int, key: str) -> _Drawn:
    room = width - 2 * STROKE if cell.outline else width
    picture = thumbnail(cell.image, key, (room, int(room * TALLEST))) if cell.image is not None else None
    return _Drawn(cell, width, picture, wrapped(cell.words, font(TEXT), width, MOST_LINES))


def _picture_height(one: _Drawn) -> int:
    return one.picture.height + (2 * STROKE if one.cell.outline else 0) if one.picture is not None else 0


def _height(row: Sequence[_Drawn]) -> int:
    label = LABEL if any(one.cell.label for one in row) else 0
    return label + max(_picture_height(one) + 5 + LINE * len(one.lines) for one in row) + CELL_GAP


def _draw(sheet: Image.Image, pen: ImageDraw.ImageDraw, one: _Drawn, left: int, top: int) -> None:
    if one.cell.label:
        pen.text((left, top), fitted(one.cell.label, font(SMALL), one.width), GREY, font(SMALL))
        top += LABEL
    if one.picture is not None:
        inset = STROKE if one.cell.outline else 0
        if one.cell.outline in OUTLINES:
            size = one.picture.width + 2 * inset, one.picture.height + 2 * inset
            pen.rectangle((left, top, left + size[0] - 1, top + size[1] - 1), OUTLINES[one.cell.outline])
        sheet.paste(one.picture, (left + inset, top + inset))
        top += one.picture.height + 2 * inset + 5
    for line in one.lines:
        x = float(left)
        for word, marked in line:
            pen.text((x, top), word, MARKS[one.cell.side] if marked else INK, font(TEXT))
            length = font(TEXT).getlength(word)
            if marked:
                pen.line((x, top + LINE - 4, x + length, top + LINE - 4), MARKS[one.cell.side], 2)
            x += length + font(TEXT).getlength(" ")
        top += LINE
