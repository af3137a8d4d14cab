"""Rendering pictures one after the other in one Blender world, which is set up once and then only rearranged.

Cycles renders three passes: colour, which object, how far.
"""

from __future__ import annotations

import math
import tempfile
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from twinset.contracts.errors import WrongUse
from twinset.generators.kubric_scenes.assets import AssetShelf
from twinset.generators.kubric_scenes.geometry import (
    FOCAL_LENGTH,
    SENSOR_WIDTH,
    SUN,
    SUN_STRENGTH,
    Picture,
    Placement,
    View,
)
from twinset.generators.kubric_scenes.kubric_import import load_kubric, load_renderer, quiet
from twinset.shards.media.decode import open_image

NOISE = 0.02  # of linear light; Blender's default of 0.01 stops almost nowhere before 128 samples
SKY = 1e9  # Blender writes 1e10 where there is nothing

PAINT = {"Roughness": 0.7, "Specular IOR Level": 0.2, "IOR": 1.45}  # of the floor
AMBIENT = (0.45, 0.48, 0.54)  # radiance of an even sky: a thing takes the more of it from the floor around
FLOOR_SIZE = 200.0  # scene units across: its edge lies at the horizon
SUN_ANGLE = math.radians(12.0)  # its diameter as seen from the ground: the real sun's 0.5 throws hard shadows


class Studio:
    """Kubric's scene and its Blender view, kept for the life of the process.

    A picture depends on (view, placements, seed) alone: not on what was rendered before, nor on the number of threads.
    Blender has one scene a process: opening another Studio closes the one before.

    resolution: (width, height) in pixels. samples: rays a pixel; Intel's Open Image Denoise cleans the rest.
    threads: of Cycles, 0 for all cores.
    """

    _open: Studio | None = None

    def __init__(self, shelf: AssetShelf, resolution: tuple[int, int], samples: int, threads: int = 0) -> None:
        kb, renderer = load_kubric(), load_renderer()
        import bpy

        self._bpy, self._shelf = bpy, shelf
        self._scratch = tempfile.TemporaryDirectory(prefix="studio-")
        self._scene = kb.Scene(resolution=resolution)
        with quiet(1):
            self._blender = renderer.Blender(self._scene, self._scratch.name, samples_per_pixel=samples)
            set_up_cycles(bpy.context.scene, threads)
            set_up_passes(bpy.context.scene)
            self._furnish(kb)
        self._props: defaultdict[str, list[Any]] = defaultdict(list)  # by asset; what is not shown is in no collection
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
            passes, colours = (Path(self._scratch.name, name) for name in ("picture.exr", "picture.png"))
            scene.render.filepath = str(passes)
            scene.render.image_settings.file_format = "OPEN_EXR_MULTILAYER"
            self._bpy.ops.render.render(write_still=True)
            scene.render.image_settings.file_format = "PNG"
            self._bpy.data.images["Render Result"].save_render(str(colours))
        return read_picture(passes, colours)

    def _furnish(self, kb: Any) -> None:
        """What every picture has: camera, key light, sky, floor, and where props stand."""
        bpy = self._bpy
        self._camera = kb.PerspectiveCamera(
            focal_length=FOCAL_LENGTH, sensor_width=SENSOR_WIDTH, max_render_distance=10 * FLOOR_SIZE
        )
        sun = kb.DirectionalLight(position=SUN, look_at=(0.0, 0.0, 0.0), intensity=SUN_STRENGTH)
        self._scene += [self._camera, sun]
        sun.linked_objects[self._blender].data.angle = SUN_ANGLE
        bpy.ops.mesh.primitive_plane_add(size=FLOOR_SIZE)
        material = bpy.data.materials.new("paint")
        material.use_nodes = True
        self._paint = material.node_tree.nodes["Principled BSDF"].inputs
        for socket, value in PAINT.items():
            self._paint[socket].default_value = value
        bpy.context.active_object.data.materials.append(material)
        world = bpy.context.scene.world
        world.cycles.sampling_method = "NONE"  # an even light is smooth: a map of it for rays costs a second a picture
        nodes = world.node_tree.nodes
        nodes.clear()
        sky = nodes.new("ShaderNodeBackground")
        sky.inputs["Color"].default_value = (*AMBIENT, 1.0)
        world.node_tree.links.new(sky.outputs[0], nodes.new("ShaderNodeOutputWorld").inputs["Surface"])
        self._stage = bpy.data.collections.new("stage")
        bpy.context.scene.collection.children.link(self._stage)

    def _look(self, view: View) -> None:
        self._camera.position = view.camera
        self._camera.look_at(view.target)
        self._paint["Base Color"].default_value = (*view.floor, 1.0)

    def _arrange(self, placements: Sequence[Placement]) -> None:
        """Put the props of the placements, and nothing else, on the stage, in the order given."""
        for shown in list(self._stage.objects):
            self._stage.objects.unlink(shown)
        used: Counter[str] = Counter()
        for number, placement in enumerate(placements, start=1):
            prop = self._prop(placement.asset, used[placement.asset])
            used[placement.asset] += 1
            prop.position, prop.quaternion = placement.position, placement.quaternion
            prop.scale = (placement.scale,) * 3
            shown = prop.linked_objects[self._blender]
            shown.pass_index = number
            self._stage.objects.link(shown)

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


