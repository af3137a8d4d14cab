"""Ovals, speech bubbles and frames, with smooth edges."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PIL import Image, ImageDraw

from cards.lettering import font
from cards.sheet import INK, LINE, SMALL, TEXT

OVAL_FILL, OVAL_EDGE, OVAL_INK = "#d7e6f7", "#2f6fb3", "#0b3d75"
BUBBLE, BUBBLE_EDGE = "#ffffff", "#b9bdc3"
TAIL = 9  # pixels that a bubble's tail is high
DASH = 6  # pixels of a dash, and of the space after it
FINE = 4  # shapes are drawn so many times larger, then made smaller

SMALL_LINE = SMALL + 5
OVAL_PAD = (1.3, 1.75)  # an oval is so many times as wide and high as its text
BUBBLE_PAD = 8

Box = tuple[int, int, int, int]


def oval_height(lines: Sequence[str]) -> int:
    """Pixels that an oval with so many lines of text is high."""
    return round(len(lines) * LINE * OVAL_PAD[1])


def oval(
    sheet: Image.Image, draw: ImageDraw.ImageDraw, centre: tuple[int, int], width: int, lines: Sequence[str]
) -> None:
    """A blue oval, ``width`` pixels wide, with lines of text in its middle."""
    height = oval_height(lines)
    left, top = centre[0] - width // 2, centre[1] - height // 2
    box = (left, top, left + width, top + height)
    _shape(sheet, box, OVAL_EDGE, lambda fine, size: fine.ellipse((0, 0, *size), 255))
    _shape(
        sheet,
        (box[0] + 2, box[1] + 2, box[2] - 2, box[3] - 2),
        OVAL_FILL,
        lambda fine, size: fine.ellipse((0, 0, *size), 255),
    )
    for place, line in enumerate(lines):
        y = centre[1] + (place - (len(lines) - 1) / 2) * LINE
        draw.text((centre[0], y), line, OVAL_INK, font(TEXT), anchor="mm")


def bubble_height(lines: Sequence[str]) -> int:
    """Pixels that a speech bubble with so many lines is high, with its tail; 0 without any."""
    return TAIL + 2 * BUBBLE_PAD + len(lines) * SMALL_LINE if lines else 0


def bubble(
    sheet: Image.Image,
    draw: ImageDraw.ImageDraw,
    corner: tuple[int, int],
    width: int,
    lines: Sequence[str],
    speaker: int,
) -> None:
    """A speech bubble with a tail that points up to x = ``speaker``; nothing where there is nothing to say."""
    if not lines:
        return
    left, top = corner
    box = (left, top, left + width, top + bubble_height(lines))
    at = min(max(speaker - left, 2 * TAIL + 4), width - 2 * TAIL - 4)

    def paint(inset: int) -> Callable[[ImageDraw.ImageDraw, tuple[int, int]], None]:
        def painter(fine: ImageDraw.ImageDraw, size: tuple[int, int]) -> None:
            edge, tail, x = inset * FINE, TAIL * FINE, at * FINE
            fine.rounded_rectangle((edge, tail + edge, size[0] - edge, size[1] - edge), 8 * FINE, 255)
            fine.polygon(((x, 2 * edge), (x - tail + edge, tail + edge), (x + tail - edge, tail + edge)), 255)

        return painter

    _shape(sheet, box, BUBBLE_EDGE, paint(0))
    _shape(sheet, box, BUBBLE, paint(1))
    for place, line in enumerate(lines):
        draw.text((left + BUBBLE_PAD + 2, top + TAIL + BUBBLE_PAD + place * SMALL_LINE), line, INK, font(SMALL))


def arrow(draw: ImageDraw.ImageDraw, start: int, end: int, y: int) -> None:
    """A blue line from left to right with a head at its end."""
    draw.line((start, y, end - 4, y), OVAL_EDGE, 2)
    draw.polygon(((end, y), (end - 9, y - 5), (end - 9, y + 5)), OVAL_EDGE)


def frame(draw: ImageDraw.ImageDraw, box: Box, colour: str, width: int, dashed: bool = False) -> None:
    """A frame of ``width`` pixels just outside of a picture that fills ``box``, the right and bottom edges excluded."""
    left, top, right, bottom = box[0] - width, box[1] - width, box[2] + width - 1, box[3] + width - 1
    if not dashed:
        draw.rectangle((left, top, right, bottom), outline=colour, width=width)
        return
    for x in range(left, right + 1, 2 * DASH):
        end = min(x + DASH - 1, right)
        draw.rectangle((x, top, end, top + width - 1), colour)
        draw.rectangle((x, bottom - width + 1, end, bottom), colour)
    for y in range(top, bottom + 1, 2 * DASH):
        end = min(y + DASH - 1, bottom)
        draw.rectangle((left, y, left + width - 1, end), colour)
        draw.rectangle((right - width + 1, y, right, end), colour)


def _shape(
    sheet: Image.Image, box: Box, colour: str, paint: Callable[[ImageDraw.ImageDraw, tuple[int, int]], None]
) -> None:
    """Fill a shape, painted in white on a black mask of `FINE` times its size."""
    size = box[2] - box[0], box[3] - box[1]
    mask = Image.new("L", (size[0] * FINE, size[1] * FINE), 0)
    paint(ImageDraw.Draw(mask), (mask.width - 1, mask.height - 1))
    sheet.paste(Image.new("RGB", size, colour), box[:2], mask.resize(size, Image.Resampling.BOX))
