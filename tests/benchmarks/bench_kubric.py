"""Pairs from one Studio against a process a picture with a fresh Kubric scene each: goal >= 3 times as fast.

    python tests/benchmarks/bench_kubric.py [--pairs N] [--size N] [--samples N] [--memory N]

The other way is that of Kubric's examples: `kb.Scene`, `Blender(scene, scratch_dir, …)` and PyBullet attached,
`render_still()` with its default layers; same assets, samples, noise threshold and size, both denoised. The two
alternate pair by pair, so that other work on the machine slows both alike, and each has all cores. Then two Studios of
one thread against one of two. --memory N: the memory of one process over N small pairs, instead.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from measured import row

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from twinset.generators.kubric_scenes.assets import AssetShelf  # noqa: E402
from twinset.generators.kubric_scenes.geometry import (  # noqa: E402
    FOCAL_LENGTH,
    SENSOR_WIDTH,
    SUN,
    SUN_STRENGTH,
    Placement,
    View,
)
from twinset.generators.kubric_scenes.studio import AMBIENT, NOISE, set_up_cycles  # noqa: E402

GOAL, MOST_OUTSIDE = 3.0, 0.1
VIEW = View((0.0, -7.8, 4.4), (0.0, 0.0, 0.35), (0.45, 0.42, 0.38))


def pair(shelf: AssetShelf, number: int) -> list[list[Placement]]:
    """The placements of a pair's two pictures: two things that change sides."""
    ids = sorted(shelf.entries)
    things = ids[2 * number % len(ids)], ids[(2 * number + 1) % len(ids)]
    return [[stand(shelf, thing, x) for thing, x in zip(things, xs, strict=True)] for xs in ((-0.9, 0.9), (0.9, -0.9))]


def stand(shelf: AssetShelf, asset: str, x: float) -> Placement:
    """A thing one unit long on the floor."""
    vertices, _ = shelf.mesh(asset)
    scale = 1.0 / float(np.ptp(vertices, axis=0).max())
    return Placement(asset, scale, (x, 0.0, -float(vertices[:, 2].min()) * scale), (1.0, 0.0, 0.0, 0.0))


def kubric_way(manifest: str, number: int, picture: int, size: int, samples: int) -> None:
    """One picture as Kubric's examples make it."""
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
        shelf = AssetShelf(manifest)
        for thing in pair(shelf, number)[picture]:
            scene += shelf.create(
                thing.asset, scale=thing.scale, position=thing.position, quaternion=thing.quaternion, static=True
            )
        frame = renderer.render_still()
        kb.write_image_dict({"rgba": frame["rgba"][None], "segmentation": frame["segmentation"][None]}, Path(scratch))


def studio_way(manifest: str, size: int, samples: int, threads: int) -> None:
    """Pairs from one Studio: a number comes in a line, and what it took goes out, until there are no more."""
    import psutil

    began = time.perf_counter()
    import bpy

    from twinset.generators.kubric_scenes.studio import Studio

    marks = {"cycles": 0.0, "at": 0.0}
    shelf = AssetShelf(manifest)
    studio = Studio(shelf, (size, size), samples, threads=threads)
    bpy.app.handlers.render_pre.append(lambda *_: marks.update(at=time.perf_counter()))
    bpy.app.handlers.render_post.append(
        lambda *_: marks.update(cycles=marks["cycles"] + time.perf_counter() - marks["at"])
    )
    print(json.dumps({"seconds": time.perf_counter() - began}), flush=True)
    for line in sys.stdin:
        marks["cycles"], began = 0.0, time.perf_counter()
        for placements in pair(shelf, int(line)):
            studio.render(VIEW, placements, seed=int(line))
        took = {"seconds": time.perf_counter() - began, "cycles": marks["cycles"]}
        print(json.dumps(took | {"memory": psutil.Process().memory_info().rss >> 20}), flush=True)


