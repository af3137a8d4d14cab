"""Assets as things of the vocabulary: upright, turned to the viewer, and as large as what they are called."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import trimesh.transformations
from numpy.typing import NDArray

from generators.kubric_scenes.captions.vocabulary import Vocabulary
from generators.kubric_scenes.scene.parts import Placement, Quaternion, Size, Thing, Vector, vector

Points = NDArray[np.float64]

transformations: Any = trimesh.transformations  # its functions are not typed

KEPT = 48  # models: scanned meshes are megabytes each
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


@dataclass(frozen=True, slots=True)
class Model:
    """A thing's asset. points: (n, 3) corners of its mesh in scene units, upright, its origin at 0; faces: (m, 3)."""

    asset: str
    scale: float
    upright: Quaternion
    points: Points
    faces: NDArray[np.int32]

    @property
    def size(self) -> Vector:
        """Width (X), depth (Y), height (Z) as it faces the viewer, in scene units."""
        width, depth, height = self.points.max(axis=0) - self.points.min(axis=0)
        return float(width), float(depth), float(height)

    def on_floor(self, x: float, y: float, yaw: float, height: float = 0.0) -> Placement:
        """Its middle over (x, y), turned by ``yaw`` (radians), its lowest point ``height`` above the floor."""
        turned = turn(self.points, _about_z(yaw))
        low, high = turned.min(axis=0), turned.max(axis=0)
        middle = (low + high) / 2
        position = vector((x - middle[0], y - middle[1], height - low[2]))
        return Placement(self.asset, self.scale, position, _product(_about_z(yaw), self.upright))

    def placed(self, placement: Placement) -> Points:
        """Corners of its mesh where a placement puts them, (n, 3)."""
        # What `upright` did is part of the placement's own rotation.
        rotation = _product(placement.quaternion, _inverse(self.upright))
        points: Points = turn(self.points, rotation) + np.asarray(placement.position)
        return points


class Meshes(Protocol):
    """Where meshes come from: `generators.kubric_scenes.assets.shelf.AssetShelf`."""

    def mesh(self, asset: str) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
        """Vertices (n, 3) in the asset's own units, and faces (m, 3)."""
        ...


class Models:
    """Models of things; the last used are kept."""

    def __init__(self, meshes: Meshes, vocabulary: Vocabulary, size_ratio: float) -> None:
        self._meshes = meshes
        self._vocabulary = vocabulary
        self._factors: dict[Size, float] = {"": 1.0, "small": size_ratio**-0.5, "large": size_ratio**0.5}
        self._kept = lru_cache(KEPT)(self._load)

    def of(self, thing: Thing) -> Model:
        """The model of a thing; raises what reading its mesh raises."""
        return self._kept(thing)

    def _load(self, thing: Thing) -> Model:
        use = self._vocabulary.use(thing.name, thing.asset)
        vertices, faces = self._meshes.mesh(thing.asset)
        upright = _product(_about_z(math.radians(use.yaw)), UPRIGHT[use.up])
        points = turn(np.asarray(vertices, dtype=np.float64), upright)
        longest = float((points.max(axis=0) - points.min(axis=0)).max())
        scale = self._vocabulary.entry(thing.name).extent * self._factors[thing.size] / longest
        return Model(thing.asset, scale, upright, points * scale, faces)


def turn(points: Points, rotation: Quaternion) -> Points:
    """Points (n, 3) turned around the origin."""
    matrix: Points = transformations.quaternion_matrix(rotation)[:3, :3]
    return points @ matrix.T


def _about_z(angle: float) -> Quaternion:
    return math.cos(angle / 2), 0.0, 0.0, math.sin(angle / 2)


def _product(second: Quaternion, first: Quaternion) -> Quaternion:
    w, x, y, z = transformations.quaternion_multiply(second, first)
    return float(w), float(x), float(y), float(z)


def _inverse(rotation: Quaternion) -> Quaternion:
    w, x, y, z = rotation
    return w, -x, -y, -z
