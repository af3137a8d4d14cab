"""Renders small scenes with Kubric and Blender: the same captions over other pictures, with light, shadow and depth."""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import cast

import numpy as np
from numpy.typing import NDArray

from twinset import Candidate, Frame, Pair, Rejected, generator_for
from twinset.contracts.kinds.samples import MediaFile
from twinset.generators.kubric_scenes.scene.composition import lit_from, sunlight
from twinset.generators.kubric_scenes.scene.parts import Picture, Placement, View, vector
from twinset.generators.kubric_scenes.studio.cycles import gpu_name
from twinset.generators.kubric_scenes.studio.studio import Studio
from twinset_demo.small_diffusion.relations import RELATIONS
from twinset_demo.small_scenes.generator import TwinCandidate, TwinPlanner
from twinset_demo.small_scenes.painter import Layout, sample_layout
from twinset_demo.small_scenes.scenes import Scene
from twinset_demo.small_scenes.solids import SIDE, Solids
from twinset_demo.small_scenes.source import SceneStills

WIDE = 4.0  # scene units: what a layout's square measures on the floor
ELEVATION = (math.radians(58), math.radians(80))  # of the camera above the floor
ROOM = 1.18  # how much more than the layout's square the camera sees
LEAST_AREA = 0.012  # share of the picture that each thing takes at least


class StillGenerator(TwinPlanner[SceneStills]):
    """Rendered pairs; each is proved by what the renderer says each pixel shows."""

    version = 3
    isolation = "process"
    libraries = ("bpy", "kubric-nightly", "numpy", "opencv-python", "pybullet", "trimesh")

    def device(self) -> str:
        """What renders: the denoiser is a neural network, and Cycles rounds."""
        return "cpu" if self.source.device == "cpu" else gpu_name()

    def make(self, candidates: Sequence[Candidate]) -> Iterator[Pair | Rejected]:
        """A pair each, both pictures with one layout, camera and light; or why the last try shows something else."""
        for one in cast(Sequence[TwinCandidate], candidates):
            refuted = ""
            for attempt in range(self.source.attempts):
                rng = generator_for(self.seed, self.name, f"{one.key} still {attempt}")
                layout = sample_layout(len(one.scenes[0].things), rng)
                view, noise = self._view(rng), int(rng.integers(1 << 31))
                pictures = [self._render(scene, layout, view, noise) for scene in one.scenes]
                problems = [problem(scene, picture) for scene, picture in zip(one.scenes, pictures, strict=True)]
                refuted = "".join(problems[:1]) or "".join(problems[1:])
                if not refuted:
                    frames = [
                        Frame(f"{one.key}#{n}", picture.pixels, -1.0, MediaFile(f"rendered/{one.key}/{n}", 0, ""))
                        for n, picture in enumerate(pictures)
                    ]
                    yield self._pair(one, one.scenes, frames)
                    break
            else:
                yield Rejected(one.key, refuted, f"the last of {self.source.attempts} tries")

    def _view(self, rng: np.random.Generator) -> View:
        """Light and floor at random, and a camera that looks down on the whole layout."""
        view = lit_from(sunlight(rng), rng)
        elevation = float(rng.uniform(*ELEVATION))
        distance = ROOM * WIDE * view.focal_length / view.sensor_width
        return View(
            camera=vector((0.0, -distance * math.cos(elevation), distance * math.sin(elevation))),
            target=(0.0, 0.0, 0.0),
            focal_length=view.focal_length,
            sensor_width=view.sensor_width,
            sun=view.sun,
            sun_strength=view.sun_strength,
            ambient=view.ambient,
            floor=view.floor,
        )

    def _render(self, scene: Scene, layout: Layout, view: View, noise: int) -> Picture:
        placements = []
        for thing, place in zip(scene.things, layout.places(scene), strict=True):
            asset, offset = self._solids.asset(thing)
            scale = place.extent * WIDE / (SIDE / 100)
            half = -place.turn / 2  # layouts turn clockwise
            cos, sin = math.cos(2 * half), math.sin(2 * half)
            x, y, z = (scale * one for one in offset)
            middle = (place.centre[0] - 0.5) * WIDE, (0.5 - place.centre[1]) * WIDE
            # The asset's origin, so that the silhouette's middle comes to lie over the layout's place.
            position = vector((middle[0] - cos * x + sin * y, middle[1] - sin * x - cos * y, -z))
            placements.append(Placement(asset, scale, position, (math.cos(half), 0.0, 0.0, math.sin(half))))
        return self._studio.render(view, placements, noise)

    @cached_property
    def _solids(self) -> Solids:
        return Solids()

    @cached_property
    def _studio(self) -> Studio:
        one = self.source
        return Studio(self._solids.shelf, (one.side, one.side), one.samples, one.denoise, one.device, one.threads)


def problem(scene: Scene, picture: Picture) -> str:
    """Why a render does not show its scene, a reason of `SceneStills.reasons`; empty where it does."""
    centres: dict[int, NDArray[np.float64]] = {}
    for number in range(1, len(scene.things) + 1):
        rows, columns = np.nonzero(picture.instances == number)
        if len(rows) < LEAST_AREA * picture.instances.size:
            return "too-small"
        last = picture.instances.shape[0] - 1
        if min(rows.min(), columns.min()) == 0 or max(rows.max(), columns.max()) == last:
            return "cut-off"
        centres[number] = np.asarray([columns.mean(), rows.mean()])
    numbers: Mapping[object, int] = {thing: number for number, thing in enumerate(scene.things, 1)}
    for first, relation, second in scene.relations():
        apart, step = centres[numbers[first]] - centres[numbers[second]], np.asarray(RELATIONS[relation])
        aside = 0.0 if scene.third in (first, second) else abs(float(apart @ step[::-1]))
        if float(apart @ step) <= aside:
            return "wrong-relation"
    return ""