class StudioProcess:
    """A Studio in a process of its own. started: seconds until it was open, the start of Python included."""

    def __init__(self, manifest: str, size: int, samples: int, threads: int = 0) -> None:
        began = time.perf_counter()
        self._process = child("--studio", manifest, size, samples, threads)
        self._answer()
        self.started = time.perf_counter() - began

    def ask(self, number: int) -> None:
        """Have a pair rendered."""
        assert self._process.stdin is not None
        print(number, file=self._process.stdin, flush=True)

    def render(self, number: int) -> dict[str, Any]:
        """What a pair took: seconds, of these in Cycles, megabytes resident afterwards."""
        self.ask(number)
        return self._answer()

    def finish(self, asked: int = 0) -> None:
        """Wait for the pairs that were asked for, and end."""
        for _ in range(asked):
            self._answer()
        self._process.communicate(timeout=60)

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        return dict(json.loads(self._process.stdout.readline()))


def child(*arguments: object) -> subprocess.Popen[str]:
    """This file in a process of its own."""
    command = [sys.executable, __file__, *map(str, arguments)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)


def compare(manifest: str, pairs: int, size: int, samples: int) -> None:
    """Both ways in turns, pair by pair; then where the Studio's time went."""
    studio = StudioProcess(manifest, size, samples)
    naive = ours = cycles = 0.0
    ratios = []
    for number in range(pairs):
        began = time.perf_counter()
        for picture in (0, 1):
            process = child("--kubric", manifest, number, picture, size, samples)
            process.communicate(timeout=600)
            if process.returncode:
                sys.exit("Kubric's own way failed; run it with --kubric to see why")
        spent = time.perf_counter() - began
        naive += spent
        took = studio.render(number)
        ratios.append(spent / took["seconds"])
        ours, cycles = ours + took["seconds"], cycles + took["cycles"]
    studio.finish()
    whole = ours + studio.started
    print(f"{pairs} pairs, {size} × {size}, {samples} samples with threshold {NOISE}")
    print(f"a process a picture: {naive / pairs:.2f} s a pair")
    print(f"one Studio: {ours / pairs:.2f} s a pair, started in {studio.started:.1f} s")
    print(f"ratio {naive / ours:.2f} (goal {GOAL}); with its start charged to these pairs: {naive / whole:.2f}")
    row(
        f"pairs of {size} × {size}, {samples} samples",
        "a process and scene a picture",
        ratios,
        f"with its start, over {pairs} pairs, {naive / whole:.2f} ×",
    )
    print(f"outside Cycles: {1 - cycles / ours:.1%} (goal <= {MOST_OUTSIDE:.0%})")


def threads(manifest: str, pairs: int, size: int, samples: int) -> None:
    """One Studio of two threads against two Studios, with half of the pairs each."""
    for count, each in ((1, 2), (2, 1), (2, 2)):
        studios = [StudioProcess(manifest, size, samples, each) for _ in range(count)]
        began = time.perf_counter()
        for number in range(pairs):
            studios[number % count].ask(number)
        for studio in studios:
            studio.finish(pairs // count)
        print(f"{count} Studio(s) with {each} thread(s) each: {(time.perf_counter() - began) / pairs:.2f} s a pair")


def main() -> None:
    if sys.argv[1:2] == ["--kubric"]:
        kubric_way(sys.argv[2], *map(int, sys.argv[3:]))
        return
    if sys.argv[1:2] == ["--studio"]:
        studio_way(sys.argv[2], *map(int, sys.argv[3:]))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=8)
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--samples", type=int, default=128)
    parser.add_argument("--memory", type=int, default=0, metavar="PAIRS")
    options = parser.parse_args()

    from twinset_demo import PROCEDURAL

    manifest = str(PROCEDURAL / "manifest.json")
    if options.memory:
        studio = StudioProcess(manifest, 64, 2)
        memory = [studio.render(number)["memory"] for number in range(options.memory)]
        studio.finish()
        print("MB resident after every tenth pair:", *memory[9::10])
        return
    compare(manifest, options.pairs, options.size, options.samples)
    threads(manifest, options.pairs, options.size, options.samples)


if __name__ == "__main__":
    main()
