"""What photos are painted on, with the segment that each pixel shows, and what kinds of things are and look like."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import cv2
import numpy as np
from numpy.typing import NDArray

from twinset.contracts.kinds.samples import Pixels
from twinset_demo.canvas import SCALE, SHIFT, Canvas, Colour, Point, ellipse_outline, shade

Labels = NDArray[np.uint8]

COLOURS: dict[str, Colour] = {
    "red": (208, 44, 42),
    "blue": (46, 92, 196),
    "green": (62, 150, 66),
    "yellow": (246, 204, 48),
    "orange": (238, 130, 36),
    "pink": (242, 142, 178),
    "purple": (130, 66, 160),
    "white": (244, 244, 240),
    "black": (42, 42, 46),
    "gray": (142, 146, 152),
    "brown": (134, 88, 50),
}
BASIC = ("red", "blue", "green", "yellow")
PAINT = ("red", "blue", "green", "yellow", "white")
BRIGHT = ("red", "blue", "green", "yellow", "orange")
GLAZE = ("red", "blue", "green", "yellow", "white", "orange")
PATTERNS = ("plain", "striped", "dotted")
SIZES = ("small", "large")
WOOD: Colour = (170, 118, 68)
METAL: Colour = (152, 160, 170)
_PERIOD = 10.0  # of stripes and dots, in pixels of the picture


@dataclass(frozen=True)
class Look:
    """What a thing looks like: an attribute for each of its types, such as color: red; "" where it has none."""

    color: str = ""
    pattern: str = ""
    material: str = ""
    shape: str = ""
    size: str = ""
    state: str = ""

    @property
    def rgb(self) -> Colour:
        """Its colour."""
        return COLOURS[self.color]

    def attributes(self) -> dict[str, str]:
        """Attribute by type, of the types that it has."""
        return {kind: value for kind, value in vars(self).items() if value}


class Sheet(Canvas):
    """A canvas whose shapes count as the current segment. x and y as in `Canvas`, enlarged by ``zoom``.

    labels: (480, 640) uint8 number of the segment, as finely as the colours are painted.
    """

    def __init__(self, pixels: Pixels, labels: Labels, segment: int, origin: Point, flip: bool, zoom: float) -> None:
        super().__init__(pixels, origin, 0.0, flip)
        self.labels = labels
        self.segment = segment
        self.zoom = zoom

    def polygon(self, points: Sequence[Point], colour: Colour) -> None:
        super().polygon(points, colour)
        cv2.fillPoly(self.labels, [self._fixed(points)], self.segment, cv2.LINE_8, SHIFT)

    def stroke(self, points: Sequence[Point], width: float, colour: Colour) -> None:
        super().stroke(points, width * self.zoom, colour)
        thickness = max(1, round(width * self.zoom * SCALE))
        cv2.polylines(self.labels, [self._fixed(points)], False, self.segment, thickness, cv2.LINE_8, SHIFT)

    def shadow(self, centre: Point, across: float, high: float) -> None:
        """Darkens the ground, which keeps its segment."""
        inside = self._inside(ellipse_outline(centre, across, high))
        self.large[inside] = (self.large[inside].astype(np.uint16) * 13 // 16).astype(np.uint8)

    def cloth(self, points: Sequence[Point], look: Look) -> None:
        """A filled polygon in a thing's colour and pattern."""
        self.polygon(points, look.rgb)
        if look.pattern not in ("striped", "dotted"):
            return
        rows, columns = np.nonzero(self._inside(points))
        x, y = (columns - columns.min()) / SCALE, (rows - rows.min()) / SCALE
        if look.pattern == "striped":
            inked = x % _PERIOD > _PERIOD * 0.55
        else:
            shifted = x + (y // _PERIOD % 2) * _PERIOD / 2
            inked = (shifted % _PERIOD - _PERIOD / 2) ** 2 + (y % _PERIOD - _PERIOD / 2) ** 2 < 7.3
        ink = (206, 60, 60) if look.color == "white" else (60, 60, 70) if look.color == "yellow" else (250, 250, 246)
        self.large[rows[inked], columns[inked]] = ink

    def ring(self, centre: Point, radius: float, width: float, colour: Colour) -> None:
        """A circle's line."""
        outline = ellipse_outline(centre, radius, radius)
        self.stroke([*outline, outline[0]], width, colour)

    def _inside(self, points: Sequence[Point]) -> NDArray[np.bool_]:
        """Which pixels a polygon covers."""
        mask = np.zeros_like(self.labels)
        cv2.fillPoly(mask, [self._fixed(points)], 1, cv2.LINE_8, SHIFT)
        return mask > 0

    def _fixed(self, points: Sequence[Point]) -> NDArray[np.int32]:
        return super()._fixed([(x * self.zoom, y * self.zoom) for x, y in points])


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of thing.

    Args:
        paint: Paints it on a sheet whose origin is the middle of its foot.
        category: COCO's.
        choices: By attribute type, what it can look like; it always has one attribute of each type.
        top: How high above its foot things stand on it.
        flat: Whether it lies on the ground, so that what comes after may stand on it anywhere.
        shadow: Half axes of its shadow on the ground.
    """

    paint: Callable[[Sheet, Look], None]
    category: str
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    top: float = 0.0
    flat: bool = False
    shadow: tuple[float, float] | None = None


def darker(look: Look) -> Colour:
    """The colour of a thing's edges."""
    return shade(look.rgb, 0.75)
