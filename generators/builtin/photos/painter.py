"""Paints a still: its surroundings and its things, and of every pixel which of them it shows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from generators.builtin.miniature.canvas import SCALE, Colour
from generators.builtin.photos.kinds import KINDS
from generators.builtin.photos.sheet import Labels, Look, Sheet
from shards.kinds.samples import Pixels

ZOOM = {"small": 0.82, "large": 1.25, "": 1.0}  # by size


@dataclass(frozen=True, slots=True)
class Thing:
    """One thing of a still.

    kind: of `generators.builtin.photos.kinds.KINDS`. where: its foot, in pixels. zoom: before its size counts.
    support: a noun, what it is on, in or, of an umbrella, over. preposition: which of these.
    """

    kind: str
    look: Look
    where: tuple[float, float]
    zoom: float
    flip: bool
    support: str
    preposition: str


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a still. number: its label. noun: as captions say it. thing: None for surroundings."""

    number: int
    noun: str
    category: str
    thing: Thing | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Still:
    """A painted still.

    pixels: (240, 320, 3) uint8 RGB. labels: (240, 320) uint8, the number of the segment. segments: all, also hidden
    ones. extents: (left, top, width, height) of what is to be seen of each, by number; those that are seen at all.
    """

    pixels: Pixels
    labels: Labels
    segments: tuple[Segment, ...]
    extents: dict[int, tuple[int, int, int, int]]


class Painter:
    """Paints one still, from the back to the front."""

    def __init__(self) -> None:
        self._sheet = Sheet.empty()
        self._segments: list[Segment] = []

    def stuff(self, noun: str, category: str) -> Sheet:
        """A sheet to draw surroundings on, in pixels of the picture."""
        return self._segment(noun, category, None).placed(len(self._segments), (0.0, 0.0), 1.0, False)

    def fill(self, noun: str, category: str, top: float, bottom: float, upper: Colour, lower: Colour) -> Sheet:
        """Surroundings over the whole width from row ``top`` to ``bottom``, in colours that run into each other."""
        sheet = self.stuff(noun, category)
        first, last = round(top * SCALE), round(bottom * SCALE)
        share = (np.arange(last - first) * 256 // max(1, last - first - 1))[:, None]
        run = (np.asarray(upper, np.int64) * (256 - share) + np.asarray(lower, np.int64) * share) >> 8
        sheet.large[first:last] = run[:, None].astype(np.uint8)
        sheet.labels[first:last] = sheet.segment
        return sheet

    def add(self, thing: Thing) -> None:
        """Paint a thing over what is there, which it is then on: a path across the grass, or a rug on the floor."""
        kind = KINDS[thing.kind]
        below = self._below(thing)
        if thing.preposition == "on" and below is not None and (below.thing is None or KINDS[below.noun].flat):
            thing = replace(thing, support=below.noun)
        sheet = self._segment(thing.kind, kind.category, thing)
        kind.draw(
            sheet.placed(len(self._segments), thing.where, thing.zoom * ZOOM[thing.look.size], thing.flip), thing.look
        )

    def finish(self) -> Still:
        """The still as far as it is painted."""
        labels = self._sheet.segments()
        extents = {}
        for segment in self._segments:
            rows, columns = np.nonzero(labels == segment.number)
            if len(rows):
                left, top = int(columns.min()), int(rows.min())
                extents[segment.number] = (left, top, int(columns.max()) - left + 1, int(rows.max()) - top + 1)
        return Still(self._sheet.pixels(), labels, tuple(self._segments), extents)

    def _below(self, thing: Thing) -> Segment | None:
        x, y = (round(place * SCALE) for place in thing.where)
        rows, columns = self._sheet.labels.shape
        number = int(self._sheet.labels[min(max(y, 0), rows - 1), min(max(x, 0), columns - 1)])
        return self._segments[number - 1] if number else None

    def _segment(self, noun: str, category: str, thing: Thing | None) -> Sheet:
        self._segments.append(Segment(len(self._segments) + 1, noun, category, thing))
        return self._sheet
