"""Which object of the small world a patch of a picture is, by its outline."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import cv2
import numpy as np
from numpy.typing import NDArray

from generators.builtin.small_diffusion.painter import SILHOUETTES, SIZE
from generators.builtin.small_diffusion.scenes import OBJECTS

#: Share of each pixel that an object covers, (64, 64), 0..1.
Cover = NDArray[np.float32]

#: Of a patch with the object it is taken for. Painted ones reach 0.85, blurred by 1 pixel with noise of 12 levels 0.77.
LEAST_OVERLAP = 0.75
#: Extents in pixels outside of which nothing is an object: the painter draws 13.5 to 36.5.
EXTENTS = (10.5, 42.0)
_FINER = 4


@dataclass(frozen=True, slots=True)
class Match:
    """The object that a patch resembles most, None: none enough. centre (x, y) and extent in pixels, as painted."""

    shape: str | None
    centre: tuple[float, float]
    extent: float
    overlap: float


def match(cover: Cover, window: tuple[slice, slice], softness: float) -> Match:
    """Each silhouette is laid over the patch with the same area and centroid; the greatest overlap decides.

    overlap: sum of the smaller over sum of the greater of both covers, the intersection over union of soft outlines.
    window: what of the picture a frame leaves free; it cuts the silhouettes as it cut the patch. softness: sigma in
    pixels of the smoothing that the patch went through.
    """
    area = float(cover.sum())
    at = _centroid(cover, area)
    best = Match(None, (float(at[0]), float(at[1])), area**0.5, 0.0)
    for name in OBJECTS:
        unit_area, centroid = _moments(name)
        extent = (area / unit_area) ** 0.5
        if not EXTENTS[0] <= extent < EXTENTS[1]:
            continue
        centre = at - centroid * extent
        laid = np.zeros_like(cover)
        laid[window] = cv2.GaussianBlur(_drawn(name, centre, extent), (0, 0), softness)[window]
        overlap = float(np.minimum(cover, laid).sum() / np.maximum(cover, laid).sum())
        if overlap > best.overlap:
            best = Match(name, (float(centre[0]), float(centre[1])), extent, overlap)
    return best if best.overlap >= LEAST_OVERLAP else Match(None, best.centre, best.extent, best.overlap)


def _drawn(name: str, centre: NDArray[np.float64], extent: float) -> Cover:
    canvas = np.zeros((SIZE * _FINER, SIZE * _FINER), np.float32)
    for outline in SILHOUETTES[name]:
        cv2.fillPoly(canvas, [((outline * extent + centre) * _FINER).round().astype(np.int32)], 1.0)
    return np.asarray(cv2.resize(canvas, (SIZE, SIZE), interpolation=cv2.INTER_AREA), np.float32)


@cache
def _moments(name: str) -> tuple[float, NDArray[np.float64]]:
    """Area of a silhouette of extent 1, and its centroid (x, y)."""
    extent = SIZE * 0.9
    drawn = _drawn(name, np.array([SIZE / 2, SIZE / 2]), extent)
    area = float(drawn.sum())
    return area / extent**2, (_centroid(drawn, area) - SIZE / 2) / extent


def _centroid(cover: Cover, area: float) -> NDArray[np.float64]:
    places = np.arange(SIZE) + 0.5
    return np.array([cover.sum(0) @ places, cover.sum(1) @ places]) / max(area, 1e-6)
