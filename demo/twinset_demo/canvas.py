"""A small anti-aliased canvas on OpenCV: shapes in picture pixels, under a movable local frame."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

import cv2
import numpy as np
from numpy.typing import NDArray

from twinset.contracts.kinds.samples import Pixels

Colour = tuple[int, int, int]
Point = tuple[float, float]

WIDTH, HEIGHT = 320, 240
SCALE = 2  # shapes are painted at twice the size and averaged down: smoother than OpenCV's own anti-aliasing
SHIFT = 4  # fractional bits of OpenCV's fixed-point coordinates


def shade(colour: Colour, factor: float) -> Colour:
    """A colour made darker (factor below 1) or lighter (above 1)."""
    red, green, blue = (min(255, max(0, round(channel * factor))) for channel in colour)
    return red, green, blue


def ellipse_outline(centre: Point, across: float, high: float) -> list[Point]:
    """36 corners of an ellipse with half axes ``across`` and ``high``."""
    x, y = centre
    turns = np.linspace(0, 2 * math.pi, 36, endpoint=False)
    return [(x + across * math.cos(turn), y + high * math.sin(turn)) for turn in turns]


def box_outline(left: float, top: float, right: float, bottom: float) -> list[Point]:
    """Corners of a rectangle."""
    return [(left, top), (right, top), (right, bottom), (left, bottom)]


class Canvas:
    """A picture to paint RGB shapes on; x to the right and y downwards, in pixels of the finished 320 x 240 picture."""

    def __init__(self, pixels: Pixels, origin: Point = (0.0, 0.0), angle: float = 0.0, flip: bool = False) -> None:
        self.large = pixels
        self.origin = origin
        self._cos, self._sin = math.cos(angle), math.sin(angle)
        self._mirror = -1.0 if flip else 1.0

    @classmethod
    def blank(cls, colour: Colour) -> Canvas:
        """An empty canvas of one colour."""
        return cls(np.full((HEIGHT * SCALE, WIDTH * SCALE, 3), colour, np.uint8))

    def copy(self) -> Canvas:
        """A copy of the picture, so that painting leaves this one as it is."""
        return Canvas(self.large.copy(), self.origin)

    def at(self, where: Point, angle: float = 0.0, flip: bool = False) -> Canvas:
        """The same picture under a local frame: origin at ``where``, turned clockwise by ``angle`` (radians),
        mirrored left to right where ``flip``."""
        return Canvas(self.large, where, angle, flip)

    def pixels(self) -> Pixels:
        """The finished picture: (240, 320, 3) uint8 RGB."""
        small = cv2.resize(self.large, (WIDTH, HEIGHT), interpolation=cv2.INTER_AREA)
        return np.asarray(small, np.uint8)

    def polygon(self, points: Sequence[Point], colour: Colour) -> None:
        """A filled polygon, which need not be convex."""
        cv2.fillPoly(self.large, [self._fixed(points)], colour, cv2.LINE_AA, SHIFT)

    def box(self, left: float, top: float, right: float, bottom: float, colour: Colour) -> None:
        """A filled rectangle."""
        self.polygon(box_outline(left, top, right, bottom), colour)

    def ellipse(self, centre: Point, across: float, high: float, colour: Colour) -> None:
        """A filled ellipse with half axes ``across`` and ``high``."""
        self.polygon(ellipse_outline(centre, across, high), colour)

    def discs(self, *discs: tuple[float, Colour]) -> None:
        """Filled circles around the origin, each a radius and a colour, one over the other."""
        for radius, colour in discs:
            self.ellipse((0, 0), radius, radius, colour)

    def stroke(self, points: Sequence[Point], width: float, colour: Colour) -> None:
        """A line through points with round joints and ends."""
        thickness = max(1, round(width * SCALE))
        cv2.polylines(self.large, [self._fixed(points)], False, colour, thickness, cv2.LINE_AA, SHIFT)

    def boxes(self, boxes: Iterable[tuple[float, float, float, float]], colour: Colour) -> None:
        """Several rectangles."""
        for left, top, right, bottom in boxes:
            self.box(left, top, right, bottom, colour)

    def ellipses(self, centres: Iterable[Point], across: float, high: float, colour: Colour) -> None:
        """Several ellipses of one size."""
        for centre in centres:
            self.ellipse(centre, across, high, colour)

    def strokes(self, lines: Iterable[Sequence[Point]], width: float, colour: Colour) -> None:
        """Several lines."""
        for points in lines:
            self.stroke(points, width, colour)

    def limb(self, points: Sequence[Point], start: float, end: float, colour: Colour) -> None:
        """A tapering limb, ``start`` thick at its first point and ``end`` at its last, darker along its edge."""
        widths = np.linspace(start, end, len(points))
        for inset, tint in ((0.0, shade(colour, 0.78)), (1.1, colour)):
            for (a, b), first, last in zip(pairwise(points), widths, widths[1:], strict=False):
                self._taper(a, b, first / 2 - inset, last / 2 - inset, tint)

    def _taper(self, a: Point, b: Point, start: float, end: float, colour: Colour) -> None:
        along = math.atan2(b[1] - a[1], b[0] - a[0])
        outline: list[Point] = []
        for (x, y), radius, turned in ((a, start, along + math.pi / 2), (b, end, along - math.pi / 2)):
            outline += [
                (x + radius * math.cos(turned + step), y + radius * math.sin(turned + step))
                for step in np.linspace(0, math.pi, 9)
            ]
        self.polygon(outline, colour)

    def _fixed(self, points: Sequence[Point]) -> NDArray[np.int32]:
        local = np.asarray(points, np.float64) * (self._mirror, 1.0)
        turned = local @ np.array([[self._cos, self._sin], [-self._sin, self._cos]]) + self.origin
        return np.asarray(np.rint((turned * SCALE - 0.5) * (1 << SHIFT)), np.int32).reshape(-1, 1, 2)
