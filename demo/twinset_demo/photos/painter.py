"""Paints a photo: its surroundings and its things, and for every pixel which of them it shows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import cv2
import numpy as np

from twinset.contracts.kinds.samples import Pixels
from twinset_demo.canvas import SCALE, Canvas, Colour
from twinset_demo.photos.creatures import CREATURES
from twinset_demo.photos.furniture import FURNITURE
from twinset_demo.photos.outdoors import OUTDOORS
from twinset_demo.photos.sheet import Labels, Look, Sheet
from twinset_demo.photos.small_things import SMALL_THINGS
from twinset_demo.photos.vehicles import VEHICLES

KINDS = VEHICLES | CREATURES | OUTDOORS | FURNITURE | SMALL_THINGS
ZOOM = {"small": 0.82, "large": 1.25, "": 1.0}  # by size


@dataclass(frozen=True, slots=True)
class Thing:
    """One thing of a photo.

    Args:
        kind: One of `KINDS`.
        where: Its foot, in pixels.
        zoom: Before its size counts.
        support: Noun of what it is on, in or, if it is an umbrella, over.
        preposition: Which of these.
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
    """A part of a photo. number: its label. noun: as captions say it. thing: None for surroundings."""

    number: int
    noun: str
    category: str
    thing: Thing | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Photo:
    """A painted photo.

    Args:
        pixels: (240, 320, 3) uint8 RGB.
        labels: (240, 320) uint8, the number of the segment.
        segments: All of them, also hidden ones.
        extents: (left, top, width, height) of the visible part of each segment that has one, by number.
    """

    pixels: Pixels
    labels: Labels
    segments: tuple[Segment, ...]
    extents: dict[int, Sequence[int]]


class Painter:
    """Paints one photo, from the back to the front."""

    def __init__(self) -> None:
        self._canvas = Canvas.blank((255, 255, 255))
        self._labels: Labels = np.zeros(self._canvas.large.shape[:2], np.uint8)  # 0: nothing yet
        self._segments: list[Segment] = []

    def stuff(self, noun: str, category: str) -> Sheet:
        """A sheet to paint surroundings on, in pixels of the picture."""
        self._segments.append(Segment(len(self._segments) + 1, noun, category))
        return Sheet(self._canvas.large, self._labels, len(self._segments), (0.0, 0.0), False, 1.0)

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
        self._segments.append(Segment(len(self._segments) + 1, thing.kind, kind.category, thing))
        zoom = thing.zoom * ZOOM[thing.look.size]
        sheet = Sheet(self._canvas.large, self._labels, len(self._segments), thing.where, thing.flip, zoom)
        if kind.shadow:
            sheet.shadow((0, -1), *kind.shadow)
        kind.paint(sheet, thing.look)

    def finish(self) -> Photo:
        """The photo as far as it is painted."""
        labels = self._labels[::SCALE, ::SCALE].copy()
        found = ((segment.number, labels == segment.number) for segment in self._segments)
        extents = {number: cv2.boundingRect(mask.astype(np.uint8)) for number, mask in found if mask.any()}
        return Photo(self._canvas.pixels(), labels, tuple(self._segments), extents)

    def _below(self, thing: Thing) -> Segment | None:
        x, y = (round(place * SCALE) for place in thing.where)
        rows, columns = self._labels.shape
        number = int(self._labels[min(max(y, 0), rows - 1), min(max(x, 0), columns - 1)])
        return self._segments[number - 1] if number else None
