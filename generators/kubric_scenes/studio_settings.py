"""How Cycles renders: settings and device."""

from __future__ import annotations

from typing import Any, Literal

from manifests.errors import WrongUse


def set_up_cycles(scene: Any, threads: int) -> None:
    """What is the same in every picture of every recipe. threads: 0 for all cores."""
    scene.cycles.denoising_prefilter = "FAST"
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
