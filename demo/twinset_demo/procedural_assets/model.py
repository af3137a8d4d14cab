"""A thing as surfaces with pictures and finishes, and the convex parts that it collides with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image

from twinset_demo.canvas import Colour
from twinset_demo.procedural_assets.surface import SIDES, Floats, Point2, Surface, around, box

if TYPE_CHECKING:
    import trimesh

Paint = Colour | Image.Image
CREASE = math.cos(math.radians(40))  # edges sharper than this stay sharp
HULL_VERTICES = 64  # more would only slow the physics down
TEXTURE_WIDTH = 520  # a picture of 512 with its margins
MARGIN = 2  # pixels around a picture that repeat its border, so that filtering does not mix neighbours
FLAT_SIZE = 8


@dataclass(frozen=True, eq=False, slots=True)
class Mesh:
    """A model's triangles.

    vertices, normals: (n, 3), split where edges are sharp; uv: (t, 2), v upwards; faces, uv_faces: (m, 3) into them;
    finishes: of each triangle; texture: RGB picture.
    """

    vertices: Floats
    normals: Floats
    uv: Floats
    faces: NDArray[np.int64]
    uv_faces: NDArray[np.int64]
    finishes: list[str]
    texture: Image.Image


@dataclass(eq=False, slots=True)
class Model:
    """A thing being built, in centimetres, resting on Z = 0."""

    surfaces: list[tuple[Surface, Paint, str]] = field(default_factory=list)
    solids: list[Floats] = field(default_factory=list)

    def add(self, surface: Surface, paint: Paint, finish: str = "satin", solid: bool = False) -> None:
        """A visible surface; solid: its convex hull collides."""
        self.surfaces.append((surface, paint, finish))
        if solid:
            self.solids.append(surface.vertices)

    def add_box(
        self,
        size: Sequence[float],
        at: Sequence[float],
        paint: Paint,
        finish: str = "satin",
        radius: float = 0.3,
        solid: bool = False,
        tilt: tuple[str, float] = ("z", 0.0),
        **pictures: Paint,
    ) -> None:
        """A rounded box, turned by ``tilt``, its bottom's centre at ``at``; pictures: other paint by name of side."""
        corners = []
        for side, surface in box(size, radius).items():
            placed = surface.turned(*tilt).moved(*at)
            self.add(placed, pictures.get(side, paint), finish)
            corners.append(placed.vertices)
        if unknown := set(pictures) - set(SIDES):
            raise ValueError(f"no such sides: {sorted(unknown)}")
        if solid:
            self.solids.append(np.concatenate(corners))

    def collide(self, points: ArrayLike) -> None:
        """An invisible convex part: the hull of (n, 3) points."""
        self.solids.append(np.asarray(points, float))

    def collide_box(self, x: Point2, y: Point2, z: Point2) -> None:
        """An invisible box between two values of each coordinate."""
        self.collide([(a, b, c) for a in x for b in y for c in z])

    def collide_along(self, path: Sequence[Sequence[float]], reach: Sequence[float], step: int) -> None:
        """Invisible bars along a path: a hull for every ``step`` steps of it, ``reach`` to both sides of its points."""
        offsets = list(product(*((-r, r) if r else (0.0,) for r in reach)))
        for start in range(0, len(path) - step, step):
            part = path[start : start + step + 1]
            self.collide([(x + dx, y + dy, z + dz) for x, y, z in part for dx, dy, dz in offsets])

    def collide_walls(
        self, outer: Sequence[Point2], inner: Sequence[Point2], segments: int = 12, power: float = 2.0
    ) -> None:
        """The walls of a hollow turned thing, cut into convex parts between successive levels of two profiles.

        outer, inner: as many (radius, z) each; the first ones bound the vessel's floor.
        """
        angles = np.append(around(segments), 2 * math.pi)
        reach = (np.abs(np.cos(angles)) ** power + np.abs(np.sin(angles)) ** power) ** (-1 / power)
        directions = np.stack([reach * np.cos(angles), reach * np.sin(angles)], 1)

        def ring(point: Point2, which: NDArray[np.int64]) -> Floats:
            return np.column_stack([point[0] * directions[which], np.full(len(which), point[1])])

        whole = np.arange(segments)
        self.collide(np.concatenate([ring(outer[0], whole), ring(outer[1], whole), ring(inner[0], whole)]))
        for level in range(len(outer) - 1):
            corners = (outer[level], outer[level + 1], inner[level], inner[level + 1])
            for i in range(segments):
                self.collide(np.concatenate([ring(corner, np.array([i, i + 1])) for corner in corners]))

    def mesh(self) -> Mesh:
        """All surfaces as one mesh with one texture."""
        texture, places = _pack([paint for _, paint, _ in self.surfaces])
        surfaces = [surface for surface, _, _ in self.surfaces]
        vertices = np.concatenate([surface.vertices for surface in surfaces])
        starts = np.cumsum([0, *(len(surface.vertices) for surface in surfaces[:-1])])
        corners = np.concatenate([surface.faces + start for surface, start in zip(surfaces, starts, strict=True)])
        uv = [np.clip(one.uv, 0, 1) * place[2:] + place[:2] for one, place in zip(surfaces, places, strict=True)]
        normals = _normals(vertices, corners)
        keys = np.concatenate([np.round(vertices[corners.ravel()], 5), np.round(normals, 3)], axis=1)
        _, first, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        all_uv, uv_inverse = np.unique(np.round(np.concatenate(uv), 6), axis=0, return_inverse=True)
        return Mesh(
            vertices=keys[first, :3],
            normals=keys[first, 3:],
            uv=np.asarray(all_uv, float),
            faces=inverse.reshape(-1, 3),
            uv_faces=uv_inverse.reshape(-1)[corners],
            finishes=[finish for surface, _, finish in self.surfaces for _ in surface.faces],
            texture=texture,
        )

    def hulls(self) -> list[trimesh.Trimesh]:
        """The convex parts, each of at most some 64 vertices."""
        return [_hull(points) for points in self.solids]


