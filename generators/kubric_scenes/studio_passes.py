"""The three passes of one render: colour, which object, how far. And reading them back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from generators.kubric_scenes.scene import Picture

SKY = 1e9  # Blender writes 1e10 where there is nothing


def enable_passes(scene: Any) -> None:
    """Ask for colour, object number and Z in one multilayer EXR file.

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
    settings = scene.render.image_settings
    settings.file_format = "OPEN_EXR_MULTILAYER"
    settings.color_depth = "32"
    settings.exr_codec = "NONE"  # it is read once and lies in memory


def read_picture(file: Path) -> Picture:
    """The picture in a file that Blender wrote."""
    import OpenEXR

    channels = OpenEXR.File(str(file)).channels()
    depth = channels["Layer.Depth.Z"].pixels.astype(np.float32)
    depth[depth > SKY] = np.inf
    return Picture(
        pixels=to_srgb(channels["Layer.Combined"].pixels[..., :3]),
        instances=np.rint(channels["Layer.IndexOB.X"].pixels).astype(np.uint8),
        depth=depth,
    )


def to_srgb(linear: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Linear light as sRGB (IEC 61966-2-1), 8 bits a channel.

    This is Blender's view transform "Standard".
    """
    light = np.clip(linear, 0.0, 1.0)
    curve = np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055)
    return np.rint(curve * 255.0).astype(np.uint8)
