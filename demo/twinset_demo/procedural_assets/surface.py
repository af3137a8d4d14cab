"""Surfaces that things are built from: turned, lofted, swept and boxed, with texture coordinates.

Lengths are centimetres, Z points up. Triangles run counter-clockwise as seen from outside. Texture coordinates are 0-1
within the surface's own picture, v upwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Point2 = tuple[float, float]
UP = (0, 0, 1)
SIDES = ("front", "back", "left", "right", "top", "bottom")  # -y, +y, -x, +x, +z, -z


@dataclass(frozen=True, eq=False, slots=True)
class Surface:
    """A piece of surface. vertices: (n, 3); uv: (n, 2); faces: (m, 3) indices."""

    vertices: Floats
    uv: Floats
    faces: NDArray[np.int64]

    def moved(self, x: float = 0.0, y: float = 0.0, z: float = 0.0) -> Surface:
        """The same surface elsewhere."""
        return Surface(self.vertices + np.array((x, y, z)), self.uv, self.faces)

    def turned(self, axis: str, degrees: float) -> Surface:
        """The same surface turned around ``x``, ``y`` or ``z`` through the origin, counter-clockwise."""
        return Surface(self.vertices @ turn(axis, degrees).T, self.uv, self.faces)

    def bent(self, bend: Callable[[Floats], Floats]) -> Surface:
        """The same surface with its (n, 3) vertices mapped by ``bend``, which must not turn it inside out."""
        return Surface(bend(self.vertices.copy()), self.uv, self.faces)


def turn(axis: str, degrees: float) -> Floats:
    """Rotation matrix, counter-clockwise around a coordinate axis."""
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    first, second = {"x": (1, 2), "y": (2, 0), "z": (0, 1)}[axis]
    matrix = np.eye(3)
    matrix[first, first] = matrix[second, second] = cos
    matrix[second, first], matrix[first, second] = sin, -sin
    return matrix


def rounded(corners: Sequence[Point2], radius: float, steps: int = 3, closed: bool = False) -> list[Point2]:
    """A polyline with its corners rounded off, each by at most half of the shorter side beside it."""
    points = np.asarray(corners, float)
    smooth: list[Point2] = []
    for i, corner in enumerate(points):
        if not closed and i in (0, len(points) - 1):
            smooth.append(tuple(corner.tolist()))
            continue
        before, after = points[i - 1] - corner, points[(i + 1) % len(points)] - corner
        reach = min(radius, float(np.linalg.norm(before)) / 2, float(np.linalg.norm(after)) / 2)
        start = corner + before / np.linalg.norm(before) * reach
        end = corner + after / np.linalg.norm(after) * reach
        t = np.linspace(0, 1, steps + 1)[:, None]
        smooth += map(tuple, ((1 - t) ** 2 * start + 2 * t * (1 - t) * corner + t**2 * end).tolist())
    return smooth


def loft(rings: ArrayLike, caps: bool = False) -> Surface:
    """The skin over closed rings: (k, n, 3), each counter-clockwise seen from where the next ones lie.

    u runs around from the first point, v along the rings from 0 to 1. caps: close the first and last ring with fans.
    """
    grid = np.asarray(rings, float)
    grid = np.concatenate([grid, grid[:, :1]], axis=1)
    if caps:
        ends = [np.repeat(grid[i, :-1].mean(axis=0)[None, None], grid.shape[1], axis=1) for i in (0, -1)]
        grid = np.concatenate([ends[0], grid[:1], grid, grid[-1:], ends[1]])
    return sheet(grid)


def sheet(grid: ArrayLike) -> Surface:
    """The skin over a (k, n, 3) grid: u along the second axis, v along the first; seen from u x v."""
    points = np.asarray(grid, float)
    rows, columns = points.shape[:2]
    v, u = np.meshgrid(np.linspace(0, 1, rows), np.linspace(0, 1, columns), indexing="ij")
    corner = (np.arange(rows - 1)[:, None] * columns + np.arange(columns - 1)).ravel()
    right, above = corner + 1, corner + columns
    faces = np.concatenate([np.stack([corner, right, above + 1], 1), np.stack([corner, above + 1, above], 1)])
    vertices = points.reshape(-1, 3)
    sides = vertices[faces]
    area = np.linalg.norm(np.cross(sides[:, 1] - sides[:, 0], sides[:, 2] - sides[:, 0]), axis=1)
    return Surface(vertices, np.stack([u.ravel(), v.ravel()], 1), faces[area > 1e-7])


def around(segments: int) -> Floats:
    """Angles of a closed ring's points, from +x."""
    return np.asarray(np.arange(segments) * (2 * math.pi / segments), float)


def lathe(profile: Sequence[Point2], segments: int = 40, power: float | Sequence[float] = 2.0) -> Surface:
    """A profile of (radius, z) turned around Z: outside going up, then inside going down.

    power: exponent of the superellipse that is turned along, for the whole or for each point: 2 a circle, 6 a rounded
    square whose half side is the radius.
    """
    cos, sin = np.cos(around(segments)), np.sin(around(segments))
    radius, z = np.asarray(profile, float).T[..., None]
    p = np.broadcast_to(np.asarray(power, float), len(profile))[:, None]
    reach = radius / (np.abs(cos) ** p + np.abs(sin) ** p) ** (1 / p)
    return loft(np.stack([reach * cos, reach * sin, np.broadcast_to(z, reach.shape)], 2))


