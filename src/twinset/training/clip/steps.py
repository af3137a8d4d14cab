"""One step: features of a batch, its loss, the gradient over all processes, and the weights after it."""

import contextlib
import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from twinset.contracts.canonical import generator_for
from twinset.contracts.errors import BuildFailed
from twinset.training.clip.settings import ClipSettings
from twinset.training.examples.batches import Batch
from twinset.training.losses.features import Features, Loss, gather
from twinset.training.losses.gradient_cache import Inputs, cached_backward
from twinset.training.runs.processes import Process
from twinset.training.runs.settings import RunSettings

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


SHOWN = 5  # keys in a message


class Stepper:
    """Takes the steps of a run. Everything that is random in one is a function of the seed and the step."""

    def __init__(
        self, network: Any, optimiser: torch.optim.Optimizer, loss: Loss, settings: ClipSettings, process: Process
    ) -> None:
        self.network, self.optimiser, self.loss = network, optimiser, loss
        self.settings, self.process = settings, process

    def take(self, batch: Batch, steps: int) -> dict[str, float]:
        """Train on a batch; returns what is logged.

        Args:
            steps: of the whole run.

        Raises:
            BuildFailed: loss or gradient is not finite; weights stay as they were.
        """
        rate = learning_rate(batch.step, steps, self.settings)
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        self.optimiser.zero_grad(set_to_none=True)
        torch.manual_seed(stream_seed(self.settings.seed, "dropout", batch.step, self.process.rank))
        inputs = self.inputs(batch)
        value, logged = self._backward(inputs, batch.step)
        parameters = [one for one in self.network.parameters() if one.grad is not None]
        self.process.average(parameters)
        norm = torch.nn.utils.get_total_norm([one.grad for one in parameters if one.grad is not None])
        if not torch.isfinite(torch.stack([value, norm])).all():
            raise BuildFailed(self._not_finite(batch, inputs, value, norm))
        self.optimiser.step()
        with torch.no_grad():
            self.network.logit_scale.clamp_(0, LARGEST_SCALE)
        scale = float(self.network.logit_scale.detach().exp())
        return {"loss": float(value), "lr": rate, "logit_scale": scale, "gradient_norm": float(norm), **logged}

    def inputs(self, batch: Batch) -> dict[str, Tensor]:
        """Images and tokens of a batch by role, on the device."""
        given = {**batch.images, **batch.texts}
        return {role: value.to(self.process.device, non_blocking=True) for role, value in given.items()}

    def features(self, inputs: Inputs) -> Features:
        """Features with norm 1 of a batch or a part of it, float32."""
        with autocast(self.settings.precision, self.process.device):
            images = self._encoded(inputs, ("image", "negative_image"), self.network.encode_image)
            texts = self._encoded(inputs, ("text", "negative_text"), self.network.encode_text)
        return Features(images["image"], texts["text"], images.get("negative_image"), texts.get("negative_text"))

    def _backward(self, inputs: Inputs, step: int) -> tuple[Tensor, dict[str, float]]:
        generator = torch.Generator().manual_seed(stream_seed(self.settings.seed, "sampling", step))

        def of_batch(features: Features, scale: Tensor) -> tuple[Tensor, dict[str, float]]:
            return self.loss(gather(features), scale, generator)

        rows = self.settings.batch // self.process.world
        return cached_backward(self._encode, inputs, of_batch, rows // self.settings.accumulate)

    def _encode(self, inputs: Inputs) -> tuple[Features, Tensor]:
        return self.features(inputs), self.network.logit_scale.exp()

    def _encoded(self, inputs: Inputs, roles: Sequence[str], encode: Any) -> dict[str, Tensor]:
        """All of a tower's inputs in one pass."""
        there = [role for role in roles if role in inputs]
        found = functional.normalize(encode(torch.cat([inputs[role] for role in there])).float(), dim=-1)
        return dict(zip(there, found.chunk(len(there)), strict=True))

    def _not_finite(self, batch: Batch, inputs: Inputs, value: Tensor, norm: Tensor) -> str:
        """What is not finite: features of some examples, which are named, or only loss or gradient."""
        with torch.no_grad():
            rows = torch.stack([part.isfinite().all(-1) for part in self.features(inputs).tensors()]).all(0)
        bad = [key for key, fine in zip(batch.keys, rows.tolist(), strict=True) if not fine]
        what = f"features of {len(bad):,} examples are not finite" if bad else "features are finite"
        return (
            f"step {batch.step + 1}: the loss is {float(value)} and the norm of its gradient {float(norm)}; {what}; "
            f"the examples are {listed(bad or batch.keys)}. Train again into a new --out with a lower --lr or a longer "
            "--warmup; if the same few examples fail each time, leave their dataset out"
        )


def autocast(precision: str, device: str) -> contextlib.AbstractContextManager[Any]:
    """The precision of a forward pass: ``float32`` as it is, or ``bfloat16`` by autocast."""
    if precision == "float32":
        return contextlib.nullcontext()
    return torch.autocast(torch.device(device).type, torch.bfloat16)


def stream_seed(seed: int, *purpose: str | int) -> int:
    """63 bits that seed torch for one purpose: a run's seed, what is sampled, the step, the process."""
    return int(generator_for(seed, "training", repr(purpose)).integers(1 << 63))


def listed(keys: Sequence[str]) -> str:
    """The first keys of some for a message, and how many more there are."""
    return ", ".join(keys[:SHOWN]) + (f" and {len(keys) - SHOWN:,} more" if len(keys) > SHOWN else "")
