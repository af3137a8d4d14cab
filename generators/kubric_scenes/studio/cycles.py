"""How Cycles renders: settings, device, and three passes: colour, which object, how far. And reading them back."""

from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from twinset.contracts.errors import WrongUse
from twinset.generators.kubric_scenes.scene.parts import Picture
from twinset.generators.kubric_scenes.studio.kubric_import import load_renderer

NOISE = 0.02  # of linear light; Blender's default of 0.01 stops almost nowhere before 128 samples
SKY = 1e9  # Blender writes 1e10 where there is nothing


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


def choose_device(context: Any, device: Literal["cpu", "gpu"]) -> None:
    """Render on the CPU, or on all OptiX devices that Blender finds, else on all CUDA devices."""
    context.scene.cycles.device = device.upper()
    if device == "gpu":
        preferences = context.preferences.addons["cycles"].preferences
        kind, _ = _gpus(preferences)
        preferences.compute_device_type = kind
        for entry in preferences.devices:
            entry.use = entry.type == kind


def gpu_name() -> str:
    """What `choose_device` renders on, such as ``OPTIX NVIDIA H200``; raises WrongUse where there is no GPU."""
    load_renderer()
    import bpy

    kind, names = _gpus(bpy.context.preferences.addons["cycles"].preferences)
    return " ".join([kind, *names])


def _gpus(preferences: Any) -> tuple[str, list[str]]:
    for kind in ("OPTIX", "CUDA"):
        found = [entry.name for entry in preferences.get_devices_for_type(kind) if entry.type == kind]
        if found:
            return kind, sorted(found)
    raise WrongUse(
        "device: gpu, but Blender finds neither an OptiX nor a CUDA device here; write `device: cpu`, or run this"
        " where `nvidia-smi` lists a GPU (in a container: --gpus all)"
    )


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
