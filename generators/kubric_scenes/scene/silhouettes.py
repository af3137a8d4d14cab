"""Outlines of meshes, filled: what of each thing could be seen if nothing stood before it."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from generators.kubric_scenes.scene.camera import Points, project
from generators.kubric_scenes.scene.parts import View

_SUBPIXEL_BITS = 4


def silhouette(points: Points, faces: NDArray[np.int32], view: View, resolution: int) -> NDArray[np.bool_]:
    """(resolution, resolution) pixels that a mesh covers. points: (n, 3) in the scene; faces: (m, 3)."""
    pixels, _ = project(points, view, resolution)
    mask = np.zeros((resolution, resolution), np.uint8)
    for triangle in polygons(pixels[faces]):
        fill(mask, triangle, 1)
    return mask.astype(bool)


def polygons(triangles: Points) -> NDArray[np.int32]:
    """Triangles (n, 3, 2) in pixel coordinates as `fill` takes them."""
    # OpenCV counts from the centres of pixels.
    return np.round((triangles - 0.5) * (1 << _SUBPIXEL_BITS)).astype(np.int32)


def fill(image: NDArray[Any], polygon: NDArray[np.int32], value: float) -> None:
    """Fill one of `polygons` in an image of one channel of any type."""
    cv2.fillConvexPoly(image, polygon, value, lineType=cv2.LINE_8, shift=_SUBPIXEL_BITS)


def outside(points: Points, view: View, resolution: int) -> bool:
    """Whether a mesh is cut off by the border of the picture."""
    pixels, distance = project(points, view, resolution)
    return bool((pixels < 0).any() or (pixels > resolution).any() or (distance <= 0).any())
