"""What of each thing could be seen if nothing stood before it: outlines of meshes, filled."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from generators.kubric_scenes.camera import Points, project
from generators.kubric_scenes.scene import View

_SUBPIXEL_BITS = 4


def silhouette(points: Points, faces: NDArray[np.int32], view: View, resolution: int) -> NDArray[np.bool_]:
    """(resolution, resolution) pixels that a mesh covers. points: (n, 3) in the scene; faces: (m, 3)."""
    pixels, _ = project(points, view, resolution)
    mask = np.zeros((resolution, resolution), np.uint8)
    for triangle in pixels[faces]:
        fill(mask, triangle, 1)
    return mask.astype(bool)


def fill(image: NDArray[Any], triangle: Points, value: float) -> None:
    """Fill a triangle, (3, 2) pixel coordinates, in a one-channel image of any type."""
    # OpenCV counts from the centres of pixels.
    fixed = np.round((triangle - 0.5) * (1 << _SUBPIXEL_BITS)).astype(np.int32)
    cv2.fillConvexPoly(image, fixed, value, lineType=cv2.LINE_8, shift=_SUBPIXEL_BITS)


def outside(points: Points, view: View, resolution: int) -> bool:
    """Whether a mesh is cut off by the border of the picture."""
    pixels, distance = project(points, view, resolution)
    return bool((pixels < 0).any() or (pixels > resolution).any() or (distance <= 0).any())
