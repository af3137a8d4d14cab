"""What the steps of all tasks share: AdamW, the learning rate, precision, and seeds."""

import math
from collections.abc import Sequence
from typing import Any, Literal

import torch

from twinset.contracts.canonical import generator_for
from twinset.contracts.errors import WrongUse
from twinset.training.runs.settings import RunSettings


def new_optimiser(
    network: torch.nn.Module, settings: RunSettings, faster: Sequence[str] = (), times: float = 1.0
) -> torch.optim.AdamW:
    """AdamW over all parameters that train: matrices decay; norms, biases and scales do not.

    Args:
        faster: parts of the names of parameters whose learning rate is multiplied.
        times: by how much; a group of parameters has it as ``times``.
    """
    norms = {
        id(value)
        for module in network.modules()
        if "norm" in type(module).__name__.lower()
        for value in module.parameters(recurse=False)
    }
    parameters: dict[tuple[float, float], list[torch.nn.Parameter]] = {}
    for name, value in network.named_parameters():
        if value.requires_grad:
            decays = value.ndim >= 2 and id(value) not in norms and not name.endswith("bias")
            rate = times if any(part in name for part in faster) else 1.0
            parameters.setdefault((rate, settings.weight_decay if decays else 0.0), []).append(value)
    groups: list[dict[str, Any]] = [
        {"params": values, "weight_decay": decay, "times": rate} for (rate, decay), values in parameters.items()
    ]
    # One pass over memory instead of nine: the tables of tokens of small models are most of what they weigh.
    fused = True if all(value.device.type == "cpu" for value in network.parameters()) else None
    return torch.optim.AdamW(groups, lr=settings.lr, betas=settings.betas, eps=settings.eps, fused=fused)


def learning_rate(
    step: int, steps: int, peak: float, warmup: int, fall: Literal["cosine", "linear"] = "cosine"
) -> float:
    """The learning rate of step s = 0, 1, …, S - 1, with W steps of warm-up.

    peak · (s + 1) / W where s < W; then ``cosine``: peak · (1 + cos(π · (s - W) / (S - W))) / 2, or ``linear``:
    peak · (S - s) / (S - W).
    """
    if step < warmup:
        return peak * (step + 1) / warmup
    if fall == "linear":
        return peak * (steps - step) / (steps - warmup)
    return peak * 0.5 * (1 + math.cos(math.pi * (step - warmup) / (steps - warmup)))


def refuse_batch_norm(model: str, network: torch.nn.Module, parts: int) -> None:
    """Raise `WrongUse` where a network that normalises over a batch would read it in parts."""
    norms = (module for module in network.modules() if isinstance(module, torch.nn.modules.batchnorm._BatchNorm))
    if parts > 1 and any(module.training for module in norms):
        raise WrongUse(f"{model} normalises over a batch; leave out --accumulate, and train it in one process")


def autocast(precision: str, device: str) -> torch.autocast:
    """The precision of a forward pass: ``float32`` as it is, or ``bfloat16`` by autocast."""
    return torch.autocast(torch.device(device).type, torch.bfloat16, enabled=precision == "bfloat16")


def stream_seed(seed: int, *purpose: str | int) -> int:
    """63 bits that seed torch for one purpose: a run's seed, what is sampled, the step, the process."""
    return int(generator_for(seed, "training", repr(purpose)).integers(1 << 63))
