"""What a scene of EQ-Kubric consists of: what the plan draws, where things stand, how they are seen, what was rendered.

Lengths are in scene units (an ordinary thing is about one unit long), Z points up, the floor is Z = 0.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from twinset.generators.kubric_scenes.assets.shelf import AssetShelf
from twinset.generators.kubric_scenes.captions.vocabulary import load_vocabulary

Aspect = Literal["location", "counting", "attribute"]
Relation = Literal["in-front", "behind", "left", "right", "on-top"]
Size = Literal["", "small", "large"]
Vector = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]  # w, x, y, z
Colour = tuple[float, float, float]  # linear RGB, 0-1
Points = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class NamedAsset:
    """What a caption names. name: of the vocabulary; asset: id in the asset source; size: empty when not drawn."""

    name: str
    asset: str
    size: Size = ""


@dataclass(frozen=True, slots=True)
class Drawn:
    """One planned pair without its pixels: everything that its two captions say.

    object0, object1: differ in the attribute aspect only. subject: None when counting. relation0, relation1: empty when
    counting, and equal in the attribute aspect. count0, count1: 1 except when counting.
    """

    aspect: Aspect
    object0: NamedAsset
    object1: NamedAsset
    subject: NamedAsset | None
    relation0: Relation | Literal[""]
    relation1: Relation | Literal[""]
    count0: int
    count1: int


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


def sun_at(azimuth: float, height: float) -> Vector:
    """The direction of a sun. azimuth: radians from +X; height: radians above the floor."""
    return math.cos(azimuth) * math.cos(height), math.sin(azimuth) * math.cos(height), math.sin(height)


@dataclass(frozen=True, slots=True)
class View:
    """All that the two images of a pair share besides their common things.

    camera, target: where the camera stands and what it looks at. focal_length, sensor_width: millimetres.
    sun: where the directional key light shines from; sun_strength: its irradiance, W/m².
    ambient: radiance of the sky when there is no background; floor: its colour, likewise.
    background: an equirectangular HDRI file that lights and surrounds the scene; background_yaw: radians around Z.
    """

    camera: Vector
    target: Vector
    focal_length: float
    sensor_width: float
    sun: Vector
    sun_strength: float
    ambient: Colour
    floor: Colour
    background: Path | None = None
    background_yaw: float = 0.0


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
        rotation = _product(placement.quaternion, _transformations().quaternion_conjugate(self.upright))
        return _turned(self.points, rotation) + placement.position


def model_of(thing: NamedAsset, shelf: AssetShelf, size_ratio: float) -> Model:
    """The model of a thing; raises what reading its mesh raises. size_ratio: of large things to small ones."""
    vocabulary = load_vocabulary()
    use = vocabulary.use(thing.name, thing.asset)
    vertices, faces = shelf.mesh(thing.asset)
    upright = _product(_about_z(math.radians(use.yaw)), UPRIGHT[use.up])
    points = _turned(vertices.astype(np.float64), upright)
    length = vocabulary.entry(thing.name).extent * size_ratio ** SIZE_EXPONENTS[thing.size]
    scale = length / float(np.ptp(points, axis=0).max())
    return Model(thing.asset, scale, upright, points * scale, faces)


@cache
def _transformations() -> Any:
    import trimesh.transformations  # slow, and a plan does without

    return trimesh.transformations


def _turned(points: Points, rotation: Quaternion) -> Points:
    """Points (n, 3) turned around the origin."""
    matrix: Points = _transformations().quaternion_matrix(rotation)[:3, :3]
    return points @ matrix.T


def _about_z(angle: float) -> Quaternion:
    return math.cos(angle / 2), 0.0, 0.0, math.sin(angle / 2)


def _product(second: Quaternion, first: Quaternion) -> Quaternion:
    w, x, y, z = _transformations().quaternion_multiply(second, first)
    return float(w), float(x), float(y), float(z)
