"""Rendering pictures one after the other in one Blender world, which is set up once and then only rearranged."""

from __future__ import annotations

import math
import tempfile
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from twinset.contracts.errors import WrongUse
from twinset.generators.kubric_scenes.assets.shelf import AssetShelf
from twinset.generators.kubric_scenes.scene.parts import Picture, Placement, View
from twinset.generators.kubric_scenes.studio.cycles import choose_device, enable_passes, read_picture, set_up_cycles
from twinset.generators.kubric_scenes.studio.kubric_import import load_kubric, load_renderer, quiet
from twinset.generators.kubric_scenes.studio.world import World

PAINT = {"Roughness": 0.7, "Specular IOR Level": 0.2, "IOR": 1.45}  # of the floor
FLOOR_SIZE = 200.0  # scene units across: its edge lies at the horizon
SUN_ANGLE = math.radians(12.0)  # its diameter as seen from the ground: the real sun's 0.5 throws hard shadows


class Studio:
    """Kubric's scene and its Blender view, kept for the life of the process.

    A picture depends on (view, placements, seed) alone: not on what was rendered before, nor on the number of threads.
    Blender has one scene a process: opening another Studio closes the one before.

    resolution: (width, height) in pixels. samples: rays a pixel; Intel's Open Image Denoise cleans the rest.
    device: "gpu" renders with OptiX, else CUDA. threads: of Cycles, 0 for all cores.
    Raises WrongUse when "gpu" is asked for and Blender finds none.
    """

    _open: Studio | None = None

    def __init__(
        self,
        shelf: AssetShelf,
        resolution: tuple[int, int],
        samples: int,
        device: Literal["cpu", "gpu"] = "cpu",
        threads: int = 0,
    ) -> None:
        kb, renderer = load_kubric(), load_renderer()
        import bpy

        self._bpy, self._shelf = bpy, shelf
        self._scratch = tempfile.TemporaryDirectory(prefix="studio-")
        self._scene = kb.Scene(resolution=resolution)
        with quiet(1):
            self._blender = renderer.Blender(self._scene, self._scratch.name, samples_per_pixel=samples)
            set_up_cycles(bpy.context.scene, threads)
            choose_device(bpy.context, device)
            enable_passes(bpy.context.scene)
            self._furnish(kb)
        self._props: defaultdict[str, list[Any]] = defaultdict(list)  # by asset; what is not shown is in no collection
        self._world = World(bpy)
        Studio._open = self

    def render(self, view: View, placements: Sequence[Placement], seed: int) -> Picture:
        """A picture of the placements, which are numbered from 1 in its masks."""
        if Studio._open is not self:
            raise RuntimeError("another Studio was opened in this process since; use that one")
        scene = self._bpy.context.scene
        with quiet(1):
            self._look(view)
            self._arrange(placements)
            scene.cycles.seed = seed % (1 << 31)
            file = Path(self._scratch.name, "picture.exr")
            scene.render.filepath = str(file)
            self._bpy.ops.render.render(write_still=True)
        return read_picture(file)

    def _furnish(self, kb: Any) -> None:
        """What every picture has: camera, key light, floor, and where props stand."""
        bpy = self._bpy
        self._camera = kb.PerspectiveCamera(max_render_distance=10 * FLOOR_SIZE)
        self._sun = kb.DirectionalLight()
        self._scene += [self._camera, self._sun]
        bpy.ops.mesh.primitive_plane_add(size=FLOOR_SIZE)
        self._floor = bpy.context.active_object
        self._plain = material = bpy.data.materials.new("paint")
        material.use_nodes = True
        self._paint = material.node_tree.nodes["Principled BSDF"].inputs
        for socket, value in PAINT.items():
            self._paint[socket].default_value = value
        self._floor.data.materials.append(material)
        self._stage = bpy.data.collections.new("stage")
        bpy.context.scene.collection.children.link(self._stage)

    def _look(self, view: View) -> None:
        self._camera.position = view.camera
        self._camera.look_at(view.target)
        self._camera.focal_length = view.focal_length
        self._camera.sensor_width = view.sensor_width
        self._sun.position = view.sun
        self._sun.look_at((0.0, 0.0, 0.0))
        self._sun.intensity = view.sun_strength
        self._sun.linked_objects[self._blender].data.angle = SUN_ANGLE
        self._world.surround(view)
        self._paint["Base Color"].default_value = (*view.floor, 1.0)
        (slot,) = self._floor.material_slots
        slot.material = self._plain if view.background is None else self._world.floor_below(view)

    def _arrange(self, placements: Sequence[Placement]) -> None:
        """Put the props of the placements, and nothing else, on the stage, in the order given."""
        for thing in list(self._stage.objects):
            self._stage.objects.unlink(thing)
        used: Counter[str] = Counter()
        for number, placement in enumerate(placements, start=1):
            prop = self._prop(placement.asset, used[placement.asset])
            used[placement.asset] += 1
            prop.position, prop.quaternion = placement.position, placement.quaternion
            prop.scale = (placement.scale,) * 3
            thing = prop.linked_objects[self._blender]
            thing.pass_index = number
            self._stage.objects.link(thing)

    def _prop(self, asset: str, number: int) -> Any:
        """The n-th object of an asset; objects of one asset share its mesh."""
        props = self._props[asset]
        while len(props) <= number:
            prop = self._shelf.create(asset)
            try:
                self._scene += prop
            except WrongUse as error:
                raise self._shelf.unusable(asset, str(error)) from error
            self._bpy.context.scene.collection.objects.unlink(prop.linked_objects[self._blender])
            props.append(prop)
        return props[number]
