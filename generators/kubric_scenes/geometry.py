"""What a scene of EQ-Kubric consists of, how the camera sees it, and what was rendered.

Lengths are in scene units (an ordinary thing is about one unit long), Z points up, the floor is Z = 0. The camera looks
along +Y and a little down, so that in the picture right is +X and behind is +Y.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import cv2
import numpy as np
import trimesh.transformations
from numpy.typing import NDArray

from twinset.generators.kubric_scenes.assets import AssetShelf
from twinset.generators.kubric_scenes.captions import NamedAsset, load_vocabulary

Vector = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]  # w, x, y, z
Colour = tuple[float, float, float]  # linear RGB, 0-1
Points = NDArray[np.float64]

transformations: Any = trimesh.transformations  # which has no types

SENSOR_WIDTH = 36.0  # millimetres
FOCAL_LENGTH = 80.0  # millimetres: from afar, so that sizes can be compared
FILLED = 0.86  # share of the picture that the things take at most
FIT_ROUNDS = 24
DAMPING = 0.7  # whole steps overshoot where near things move much faster through the picture than far ones
SUBPIXEL_BITS = 4


@dataclass(frozen=True, slots=True)
class Placement:
    """An asset where it stands. scale: scene units for one unit of the asset; position: of the asset's origin."""

    asset: str
    scale: float
    position: Vector
    quaternion: Quaternion


def vector(values: Iterable[float]) -> Vector:
    """Three numbers to a millionth: the last bits of linear algebra differ between processors of one runtime class."""
    x, y, z = (round(float(value), 6) for value in values)
    return x, y, z


@dataclass(frozen=True, slots=True)
class View:
    """All that the two images of a pair share besides their common things.

    camera, target: where the camera stands and what it looks at.
    sun: where the directional key light shines from; sun_strength: its irradiance, W/m².
    floor: its colour.
    """

    camera: Vector
    target: Vector
    sun: Vector
    sun_strength: float
    floor: Colour


@dataclass(eq=False, slots=True)
class Picture:
    """A render.

    pixels: (height, width, 3) uint8 sRGB. instances: (height, width) uint8, 0 where no placement is seen, else its
    number in the order given, from 1. depth: (height, width) float32, distance to the camera plane in scene units,
    infinite where nothing is.
    """

    pixels: NDArray[np.uint8]
    instances: NDArray[np.uint8]
    depth: NDArray[np.float32]


class Refuted(Exception):
    """A try at a pair that found no place, or does not show its captions; `reason` is short and countable."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


_HALF = math.sqrt(0.5)

#: The rotation that turns an asset's own up axis to Z.
UPRIGHT: dict[str, Quaternion] = {
    "z": (1.0, 0.0, 0.0, 0.0),
    "-z": (0.0, 1.0, 0.0, 0.0),
    "y": (_HALF, _HALF, 0.0, 0.0),
    "-y": (_HALF, -_HALF, 0.0, 0.0),
    "x": (_HALF, 0.0, -_HALF, 0.0),
    "-x": (_HALF, 0.0, _HALF, 0.0),
}
#: Of the ratio of large to small: what a thing of ordinary size is scaled by.
SIZE_EXPONENTS = {"small": -0.5, "": 0.0, "large": 0.5}


@dataclass(frozen=True, slots=True)
class Model:
    """A thing's asset. points: (n, 3) corners of its mesh in scene units, upright, its origin at 0; faces: (m, 3)."""

    asset: str
    scale: float
    upright: Quaternion
    points: Points
    faces: NDArray[np.int32]

    def on_floor(self, x: float, y: float, yaw: float, height: float = 0.0) -> Placement:
        """Its middle over (x, y), turned by ``yaw`` (radians), its lowest point ``height`` above the floor."""
        turned = _turned(self.points, _about_z(yaw))
        low, high = turned.min(axis=0), turned.max(axis=0)
        middle = (low + high) / 2
        position = vector((x - middle[0], y - middle[1], height - low[2]))
        return Placement(self.asset, self.scale, position, _product(_about_z(yaw), self.upright))

    def placed(self, placement: Placement) -> Points:
        """Corners of its mesh where a placement puts them, (n, 3)."""
        # What `upright` did is part of the placement's own rotation.
        rotation = _product(placement.quaternion, transformations.quaternion_conjugate(self.upright))
        return _turned(self.points, rotation) + placement.position


def model_of(thing: NamedAsset, shelf: AssetShelf, size_ratio: float) -> Model:
    """The model of a thing; raises what reading its mesh raises. size_ratio: of large things to small ones."""
    entry = load_vocabulary().entry(thing.name)
    (use,) = entry.uses((thing.asset,))
    vertices, faces = shelf.mesh(thing.asset)
    upright = _product(_about_z(math.radians(use.yaw)), UPRIGHT[use.up])
    points = _turned(vertices.astype(np.float64), upright)
    length = entry.extent * size_ratio ** SIZE_EXPONENTS[thing.size]
    scale = length / float(np.ptp(points, axis=0).max())
    return Model(thing.asset, scale, upright, points * scale, faces)


def _turned(points: Points, rotation: Quaternion) -> Points:
    """Points (n, 3) turned around the origin."""
    matrix: Points = transformations.quaternion_matrix(rotation)[:3, :3]
    return points @ matrix.T


def _about_z(angle: float) -> Quaternion:
    return math.cos(angle / 2), 0.0, 0.0, math.sin(angle / 2)


def _product(second: Quaternion, first: Quaternion) -> Quaternion:
    w, x, y, z = transformations.quaternion_multiply(second, first)
    return float(w), float(x), float(y), float(z)


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
        shift = (low_pixel + high_pixel) / 2 * distance * SENSOR_WIDTH / (2 * FOCAL_LENGTH)
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
    scale = resolution * FOCAL_LENGTH / SENSOR_WIDTH / seen[:, 2]
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
