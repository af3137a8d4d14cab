"""The samplers of diffusion models, none of which draws noise of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from diffusers import DDIMScheduler, DPMSolverMultistepScheduler, EulerDiscreteScheduler, PNDMScheduler

from twinset.manifests.errors import WrongUse
from twinset.models.diffusion.models import scheduler_config
from twinset.models.loading import loading

SCHEDULERS: dict[str, Any] = {
    "euler": EulerDiscreteScheduler,
    "ddim": DDIMScheduler,
    "dpm-solver++": DPMSolverMultistepScheduler,
    "pndm": PNDMScheduler,
}
#: What a scheduler is given besides the model's own configuration.
GIVEN = {"dpm-solver++": {"algorithm_type": "dpmsolver++"}}  # whatever the variant: the stochastic ones draw noise
#: What holds where the configuration does not say it.
ABSENT = {
    "ddim": {"clip_sample": False},  # latents have no bounds; other schedulers do not know of clipping
    "pndm": {"skip_prk_steps": True},  # as Stable Diffusion has it
}


def own_scheduler(folder: Path) -> str:
    """Name of the sampler that a model's folder names; raises `WrongUse` where it is none of `SCHEDULERS`."""
    found = str(scheduler_config(folder).get("_class_name"))
    for name, kind in SCHEDULERS.items():
        if kind.__name__ == found:
            return name
    raise WrongUse(
        f"{folder}/scheduler/scheduler_config.json: the model's own sampler is {found}, which is not supported; set "
        f"scheduler to one of {', '.join(SCHEDULERS)}"
    )


def new_scheduler(folder: Path, name: str) -> Any:
    """A sampler with the noise schedule of the model in a folder; raises `WrongUse` where they do not fit."""
    config = scheduler_config(folder)
    with loading(folder / "scheduler/scheduler_config.json"):
        return SCHEDULERS[name].from_config({**ABSENT.get(name, {}), **config}, **GIVEN.get(name, {}))
