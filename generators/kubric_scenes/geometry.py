"""What a scene of EQ-Kubric consists of, how the camera sees it, and what was rendered.

Lengths are in scene units (an ordinary thing is about one unit long), Z points up, the floor is Z = 0. The camera looks
along +Y and a little down, so that in the picture right is +X and behind is +Y.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
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
#: Where the directional key light shines from: from behind the viewer and high, so that the shadow of a thing falls
#: behind it and reaches none beside it.
SUN: Vector = (-0.1, -0.42, 0.9)
SUN_STRENGTH = 3.6  # W/m²
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
    floor: its colour.
    """

    camera: Vector
    target: Vector
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


#: What a thing is scaled by: a large one is 1.8 times as long as a small one.
SIZES = {"small": 1.8**-0.5, "": 1.0, "large": 1.8**0.5}


@dataclass(frozen=True, slots=True)
class Model:
    """A thing's asset. points: (n, 3) corners of its mesh in scene units, its origin at 0; faces: (m, 3)."""

    asset: str
    scale: float
    points: Points
    faces: NDArray[np.int32]

    def on_floor(self, x: float, y: float, yaw: float, height: float = 0.0) -> Placement:
        """Its middle over (x, y), turned by ``yaw`` (radians), its lowest point ``height`` above the floor."""
        about_z = math.cos(yaw / 2), 0.0, 0.0, math.sin(yaw / 2)
        turned = _turned(self.points, about_z)
        low, high = turned.min(axis=0), turned.max(axis=0)
        middle = (low + high) / 2
        position = vector((x - middle[0], y - middle[1], height - low[2]))
        return Placement(self.asset, self.scale, position, about_z)

    def placed(self, placement: Placement) -> Points:
        """Corners of its mesh where a placement puts them, (n, 3)."""
        return _turned(self.points, placement.quaternion) + placement.position


def model_of(named: NamedAsset, shelf: AssetShelf) -> Model:
    """The model of a thing; raises what reading its mesh raises."""
    vertices, faces = shelf.mesh(named.asset)
    points = vertices.astype(np.float64)
    length = load_vocabulary().entry(named.name).extent * SIZES[named.size]
    scale = length / float(np.ptp(points, axis=0).max())
    return Model(named.asset, scale, points * scale, faces)


def _turned(points: Points, rotation: Quaternion) -> Points:
    """Points (n, 3) turned around the origin."""
    matrix: Points = transformations.quaternion_matrix(rotation)[:3, :3]
    return points @ matrix.T


def frame_things(points: Points, elevation: float, floor: Colour) -> View:
    """The view with its camera as near as it can be while the points take no more than `FILLED` of the picture.

    Args:
        points: (n, 3), all that either image of the pair shows.
        elevation: of the camera above the floor, in radians.
        floor: its colour.
    """
    forward = np.array([0.0, math.cos(elevation), -math.sin(elevation)])
    turned = _axes(forward)
    seen = points @ turned
    middle = (seen.min(axis=0) + seen.max(axis=0)) / 2
    across, away = np.abs(seen - middle)[:, :2].max(axis=1), (seen - middle)[:, 2]
    distance = float((across * 2 * FOCAL_LENGTH / (SENSOR_WIDTH * FILLED) - away).max())
    target = turned @ middle
    return View(vector(target - distance * forward), vector(target), floor)


def project(points: Points, view: View, resolution: int) -> tuple[Points, Points]:
    """Where points come to lie in a square picture.

    points: (n, 3) in scene units. Returns (n, 2) pixel coordinates, (0, 0) the upper left corner of the picture, and
    (n,) distances to the camera plane.
    """
    seen = (points - np.asarray(view.camera)) @ _axes(np.subtract(view.target, view.camera))
    scale = resolution * FOCAL_LENGTH / SENSOR_WIDTH / seen[:, 2]
    return np.stack([resolution / 2 + seen[:, 0] * scale, resolution / 2 - seen[:, 1] * scale], axis=1), seen[:, 2]


def _axes(forward: Points) -> Points:
    """Right, up and forward of a camera that looks along ``forward``, the columns of a (3, 3) matrix."""
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
