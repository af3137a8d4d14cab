"""A triplet on a contact sheet, as in GeneCIS's Figure 13: reference, condition in an oval, target, captions said."""

from __future__ import annotations

from typing import ClassVar

from PIL import Image, ImageDraw

from cards.lettering import font, wrapped
from cards.ornaments import BUBBLE_PAD, OVAL_PAD, arrow, bubble, bubble_height, frame, oval, oval_height
from cards.page_sections import told_of_triplet
from cards.sheet import GREY, SMALL, TEXT, block_width, equally_high
from shards.kinds.reading import StoredTriplet
from shards.kinds.triplet import PARTS

OVAL_WIDTH = {2: 176, 3: 148}  # by number of pictures
HIGHEST = 240  # of a picture
BESIDE = 26  # pixels between the target and the distractor
GAP = 12
CONDITION_LINES, CAPTION_LINES = 4, 5

LEGEND = (
    "Left the reference, then the target that the condition leads to; dashed a distractor, whose caption has the "
    "condition's object too."
)


class TripletBlock:
    """A triplet. Its pictures are of one height, as wide as they are, so that nothing is cut or filled up."""

    columns: ClassVar[int] = 2

    def __init__(self, triplet: StoredTriplet) -> None:
        self._width = block_width(self.columns)
        images = [triplet.images[part] for part in PARTS if part in triplet.images]
        room = self._width - OVAL_WIDTH[len(images)] - 2 * GAP - (BESIDE if len(images) > 2 else 0)
        self._pictures = equally_high(images, triplet.key, room, HIGHEST)
        text = OVAL_WIDTH[len(images)] / OVAL_PAD[0]
        self._condition = wrapped(triplet.condition, font(TEXT), text, CONDITION_LINES)
        self._bubble = (self._width - (len(images) - 1) * GAP) // len(images)
        captions = [triplet.json.captions.get(part, "") for part in PARTS[: len(images)]]
        room = self._bubble - 2 * BUBBLE_PAD - 4
        self._captions = [wrapped(caption, font(SMALL), room, CAPTION_LINES) for caption in captions]
        self._top = max(self._pictures[0].height, oval_height(self._condition))
        self.height = self._top + 6 + max(map(bubble_height, self._captions)) + 8
        self.small_print = " | ".join([triplet.key, triplet.json.group, *told_of_triplet(triplet)])

    def draw(self, sheet: Image.Image, draw: ImageDraw.ImageDraw, corner: tuple[int, int]) -> None:
        """As `cards.sheet.Block.draw`."""
        left, middle = corner[0], corner[1] + self._top // 2
        # Pictures stand at both ends; what is left between reference and target is the condition's.
        ends = [left]
        right = left + self._width
        for picture in reversed(self._pictures[1:]):
            ends.insert(1, right - picture.width)
            right -= picture.width + BESIDE
        for place, (start, picture) in enumerate(zip(ends, self._pictures, strict=True)):
            top = middle - picture.height // 2
            sheet.paste(picture, (start, top))
            if place == 2:
                frame(draw, (start, top, start + picture.width, top + picture.height), GREY, 2, dashed=True)
        start, end = ends[0] + self._pictures[0].width, ends[1]
        width = OVAL_WIDTH[len(self._pictures)]
        if self._condition:
            arrow(draw, start + 4, end - 3, middle)
            oval(sheet, draw, ((start + end) // 2, middle), width, self._condition)
        for place, caption in enumerate(self._captions):
            at = left + place * (self._bubble + GAP), corner[1] + self._top + 6
            speaker = ends[place] + self._pictures[place].width // 2
            bubble(sheet, draw, at, self._bubble, caption, speaker)
