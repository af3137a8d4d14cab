"""The things of small scenes as solids: their silhouettes cut out of a board, as assets that Kubric can load."""

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from twinset.generators.kubric_scenes.assets.shelf import AssetShelf
from twinset_demo.procedural_assets.archive import METRES, archive
from twinset_demo.procedural_assets.model import Model
from twinset_demo.procedural_assets.surface import slab
from twinset_demo.small_diffusion.painter import SILHOUETTES
from twinset_demo.small_diffusion.relations import Thing
from twinset_demo.small_diffusion.scenes import COLOURS

SIDE = 20.0  # centimetres: what a silhouette's square measures
THICK, BEVEL = 4.0, 0.5
#: The house's walls around its door, as outlines that `slab` takes: each is seen whole from its centre.
_WALLS = (((-0.4, -0.08), (0.4, 0.16)), ((-0.4, 0.1), (-0.14, 0.5)), ((0.14, 0.1), (0.4, 0.5)))


def outlines(kind: str) -> list[NDArray[np.float64]]:
    """Outlines (n, 2) of a kind of things, y upwards, counter-clockwise."""
    some: Sequence[NDArray[np.float64]] = SILHOUETTES[kind]
    if kind == "house":
        walls = [np.asarray([(x0, y0), (x1, y0), (x1, y1), (x0, y1)]) for (x0, y0), (x1, y1) in _WALLS]
        some = [*walls, some[1]]
    return [_counter_clockwise(one * (1, -1)) for one in some]


class Solids:
    """A shelf of things in colours; each is cut when it is first asked for."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="solids-")
        folder = Path(self._folder.name)
        manifest = folder / "manifest.json"
        manifest.write_text(json.dumps({"name": "solids", "version": "1", "assets": {}}), "utf-8")
        self.shelf = AssetShelf(manifest, folder)
        self._offsets: dict[str, tuple[float, float, float]] = {}

    def asset(self, thing: Thing) -> tuple[str, tuple[float, float, float]]:
        """Name of a thing's asset, and where its silhouette's middle on the floor lies, seen from the asset's origin.

        Returns:
            The name, and x, y, z in the asset's metres.
        """
        name = f"{thing.colour}-{thing.object}"
        if name not in self.shelf.entries:
            model = Model()
            for outline in outlines(thing.object):
                model.add(slab(outline * SIDE, THICK, BEVEL), COLOURS[thing.colour], "satin", solid=True)
            entry, packed = archive(name, name.replace("-", " "), "Cut out", model)
            Path(self._folder.name, f"{name}.tar.gz").write_bytes(packed)
            self.shelf.entries[name] = entry
            # An archive's origin is the centre of mass of its parts: the model's own lies this far from it.
            low = np.min([surface.vertices.min(axis=0) for surface, _, _ in model.surfaces], axis=0) * METRES
            x, y, z = (np.asarray(entry["kwargs"]["bounds"][0]) - low).tolist()
            self._offsets[name] = (x, y, z)
        return name, self._offsets[name]


def _counter_clockwise(points: NDArray[np.float64]) -> NDArray[np.float64]:
    x, y = points.T
    # Twice the signed area: Σ x_i y_{i+1} - x_{i+1} y_i
    area = float((x * np.roll(y, -1) - np.roll(x, -1) * y).sum())
    return points if area > 0 else points[::-1]
