"""The three passes of one render: colour, which object, how far. And reading them back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from generators.kubric_scenes.scene.parts import Picture

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
    """Linear light as sRGB, 8 bits a channel, tone-mapped by "Khronos PBR Neutral" (Khronos, 2024).

    Captions name colours, so colours must stay what the texture says: Filmic and AgX, made for cinema, pale them.
    White things keep their shape, which the plain sRGB curve clips.
    """
    light = _tone_mapped(np.maximum(linear, 0.0))
    curve = np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055)  # IEC 61966-2-1
    return np.rint(curve * 255.0).astype(np.uint8)


def _tone_mapped(light: NDArray[np.float32]) -> NDArray[np.float32]:
    """Khronos's formula: take off what a surface mirrors head-on (4 %), then press highlights below 1."""
    start, desaturation = 0.76, 0.15
    least = light.min(axis=-1, keepdims=True)
    light = light - np.where(least < 0.08, least - 6.25 * least**2, 0.04)
    peak = light.max(axis=-1, keepdims=True)
    pressed = 1.0 - (1.0 - start) ** 2 / (np.maximum(peak, start) + 1.0 - 2.0 * start)
    grey = 1.0 - 1.0 / (desaturation * (peak - pressed) + 1.0)
    mixed = light * (pressed / np.maximum(peak, start)) * (1.0 - grey) + pressed * grey
    return np.where(peak < start, light, mixed)
