"""The camera of a scene: from where all its things are seen well, and where points and meshes come to lie in a picture.

The camera looks along +Y and a little down, so that in the picture right is +X and behind is +Y.
"""

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from twinset.generators.kubric_scenes.scene.parts import Points, View, vector

FILLED = 0.86  # share of the picture that the things take at most
FIT_ROUNDS = 24
DAMPING = 0.7  # whole steps overshoot where near things move much faster through the picture than far ones
SUBPIXEL_BITS = 4


def frame_things(view: View, points: Points, elevation: float, filled: float = FILLED) -> View:
    """The view with its camera as near as it can be while the points take no more than a share of the picture.

    Args:
        points: (n, 3), all that either image of the pair shows.
        elevation: of the camera above the floor, in radians.
        filled: the share of the picture's width or height that the points take.
    """
    low, high = points.min(axis=0), points.max(axis=0)
    target = (low + high) / 2
    distance = float(np.linalg.norm(high - low)) * 2
    for _ in range(FIT_ROUNDS):
        view = _looking(view, target, elevation, distance)
        pixels, _ = project(points, view, 2)
        low_pixel, high_pixel = pixels.min(axis=0) - 1, pixels.max(axis=0) - 1
        extent = float(np.abs([low_pixel, high_pixel]).max())
        # Perspective shows the near side larger: the centre of what is seen is not the projection of the centre.
        shift = (low_pixel + high_pixel) / 2 * distance * view.sensor_width / (2 * view.focal_length)
        target = target + DAMPING * np.array([shift[0], 0.0, -shift[1] / math.cos(elevation)])
        distance *= (extent / filled) ** DAMPING
    return _looking(view, target, elevation, distance)


def _looking(view: View, target: Points, elevation: float, distance: float) -> View:
    camera = target + distance * np.array([0.0, -math.cos(elevation), math.sin(elevation)])
    return replace(view, camera=vector(camera), target=vector(target))


def project(points: Points, view: View, resolution: int) -> tuple[Points, Points]:
    """Where points come to lie in a square picture.

    points: (n, 3) in scene units. Returns (n, 2) pixel coordinates, (0, 0) the upper left corner of the picture, and
    (n,) distances to the camera plane.
    """
    seen = (points - np.asarray(view.camera)) @ axes(view)
    scale = resolution * view.focal_length / view.sensor_width / seen[:, 2]
    return np.stack([resolution / 2 + seen[:, 0] * scale, resolution / 2 - seen[:, 1] * scale], axis=1), seen[:, 2]


def axes(view: View) -> Points:
    """Right, up and forward of the camera in the scene, the columns of a (3, 3) matrix."""
    forward = np.asarray(view.target) - np.asarray(view.camera)
    forward = forward / np.linalg.norm(forward)
    right = np.cross(forward, [0.0, 0.0, 1.0])
    right = right / np.linalg.norm(right)
    return np.stack([right, np.cross(right, forward), forward], axis=1)


def paint(triangles: Points, order: Iterable[Any], shape: tuple[int, int]) -> NDArray[np.int32]:
    """The number of the triangle that is seen in each pixel when all are filled in an order; -1 where none is.

    triangles: (n, 3, 2) in pixel coordinates. shape: height and width of the picture.
    """
    seen = np.full(shape, -1, np.int32)
    # OpenCV counts from the centres of pixels.
    corners = np.round((triangles - 0.5) * (1 << SUBPIXEL_BITS)).astype(np.int32)
    for number in order:
        cv2.fillConvexPoly(seen, corners[number], int(number), lineType=cv2.LINE_8, shift=SUBPIXEL_BITS)
    return seen
