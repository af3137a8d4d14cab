"""Where on a thing another one can be laid down: the flattest spots of what its upper side looks like from above."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from generators.kubric_scenes.scene.camera import paint
from generators.kubric_scenes.scene.parts import Points

GRID = 64  # cells along the longer side of the carrying thing
LEVEL = 0.03  # scene units: heights that differ by less carry together
NEARLY_BEST = 0.9


def resting_place(
    carrier: Points, faces: NDArray[np.int32], footprint: tuple[float, float], spot: float
) -> tuple[float, float, float]:
    """A spot (x, y) over which a thing is let go, and the height Z at which it would first touch.

    carrier: (n, 3) corners of the carrying mesh in the scene; footprint: width (X) and depth (Y) of what is laid down.
    Spots are judged by how much of the footprint lies at the height at which the thing would touch. spot: which of the
    best is taken, 0 to below 1; the same for two things of one footprint is the same place.
    """
    low, high = carrier.min(axis=0), carrier.max(axis=0)
    cell = float((high - low)[:2].max()) / GRID
    heights = _from_above(carrier, faces, low, cell)
    window = [max(1, round(length / cell)) for length in (footprint[1], footprint[0])]
    # Nothing beyond the carrier carries, and a thing may stick out: windows run over its edges.
    padded = np.pad(heights, [(length // 2, length - length // 2) for length in window], constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(padded, window)[: heights.shape[0], : heights.shape[1]]
    touching = windows.max(axis=(2, 3))
    carried = (windows > touching[..., None, None] - LEVEL).mean(axis=(2, 3))
    # Its middle must be carried, or it tips over.
    carried[heights < touching - LEVEL] = 0
    rows, columns = np.nonzero(carried >= NEARLY_BEST * carried.max())
    chosen = int(spot * len(rows))
    row, column = int(rows[chosen]), int(columns[chosen])
    return (float(low[0]) + (column + 0.5) * cell, float(low[1]) + (row + 0.5) * cell, float(touching[row, column]))


def _from_above(points: Points, faces: NDArray[np.int32], low: Points, cell: float) -> NDArray[np.float32]:
    """Heights of what a mesh shows from above, a cell each; rows along Y, columns along X; -inf beside it."""
    cells = (points[:, :2] - low[:2]) / cell
    columns, rows = np.maximum(np.ceil(cells.max(axis=0)).astype(int), 1)
    tops = points[:, 2][faces].max(axis=1)
    seen = paint(cells[faces], np.argsort(tops, kind="stable"), (rows, columns))
    return np.where(seen < 0, -np.inf, tops[seen]).astype(np.float32)