def disc(radius: float, segments: int = 40, dome: float = 0.0) -> Surface:
    """A disc around Z that looks up, its middle raised by ``dome``, its picture laid on it from above."""
    profile = [(radius * math.cos(a), dome * math.sin(a)) for a in np.linspace(0, math.pi / 2, 5 if dome else 2)]
    turned = lathe([*profile[:-1], (0.0, dome)], segments)
    return Surface(turned.vertices, turned.vertices[:, :2] / (2 * radius) + 0.5, turned.faces)


def tube(
    path: ArrayLike, radius: ArrayLike, sides: int = 10, closed: bool = False, flat: float = 1.0, up: ArrayLike = UP
) -> Surface:
    """A tube along a (k, 3) path, of one radius or one a point, rounded at its ends.

    flat: thickness across ``up`` as a multiple of the radius; up: a direction that is never along the path.
    """
    points = np.asarray(path, float)
    radii = np.broadcast_to(np.asarray(radius, float), len(points)).copy()
    ahead, behind = np.roll(points, -1, axis=0), np.roll(points, 1, axis=0)
    tangents = ahead - behind if closed else np.gradient(points, axis=0)
    tangents /= np.linalg.norm(tangents, axis=1, keepdims=True)
    if not closed:
        out, wide = np.array([(0.5, 0.87), (0.87, 0.5), (1.0, 0.001)]).T  # quarter circle: how far out, how wide
        first = points[0] - (out * radii[0])[::-1, None] * tangents[0]
        last = points[-1] + (out * radii[-1])[:, None] * tangents[-1]
        points = np.concatenate([first, points, last])
        radii = np.concatenate([radii[0] * wide[::-1], radii, radii[-1] * wide])
        tangents = np.pad(tangents, ((3, 3), (0, 0)), "edge")
    across = np.cross(np.asarray(up, float), tangents)
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    upwards = np.cross(tangents, across)
    angles = around(sides)[None, :, None]
    broad, thick = radii[:, None, None] * across[:, None], flat * radii[:, None, None] * upwards[:, None]
    rings = points[:, None] + np.cos(angles) * broad + np.sin(angles) * thick
    return loft(np.concatenate([rings, rings[:1]]) if closed else rings)


def box(size: Sequence[float], radius: float, steps: int = 2) -> dict[str, Surface]:
    """The six sides of a rounded box that stands centred on Z = 0, each textured upright as seen from outside."""
    half = np.asarray(size, float) / 2
    radius = min(radius, float(half.min()) * 0.98)
    arc = radius * (1 - np.tan(np.linspace(1, 0, steps + 1) * math.pi / 4))
    lines = [np.concatenate([arc - h, h - arc[::-1]]) for h in half]
    right = {"front": (0, 1), "back": (0, -1), "left": (1, -1), "right": (1, 1), "top": (0, 1), "bottom": (0, 1)}
    above = {"top": (1, 1), "bottom": (1, -1)}
    made = {}
    for number, side in enumerate(SIDES):
        axis = {0: 1, 1: 0, 2: 2}[number // 2]
        sign = (-1, 1, -1, 1, 1, -1)[number]
        (u_axis, u_sign), (v_axis, v_sign) = right[side], above.get(side, (2, 1))
        v, u = np.meshgrid(lines[v_axis], lines[u_axis], indexing="ij")
        points = np.zeros((*u.shape, 3))
        points[..., u_axis], points[..., v_axis], points[..., axis] = u_sign * u, v_sign * v, sign * half[axis]
        inner = np.clip(points, radius - half, half - radius)
        outward = points - inner
        flat = sheet(inner + radius * outward / np.linalg.norm(outward, axis=-1, keepdims=True))
        uv = np.stack([(u / half[u_axis] + 1) / 2, (v / half[v_axis] + 1) / 2], -1).reshape(-1, 2)
        made[side] = Surface(flat.vertices + np.array((0, 0, half[2])), uv, flat.faces)
    return made


def slab(outline: ArrayLike, thickness: float, bevel: float) -> Surface:
    """A flat piece lying on Z = 0: a closed outline (n, 2), counter-clockwise and seen whole from its centre, with
    bevelled edges. Texture as seen from above, over the outline's bounds."""
    points = np.asarray(outline, float)
    low, high = points.min(axis=0), points.max(axis=0)
    centre = points.mean(axis=0)
    along = np.roll(points, -1, axis=0) - np.roll(points, 1, axis=0)
    normal = np.stack([along[:, 1], -along[:, 0]], 1)
    inset = points - bevel * normal / np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-9)
    levels = [(inset, 0.0), (points, bevel), (points, thickness - bevel), (inset, thickness)]
    rings = [np.column_stack([ring, np.full(len(ring), z)]) for ring, z in levels]
    ends = [np.tile([*centre, z], (len(points), 1)) for z in (0.0, thickness)]
    skin = loft([ends[0], *rings, ends[1]])
    return Surface(skin.vertices, (skin.vertices[:, :2] - low) / (high - low), skin.faces)
