"""Pairs from one Studio against a process and scene a picture each.

    python -m tests.benchmarks.bench_kubric [--pairs N] [--size N] [--samples N]

The other way is that of Kubric's examples: `kb.Scene`, `Blender(scene, scratch_dir, …)` and PyBullet attached,
`render_still()` with its default layers; same assets, samples, noise threshold and size, both denoised, each on all
cores.
"""

import itertools
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.benchmarks.measured import compare
from tests.options import options
from twinset.generators.kubric_scenes.assets import AssetShelf
from twinset.generators.kubric_scenes.geometry import (
    FOCAL_LENGTH,
    SENSOR_WIDTH,
    SUN,
    SUN_STRENGTH,
    Placement,
    View,
)
from twinset.generators.kubric_scenes.studio import AMBIENT, set_up_cycles
from twinset_demo import PROCEDURAL

MANIFEST = str(PROCEDURAL / "manifest.json")
VIEW = View((0.0, -7.8, 4.4), (0.0, 0.0, 0.35), (0.45, 0.42, 0.38))


def pair(shelf: AssetShelf, number: int) -> list[list[Placement]]:
    """The placements of a pair's two pictures: two objects that change sides."""
    ids = sorted(shelf.entries)
    objects = ids[2 * number % len(ids)], ids[(2 * number + 1) % len(ids)]
    return [[stand(shelf, name, x) for name, x in zip(objects, xs, strict=True)] for xs in ((-0.9, 0.9), (0.9, -0.9))]


def stand(shelf: AssetShelf, asset: str, x: float) -> Placement:
    """An object one unit long on the floor."""
    vertices, _ = shelf.mesh(asset)
    scale = 1.0 / float(np.ptp(vertices, axis=0).max())
    return Placement(asset, scale, (x, 0.0, -float(vertices[:, 2].min()) * scale), (1.0, 0.0, 0.0, 0.0))


def kubric_way(number: int, picture: int, size: int, samples: int) -> None:
    from twinset.generators.kubric_scenes.kubric_import import load_kubric, load_renderer, load_simulator

    with tempfile.TemporaryDirectory() as scratch:
        kb = load_kubric()
        # Kubric's writers of files, which twinset never calls, open them by TensorFlow.
        kb.file_io.tf.io = SimpleNamespace(gfile=SimpleNamespace(GFile=open))
        scene = kb.Scene(resolution=(size, size))
        load_simulator().PyBullet(scene, scratch)
        renderer = load_renderer().Blender(scene, scratch, adaptive_sampling=True, samples_per_pixel=samples)
        set_up_cycles(renderer.blender_scene, threads=0)  # the same noise threshold
        scene += kb.Cube(name="floor", scale=(100, 100, 0.1), position=(0, 0, -0.1), static=True)
        scene += kb.DirectionalLight(position=SUN, look_at=(0, 0, 0), intensity=SUN_STRENGTH)
        scene.ambient_illumination = scene.background = kb.Color(*AMBIENT)
        scene += kb.PerspectiveCamera(
            position=VIEW.camera, look_at=VIEW.target, focal_length=FOCAL_LENGTH, sensor_width=SENSOR_WIDTH
        )
        shelf = AssetShelf(MANIFEST)
        for placed in pair(shelf, number)[picture]:
            scene += shelf.create(
                placed.asset, scale=placed.scale, position=placed.position, quaternion=placed.quaternion, static=True
            )
        frame = renderer.render_still()
        kb.write_image_dict({"rgba": frame["rgba"][None], "segmentation": frame["segmentation"][None]}, Path(scratch))


@cache
def studio(size: int, samples: int) -> tuple[AssetShelf, Any]:
    from twinset.generators.kubric_scenes.studio import Studio

    shelf = AssetShelf(MANIFEST)
    return shelf, Studio(shelf, (size, size), samples, threads=0)


def studio_way(number: int, size: int, samples: int) -> None:
    shelf, opened = studio(size, samples)
    for placements in pair(shelf, number):
        opened.render(VIEW, placements, seed=number)


def main() -> None:
    given = options(__doc__, pairs=5, size=256, samples=128)
    size, spawn = (given.size, given.samples), get_context("spawn")
    ours, theirs = itertools.count(), itertools.count()

    def fresh() -> None:
        number = next(theirs)
        for picture in (0, 1):
            with ProcessPoolExecutor(1, spawn) as process:
                process.submit(kubric_way, number, picture, *size).result()

    with ProcessPoolExecutor(1, spawn) as process:
        compare(
            f"pairs of {given.size} × {given.size}, {given.samples} samples",
            lambda: process.submit(studio_way, next(ours), *size).result(),
            {"a process and scene a picture": fresh},
            rounds=given.pairs,
            clock=time.perf_counter,
            more=lambda seconds: f"{seconds:.2f} s a pair",
        )


if __name__ == "__main__":
    main()
