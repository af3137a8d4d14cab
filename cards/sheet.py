"""A sheet of blocks below a title: what contact sheets of all kinds of samples have in common."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import ClassVar, Protocol

from PIL import Image, ImageDraw

from cards.lettering import fitted, font, plain
from shards.media.decode import decode

INNER_WIDTH = 1578  # pixels between the margins
GAP, MARGIN = 36, 40
TEXT, SMALL, TITLE = 15, 12, 30
LINE = 21
FOOT = SMALL + 6  # height of the small print below a block

PAPER, INK, GREY = "#fbfaf7", "#1f2328", "#7b8087"


class Block(Protocol):
    """One sample, drawn.

    columns: blocks side by side. height: in pixels, without the small print; draw: within ``columns`` equal parts of
    `INNER_WIDTH`, from the corner (left, top) on. small_print: the line below.
    """

    columns: ClassVar[int]

    @property
    def height(self) -> int: ...

    @property
    def small_print(self) -> str: ...

    def draw(self, sheet: Image.Image, draw: ImageDraw.ImageDraw, corner: tuple[int, int]) -> None: ...


def block_width(columns: int) -> int:
    """Pixels that each of so many blocks side by side has."""
    return (INNER_WIDTH - (columns - 1) * GAP) // columns


def draw_sheet(blocks: Sequence[Block], title: str, subtitle: str, legend: str = "") -> bytes:
    """A PNG of the blocks in reading order, each row as high as its highest. legend: a second line below the title."""
    columns = blocks[0].columns if blocks else 1
    rows = [blocks[start : start + columns] for start in range(0, len(blocks), columns)]
    heights = [max(block.height for block in row) + FOOT for row in rows]
    header = MARGIN + TITLE + 10 + LINE + (LINE if legend else 0) + 24
    width, cell = 2 * MARGIN + INNER_WIDTH, block_width(columns)
    sheet = Image.new("RGB", (width, header + sum(height + GAP for height in heights) + MARGIN - GAP), PAPER)
    draw = ImageDraw.Draw(sheet)
    draw.text((MARGIN, MARGIN - 6), fitted(plain(title), font(TITLE), INNER_WIDTH), INK, font(TITLE))
    for place, line in enumerate((subtitle, legend)):
        draw.text(
            (MARGIN, MARGIN + TITLE + 6 + place * LINE), fitted(plain(line), font(TEXT), INNER_WIDTH), GREY, font(TEXT)
        )
    top = header
    for row, height in zip(rows, heights, strict=True):
        for column, block in enumerate(row):
            left = MARGIN + column * (cell + GAP)
            block.draw(sheet, draw, (left, top))
            small_print = fitted(plain(block.small_print), font(SMALL), cell)
            draw.text((left, top + height - FOOT), small_print, GREY, font(SMALL))
        top += height + GAP
    stream = io.BytesIO()
    sheet.save(stream, "PNG")
    return stream.getvalue()


def thumbnail(content: bytes, key: str, box: tuple[int, int]) -> Image.Image:
    """An encoded image of the sample ``key``, made to fit (width, height) pixels."""
    picture = decode(content, key, (2 * box[0], 2 * box[1]))
    scale = min(box[0] / picture.width, box[1] / picture.height)
    size = max(1, round(picture.width * scale)), max(1, round(picture.height * scale))
    return picture.resize(size, Image.Resampling.LANCZOS)


def equally_high(contents: Sequence[bytes], key: str, room: int, highest: int) -> list[Image.Image]:
    """Encoded images of the sample ``key`` of one height, together at most ``room`` pixels wide."""
    pictures = [decode(content, key, (2 * room, 2 * highest)) for content in contents]
    shapes = [picture.width / picture.height for picture in pictures]
    height = max(1, min(highest, int(room / sum(shapes))))
    # A strip thousands of times as wide as high would still be too wide with a height of one pixel.
    sizes = [(min(max(1, int(height * shape)), max(1, int(room * shape / sum(shapes)))), height) for shape in shapes]
    return [picture.resize(size, Image.Resampling.LANCZOS) for picture, size in zip(pictures, sizes, strict=True)]
