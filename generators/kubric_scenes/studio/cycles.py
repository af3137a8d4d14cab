"""How Cycles renders: settings and device."""

from __future__ import annotations

from typing import Any, Literal

from generators.kubric_scenes.studio.kubric_import import load_renderer
from manifests.errors import WrongUse

NOISE = 0.02  # of linear light; Blender's default of 0.01 stops almost nowhere before 128 samples


def set_up_cycles(scene: Any, threads: int) -> None:
    """What is the same in every picture of every recipe. threads: 0 for all cores."""
    # A pixel is done when its error is below this. Most of a picture is floor: 128 samples then cost about as much as
    # 32 everywhere, and come as near to 1024 as 70 everywhere do (47.7 dB, 256 × 256).
    scene.cycles.use_adaptive_sampling = True
    scene.cycles.adaptive_threshold = NOISE
    scene.cycles.adaptive_min_samples = 8  # Blender's own least, from the threshold, is 46
    scene.render.threads_mode = "FIXED" if threads else "AUTO"
    if threads:
        scene.render.threads = threads
    scene.frame_set(0)


def choose_device(context: Any, device: Literal["cpu", "gpu"]) -> None:
    """Render on the CPU, or on all OptiX devices that Blender finds, else on all CUDA devices."""
    context.scene.cycles.device = "CPU" if device == "cpu" else "GPU"
    if device == "cpu":
        return
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
