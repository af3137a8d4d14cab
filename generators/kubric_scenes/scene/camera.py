"""The camera of a scene: from where all its things are seen well, and where points and meshes come to lie in a picture.

The camera looks along +Y and a little down, so that in the picture right is +X and behind is +Y.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from twinset.generators.kubric_scenes.scene.look import Look
from twinset.generators.kubric_scenes.scene.parts import Points, View, vector

FILLED = 0.86  # share of the picture that the things take at most
FIT_ROUNDS = 24
DAMPING = 0.7  # whole steps overshoot where near things move much faster through the picture than far ones
SUBPIXEL_BITS = 4


def frame_things(
    view: View, points: Points, elevation: float, filled: float = FILLED, aside: tuple[float, float] = (0.0, 0.0)
) -> View:
    """The view with its camera as near as it can be while the points take no more than a share of the picture.

    Args:
        points: (n, 3), all that either image of the pair shows.
        elevation: of the camera above the floor, in radians.
        filled: the share of the picture's width or height that the points take.
        aside: where their middle lies, from the picture's centre, in half pictures to the right and down.
    """
    low, high = points.min(axis=0), points.max(axis=0)
    target = (low + high) / 2
    distance = float(np.linalg.norm(high - low)) * 2
    for _ in range(FIT_ROUNDS):
        view = _looking(view, target, elevation, distance)
        pixels, _ = project(points, view, 2)
        low_pixel, high_pixel = pixels.min(axis=0) - 1 - aside, pixels.max(axis=0) - 1 - aside
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


def unproject(depth: NDArray[np.float32], view: View) -> Points:
    """What `project` maps to the middle of each pixel: (height, width, 3) in the scene, not finite where depth is not.

    depth: (height, width), distances to the camera plane, of a square picture.
    """
    resolution = depth.shape[0]
    middles = (np.arange(resolution) + 0.5 - resolution / 2) * view.sensor_width / view.focal_length / resolution
    right, up = np.meshgrid(middles, -middles)
    seen = np.stack([right, up, np.ones_like(right)], axis=2) * depth[..., None]
    with np.errstate(invalid="ignore"):  # nothing is seen where the floor ends: infinity times 0 is as good as infinity
        points: Points = seen @ axes(view).T + np.asarray(view.camera)
    return points


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


SENSOR_WIDTH = 36.0  # millimetres
FOCAL_LENGTH = 80.0  # millimetres: from afar, so that sizes can be compared
ELEVATION = (26.0, 36.0)  # degrees: high enough to see where things stand, low enough to see what they are
STEEPER, STEEPEST = 4.0, 52.0  # degrees more for each further attempt, and at most
FOCAL_LENGTHS = (45.0, 90.0)  # of varied cameras, likewise what follows
ELEVATIONS = (20.0, 44.0)
FILLS = (0.56, 0.82)
NEARER = 0.06  # more of the least fill for each further try, so that nothing is too small
ASIDE = 0.08  # half pictures to the left or right: farther off, "in front" would be to one side
BORDER = 0.92  # of half a picture: as far down as what a camera sees may be moved
FLATTER = 0.32  # of half the angle of view: rays to the upper part of what is seen are flatter by up to this much


@dataclass(frozen=True, slots=True)
class Shot:
    """How a camera looks at things, wherever they are.

    elevation: radians. filled, aside: as `frame_things` has them.
    """

    focal_length: float
    elevation: float
    filled: float
    aside: tuple[float, float]

    @property
    def flattest(self) -> float:
        """Elevation of the flattest rays that matter, radians."""
        return self.elevation - FLATTER * math.atan(SENSOR_WIDTH / 2 / self.focal_length)


def sample_shot(look: Look, attempt: int, rng: np.random.Generator) -> Shot:
    """A camera. attempt: of the same pair, from 0; each looks down a little more steeply, so that less is hidden."""
    steeper = STEEPER * attempt
    if look.camera == "steady":
        elevation = min(STEEPEST, rng.uniform(*ELEVATION) + steeper)
        return Shot(FOCAL_LENGTH, math.radians(elevation), FILLED, (0.0, 0.0))
    # Even in the width of what is seen, not in millimetres.
    focal_length = 1 / rng.uniform(1 / FOCAL_LENGTHS[1], 1 / FOCAL_LENGTHS[0])
    elevation = min(STEEPEST, rng.uniform(*ELEVATIONS) + steeper)
    filled = rng.uniform(min(FILLS[0] + NEARER * attempt, FILLS[1]), FILLS[1])
    aside = float(rng.uniform(-ASIDE, ASIDE)), float(rng.uniform(-0.3, 1.0) * (BORDER - filled))
    return Shot(float(focal_length), math.radians(elevation), float(filled), aside)