def set_up_cycles(scene: Any, threads: int) -> None:
    """What is the same in every picture of every recipe. threads: 0 for all cores."""
    # A pixel is done when its error is below this. Most of a picture is floor: 128 samples then cost about as much as
    # 32 everywhere, and come as near to 1024 as 70 everywhere do (47.7 dB, 256 × 256).
    scene.cycles.use_adaptive_sampling = True
    scene.cycles.adaptive_threshold = NOISE
    scene.cycles.adaptive_min_samples = 8  # Blender's own least, from the threshold, is 46
    # What the denoiser is guided by is clean after 8 samples: cleaning that first takes as long as denoising itself.
    scene.cycles.denoising_prefilter = "FAST"
    scene.render.threads_mode = "FIXED" if threads else "AUTO"
    if threads:
        scene.render.threads = threads
    scene.frame_set(0)


def set_up_passes(scene: Any) -> None:
    """Ask for colour, object number and Z.

    Kubric's own view renders a second layer for masks, flow, normals and coordinates, and copies all of it through the
    compositor. Object number and Z are what Cycles saw with its first ray through a pixel: never mixed at borders, and
    left alone by the denoiser.
    """
    scene.view_layers.remove(scene.view_layers["AuxOutputs"])
    scene.node_tree.nodes.clear()
    scene.use_nodes = False
    (layer,) = scene.view_layers
    layer.name = "Layer"
    layer.use_pass_z = layer.use_pass_object_index = True
    # Captions name colours, so colours must stay what the texture says: Filmic and AgX, made for cinema, pale them.
    # White things keep their shape, which the plain sRGB curve clips.
    scene.view_settings.view_transform = "Khronos PBR Neutral"
    scene.render.dither_intensity = 0.0
    settings = scene.render.image_settings
    settings.file_format = "OPEN_EXR_MULTILAYER"
    settings.color_depth = "32"
    settings.exr_codec = "NONE"  # it is read once and lies in memory


def read_picture(passes: Path, colours: Path) -> Picture:
    """The picture in the files that Blender wrote."""
    import OpenEXR

    channels = OpenEXR.File(str(passes)).channels()
    depth = channels["Layer.Depth.Z"].pixels.astype(np.float32)
    depth[depth > SKY] = np.inf
    return Picture(
        pixels=np.asarray(open_image(colours.read_bytes(), ("PNG",)).convert("RGB")),
        instances=np.rint(channels["Layer.IndexOB.X"].pixels).astype(np.uint8),
        depth=depth,
    )
