"""What a render shows of each thing, measured from its masks, its depth and where its things stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from generators.kubric_scenes.scene.camera import project
from generators.kubric_scenes.scene.composition import Standing
from generators.kubric_scenes.scene.parts import Picture, Quaternion, Size, Vector, View
from generators.kubric_scenes.scene.silhouettes import fill, outside, polygons, silhouette

FOOT = 0.2  # of the height of an outline


@dataclass(frozen=True, slots=True)
class Instance:
    """One thing as it is seen.

    box: left, top, right, bottom of its mask in pixels (exclusive to the right and below), zeros when it is not seen.
    centroid: of its mask, pixels. pixels: of its mask. visible: share of its outline that is not hidden (0-1).
    foot: likewise of the outline's lowest fifth.
    depth: median distance from the camera plane, scene units, -1 when it is not seen. cut: whether the border of the
    picture cuts it. position, quaternion: of the asset in the scene. rests_on: instances that it touches, -1 the floor.
    """

    name: str
    asset: str
    size: Size
    box: tuple[int, int, int, int]
    centroid: tuple[float, float]
    pixels: int
    visible: float
    foot: float
    depth: float
    cut: bool
    position: Vector
    quaternion: Quaternion
    rests_on: tuple[int, ...]

    def record(self) -> dict[str, Any]:
        """As it goes into a sample's JSON; numbers are rounded to what a reader can use."""
        return {
            "name": self.name,
            "asset": self.asset,
            "size": self.size,
            "box": list(self.box),
            "centroid": [round(value, 2) for value in self.centroid],
            "pixels": self.pixels,
            "visible": round(self.visible, 4),
            "foot": round(self.foot, 4),
            "depth": round(self.depth, 4),
            "position": [round(value, 5) for value in self.position],
            "quaternion": [round(value, 5) for value in self.quaternion],
            "rests_on": list(self.rests_on),
        }


def measure(things: Sequence[Standing], view: View, picture: Picture) -> list[Instance]:
    """Every thing of a scene in its picture, in order."""
    resolution = picture.instances.shape[0]
    found = []
    for number, standing in enumerate(things, start=1):
        mask = picture.instances == number
        outline = silhouette(standing.points, standing.model.faces, view, resolution)
        rows, columns = np.nonzero(mask)
        seen = len(rows) > 0
        found.append(
            Instance(
                name=standing.thing.name,
                asset=standing.thing.asset,
                size=standing.thing.size,
                box=_box(rows, columns) if seen else (0, 0, 0, 0),
                centroid=(float(columns.mean()) + 0.5, float(rows.mean()) + 0.5) if seen else (0.0, 0.0),
                pixels=len(rows),
                visible=min(1.0, len(rows) / max(1, int(outline.sum()))),
                foot=_foot(mask, outline),
                depth=float(np.median(picture.depth[mask])) if seen else -1.0,
                cut=outside(standing.points, view, resolution),
                position=standing.placement.position,
                quaternion=standing.placement.quaternion,
                rests_on=tuple(sorted(standing.rests_on)),
            )
        )
    return found


def foresee(things: Sequence[Standing], view: View, resolution: int) -> Picture:
    """Outlines as they will hide each other, without light: every triangle painted, the farthest first.

    Its pixels are black and its depth that of each triangle's middle. Good enough to see that a thing will be hidden.
    """
    corners, depths, owners = [], [], []
    for number, standing in enumerate(things, start=1):
        pixels, distance = project(standing.points, view, resolution)
        corners.append(pixels[standing.model.faces])
        depths.append(distance[standing.model.faces].mean(axis=1))
        owners.append(np.full(len(standing.model.faces), number))
    instances = np.zeros((resolution, resolution), np.uint8)
    depth = np.full((resolution, resolution), np.inf, np.float32)
    triangles, distances, numbers = np.concatenate(corners), np.concatenate(depths), np.concatenate(owners)
    painted = polygons(triangles)
    for place in np.argsort(-distances, kind="stable"):
        fill(instances, painted[place], int(numbers[place]))
        fill(depth, painted[place], float(distances[place]))
    return Picture(np.zeros((resolution, resolution, 3), np.uint8), instances, depth)


def _foot(mask: NDArray[np.bool_], outline: NDArray[np.bool_]) -> float:
    rows = np.nonzero(outline.any(axis=1))[0]
    if len(rows) == 0:
        return 0.0
    lowest = int(rows[-1] - FOOT * (rows[-1] - rows[0]))
    return min(1.0, int(mask[lowest:].sum()) / int(outline[lowest:].sum()))


def _box(rows: np.ndarray[Any, Any], columns: np.ndarray[Any, Any]) -> tuple[int, int, int, int]:
    return int(columns.min()), int(rows.min()), int(columns.max()) + 1, int(rows.max()) + 1
