"""A sheet of small pictures, one or several a cell, with words below."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from cards.sheet import GREY, INK, PAPER
from shards.kinds.samples import Pixels

ENLARGED = 2
GAP, LINE, TEXT = 14, 14, 11
WRONG = "#b3261e"


@dataclass(frozen=True, slots=True)
class Cell:
    """pictures side by side, all of one size. caption, and a remark; wrong: the remark is a complaint."""

    pictures: Sequence[Pixels]
    caption: str
    remark: str
    wrong: bool


def picture_sheet(cells: Sequence[Cell], columns: int) -> bytes:
    """A PNG of cells, row by row; pixels are enlarged without smoothing, so that each is seen as it was drawn."""
    font = ImageFont.load_default(TEXT)
    strips = [np.concatenate(list(cell.pictures), axis=1) for cell in cells]
    height, width = strips[0].shape[0] * ENLARGED, strips[0].shape[1] * ENLARGED
    texts = [(_lines(cell.caption, width, font), _lines(cell.remark, width, font)) for cell in cells]
    tall = height + 4 + LINE * max(len(caption) + len(remark) for caption, remark in texts) + GAP
    rows = -(-len(cells) // columns)
    sheet = Image.new("RGB", (GAP + columns * (width + GAP), GAP + rows * tall), PAPER)
    pen = ImageDraw.Draw(sheet)
    for number, (cell, strip, (caption, remark)) in enumerate(zip(cells, strips, texts, strict=True)):
        left, top = GAP + number % columns * (width + GAP), GAP + number // columns * tall
        sheet.paste(Image.fromarray(strip).resize((width, height), Image.Resampling.NEAREST), (left, top))
        down = top + height + 4
        for line, colour in [(line, INK) for line in caption] + [
            (line, WRONG if cell.wrong else GREY) for line in remark
        ]:
            pen.text((left, down), line, colour, font)
            down += LINE
    stream = io.BytesIO()
    sheet.save(stream, "PNG", optimize=True)
    return stream.getvalue()


def _lines(text: str, width: int, font: ImageFont.FreeTypeFont | ImageFont.ImageFont) -> list[str]:
    lines: list[str] = []
    for word in text.split():
        if lines and font.getlength(f"{lines[-1]} {word}") <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines
