"""Assets as things of the vocabulary: upright, turned to the viewer, and as large as what they are called."""

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twinset.generators.kubric_scenes.assets.shelf import AssetShelf
from twinset.generators.kubric_scenes.captions.vocabulary import load_vocabulary
from twinset.generators.kubric_scenes.scene.parts import NamedAsset, Placement, Points, Quaternion, vector

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
