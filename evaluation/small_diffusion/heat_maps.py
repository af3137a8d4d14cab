"""Tables of numbers as coloured maps, drawn without a plotting library."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from PIL import Image, ImageDraw, ImageFont

from cards.sheet import GREY, INK, PAPER

CELL = (58, 34)
MARGIN, TOP, LEFT = 26, 62, 60
TITLE = 340  # pixels, a title's length
LOW, HIGH = (250, 243, 230), (46, 118, 92)
CHOSEN = "#b3261e"


@dataclass(frozen=True, slots=True)
class HeatMap:
    """values by (column, row), 0 the palest and ``full`` the darkest colour, written as ``form`` has it.

    Cells may be missing.
    """

    title: str
    values: Mapping[tuple[float, float], float]
    full: float
    form: str


def heat_maps(rows: Sequence[Sequence[HeatMap]], across: str, down: str, chosen: tuple[float, float]) -> bytes:
    """A PNG of maps that share their axes, row by row; across, down: the axes' names; the chosen cell is framed."""
    axes = [sorted({key[axis] for key in rows[0][0].values}) for axis in (0, 1)]
    width = max(LEFT + len(axes[0]) * CELL[0], TITLE) + MARGIN
    height = TOP + len(axes[1]) * CELL[1] + 30
    sheet = Image.new("RGB", (MARGIN + width * max(map(len, rows)), MARGIN + height * len(rows)), PAPER)
    pen = ImageDraw.Draw(sheet)
    for line, maps in enumerate(rows):
        for place, heat_map in enumerate(maps):
            _draw(pen, MARGIN + place * width, MARGIN + line * height, heat_map, axes, (across, down), chosen)
    stream = io.BytesIO()
    sheet.save(stream, "PNG", optimize=True)
    return stream.getvalue()


def _draw(
    pen: ImageDraw.ImageDraw,
    left: int,
    top: int,
    heat_map: HeatMap,
    axes: list[list[float]],
    names: tuple[str, str],
    chosen: tuple[float, float],
) -> None:
    title, small = ImageFont.load_default(15), ImageFont.load_default(12)
    pen.text((left, top), heat_map.title, INK, title)
    pen.text((left, top + 22), f"across: {names[0]}, down: {names[1]}", GREY, small)
    for column, x in enumerate(axes[0]):
        pen.text((left + LEFT + (column + 0.5) * CELL[0], top + TOP - 6), f"{x:g}", GREY, small, anchor="ms")
    for row, y in enumerate(axes[1]):
        pen.text((left + LEFT - 8, top + TOP + (row + 0.5) * CELL[1]), f"{y:g}", GREY, small, anchor="rm")
    for row, y in enumerate(axes[1]):
        for column, x in enumerate(axes[0]):
            if (x, y) not in heat_map.values:
                continue
            value = heat_map.values[x, y]
            share = 0.0 if math.isnan(value) else min(max(value / heat_map.full, 0.0), 1.0)
            colour = tuple(round(low + (high - low) * share) for low, high in zip(LOW, HIGH, strict=True))
            at = (left + LEFT + column * CELL[0], top + TOP + row * CELL[1])
            end = (at[0] + CELL[0] - 2, at[1] + CELL[1] - 2)
            framed = (x, y) == chosen
            pen.rectangle((*at, *end), colour, CHOSEN if framed else None, 3 if framed else 0)
            middle = ((at[0] + end[0]) / 2, (at[1] + end[1]) / 2)
            pen.text(middle, format(value, heat_map.form), PAPER if share > 0.55 else INK, small, anchor="mm")
