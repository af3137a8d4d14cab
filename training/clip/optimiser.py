"""AdamW with decay on matrices alone, and the learning rate as a function of the step (BiVLC, appendix E)."""

import math
from collections.abc import Sequence
from typing import Any

import torch

from twinset.training.clip.settings import ClipSettings, RunSettings

#: CLIP clips the scale of its logits at 100 (Radford et al. 2021, section 2.5).
LARGEST_SCALE = math.log(100)
_SCALES = ("logit_scale", "logit_bias")


def new_optimiser(
    network: torch.nn.Module, settings: RunSettings, faster: Sequence[str] = (), times: float = 1.0
) -> torch.optim.AdamW:
    """AdamW over all parameters that train, in the network's order: matrices decay; norms, biases, scales do not.

    Args:
        faster: parts of the names of parameters whose learning rate is multiplied.
        times: by how much; a group of parameters has it as ``times``.
    """
    named = [(name, value) for name, value in network.named_parameters() if value.requires_grad]
    norms = {
        f"{prefix}.{name}" if prefix else name
        for prefix, module in network.named_modules()
        if "norm" in type(module).__name__.lower()
        for name, _ in module.named_parameters(recurse=False)
    }
    held: dict[tuple[float, float], list[torch.nn.Parameter]] = {(1.0, settings.weight_decay): [], (1.0, 0.0): []}
    for name, value in named:
        rate = times if any(part in name for part in faster) else 1.0
        decay = settings.weight_decay if decays_weight(name, value, norms) else 0.0
        held.setdefault((rate, decay), []).append(value)
    groups = [{"params": some, "weight_decay": decay, "times": rate} for (rate, decay), some in held.items()]
    # One pass over memory instead of nine: the tables of tokens of small models are most of what they weigh.
    fused = True if all(value.device.type == "cpu" for _, value in named) else None
    return torch.optim.AdamW(groups, lr=settings.lr, betas=settings.betas, eps=settings.eps, fused=fused)


def decays_weight(name: str, value: torch.Tensor, norms: set[str]) -> bool:
    """Whether weight decay acts on a parameter. norms: names of the parameters of norms."""
    last = name.rpartition(".")[2]
    return value.ndim >= 2 and name not in norms and last not in _SCALES and not last.endswith("bias")


def learning_rate(step: int, steps: int, settings: ClipSettings) -> float:
    """The learning rate of step 0, 1, …, steps - 1.

    During the warm-up of W steps it is lr · (step + 1) / W; then lr · (1 + cos(π · (step - W) / (steps - W))) / 2.
    """
    if step < settings.warmup:
        return settings.lr * (step + 1) / settings.warmup
    return settings.lr * 0.5 * (1 + math.cos(math.pi * (step - settings.warmup) / (steps - settings.warmup)))


def moments(network: torch.nn.Module, optimiser: torch.optim.AdamW) -> dict[str, torch.Tensor]:
    """The optimiser's two moments of each parameter by name; empty before the first step."""
    state = optimiser.state
    return {
        f"{moment}.{name}": state[value][moment]
        for name, value in network.named_parameters()
        for moment in ("exp_avg", "exp_avg_sq")
        if value in state
    }


def restore_moments(
    network: torch.nn.Module, optimiser: torch.optim.AdamW, held: dict[str, torch.Tensor], step: int
) -> None:
    """Give an optimiser the moments that `moments` read after a number of steps; other parameters had no gradient."""
    for name, value in network.named_parameters():
        if f"exp_avg.{name}" in held:
            state: dict[str, Any] = {"step": torch.tensor(float(step))}
            for moment in ("exp_avg", "exp_avg_sq"):
                state[moment] = held[f"{moment}.{name}"].to(value.device).clone()
            optimiser.state[value] = state
