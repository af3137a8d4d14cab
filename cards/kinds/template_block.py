"""A template on a contact sheet, as in GeneCIS's Figures 2 and 7: reference and condition left, the gallery right."""

from __future__ import annotations

import itertools
from typing import ClassVar

from PIL import Image, ImageDraw

from cards.lettering import font, wrapped
from cards.ornaments import OVAL_PAD, frame, oval, oval_height
from cards.page_sections import told
from cards.sheet import TEXT, block_width, thumbnail
from shards.kinds.reading import StoredTemplate

REFERENCE = 184  # pixels: longest side of the reference
ACROSS = 5  # images of a gallery side by side
GAP, FRAME, BETWEEN = 14, 4, 30
CONDITION_LINES = 4

YELLOW, GREEN, DARK_RED = "#e3b505", "#2b9348", "#9b2226"

LEGEND = "Yellow the reference; green the target, which is the right answer; dashed the distractors."


class TemplateBlock:
    """A template; frames go around pictures as they are, so that none gets empty sides."""

    columns: ClassVar[int] = 2

    def __init__(self, template: StoredTemplate) -> None:
        images = dict(template.images)
        self._reference = thumbnail(images.pop("reference"), template.key, (REFERENCE, REFERENCE))
        text = (REFERENCE + 2 * FRAME) / OVAL_PAD[0]
        self._condition = wrapped(template.condition, font(TEXT), text, CONDITION_LINES)
        side = (block_width(self.columns) - self._gallery_left - (ACROSS - 1) * GAP - FRAME) // ACROSS
        gallery = [thumbnail(image, template.key, (side, side)) for image in images.values()]
        self._side = side
        self._rows = [gallery[start : start + ACROSS] for start in range(0, len(gallery), ACROSS)]
        rows = sum(max(picture.height for picture in row) + GAP for row in self._rows)
        left = self._reference.height + 2 * FRAME + GAP + oval_height(self._condition)
        self.height = max(rows, left) + FRAME + 4
        self.small_print = " | ".join([template.key, told(template)])

    @property
    def _gallery_left(self) -> int:
        return REFERENCE + 2 * FRAME + BETWEEN

    def draw(self, sheet: Image.Image, draw: ImageDraw.ImageDraw, corner: tuple[int, int]) -> None:
        """As `cards.sheet.Block.draw`."""
        left, top = corner[0] + FRAME, corner[1] + FRAME
        centre = left + REFERENCE // 2
        _framed(sheet, draw, self._reference, (centre - self._reference.width // 2, top), YELLOW)
        if self._condition:
            below = top + self._reference.height + FRAME + GAP + oval_height(self._condition) // 2
            oval(sheet, draw, (centre, below), REFERENCE + 2 * FRAME, self._condition)
        places = itertools.count()
        for row in self._rows:
            high = max(picture.height for picture in row)
            for column, picture in enumerate(row):
                x = corner[0] + self._gallery_left + column * (self._side + GAP) + (self._side - picture.width) // 2
                at = x, top + (high - picture.height) // 2
                _framed(sheet, draw, picture, at, *((DARK_RED, True) if next(places) else (GREEN, False)))
            top += high + GAP


def _framed(
    sheet: Image.Image,
    draw: ImageDraw.ImageDraw,
    picture: Image.Image,
    at: tuple[int, int],
    colour: str,
    dashed: bool = False,
) -> None:
    sheet.paste(picture, at)
    box = (*at, at[0] + picture.width, at[1] + picture.height)
    frame(draw, box, colour, FRAME - 2 if dashed else FRAME, dashed)