def _normals(points: Floats, faces: NDArray[np.int64]) -> Floats:
    """A unit normal for each corner of a face: the mean over the faces around it that it is smooth with."""
    _, place = np.unique(np.round(points, 4), axis=0, return_inverse=True)
    corner_place = place.reshape(-1)[faces.ravel()]
    triangles = points[faces]
    edges = np.roll(triangles, -1, axis=1) - triangles
    face_normal = np.cross(edges[:, 0], edges[:, 1])
    face_normal /= np.maximum(np.linalg.norm(face_normal, axis=1, keepdims=True), 1e-12)
    unit = edges / np.maximum(np.linalg.norm(edges, axis=2, keepdims=True), 1e-12)
    angle = np.arccos(np.clip(-np.sum(unit * np.roll(unit, 1, axis=1), axis=2), -1, 1)).ravel()
    normal = np.repeat(face_normal, 3, axis=0)
    order = np.argsort(corner_place, kind="stable")
    total = np.zeros_like(normal)
    for corners in np.split(order, np.flatnonzero(np.diff(corner_place[order])) + 1):
        smooth = np.sum(normal[corners, None] * normal[corners], axis=2) >= CREASE
        weighted = normal[corners] * angle[corners, None]
        total[corners] = np.sum(smooth[..., None] * weighted, axis=1)  # no matrix product: its sums differ by machine
    return np.asarray(total / np.maximum(np.linalg.norm(total, axis=1, keepdims=True), 1e-12))


def _hull(points: Floats) -> trimesh.Trimesh:
    import trimesh  # slow, and who asks for the names of assets does without

    hull: trimesh.Trimesh = trimesh.convex.convex_hull(np.round(points, 4))
    if len(hull.vertices) > HULL_VERTICES:
        # The outermost points in directions all around, more of them downwards so that it keeps resting flat.
        rise = np.concatenate([np.repeat([-0.998, 0.998], 16), np.repeat([-0.6, 0.0, 0.6], 12)])
        angles = np.concatenate([np.tile(around(16), 2), np.tile(around(12), 3)])
        level = np.sqrt(1 - rise**2)
        directions = np.stack([level * np.cos(angles), level * np.sin(angles), rise], 1)
        outermost = np.unique(np.argmax(hull.vertices @ directions.T, axis=0))
        hull = trimesh.convex.convex_hull(hull.vertices[outermost])
    return hull


def _pack(paints: Sequence[Paint]) -> tuple[Image.Image, list[tuple[float, ...]]]:
    """One texture of all pictures and flat colours, and where each lies in it: (left, bottom, width, height), 0-1."""
    keys: list[object] = [id(paint) if isinstance(paint, Image.Image) else paint for paint in paints]
    distinct = {
        key: paint if isinstance(paint, Image.Image) else Image.new("RGB", (FLAT_SIZE, FLAT_SIZE), paint)
        for key, paint in zip(keys, paints, strict=True)
    }
    spots: dict[object, tuple[int, int]] = {}
    x = y = shelf = 0
    for key, picture in sorted(distinct.items(), key=lambda item: (-item[1].height, -item[1].width)):
        width, height = picture.width + 2 * MARGIN, picture.height + 2 * MARGIN
        if x + width > TEXTURE_WIDTH:
            x, y, shelf = 0, y + shelf, 0
        spots[key] = (x, y)
        x, shelf = x + width, max(shelf, height)
    total = y + shelf
    texture = np.zeros((total, TEXTURE_WIDTH, 3), np.uint8)
    places: dict[object, tuple[float, ...]] = {}
    for key, (x, y) in spots.items():
        padded = np.pad(np.asarray(distinct[key]), ((MARGIN, MARGIN), (MARGIN, MARGIN), (0, 0)), mode="edge")
        texture[y : y + padded.shape[0], x : x + padded.shape[1]] = padded
        width, height = distinct[key].size
        places[key] = (
            (x + MARGIN + 0.5) / TEXTURE_WIDTH,
            1 - (y + MARGIN + height - 0.5) / total,
            (width - 1) / TEXTURE_WIDTH,
            (height - 1) / total,
        )
    return Image.fromarray(texture), [places[key] for key in keys]
