"""One step of a Combiner: queries of a batch, their loss against its targets (GeneCIS, equation 1), new weights."""

import math
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.models.encoders.combiner import CombinerNetwork
from twinset.training.clip.steps import autocast, listed, stream_seed
from twinset.training.combiner.data import CONDITION, REFERENCE, TARGET
from twinset.training.combiner.settings import CombinerSettings
from twinset.training.examples.batches import Batch
from twinset.training.losses.features import Features, gather, similarities
from twinset.training.losses.gradient_cache import Inputs, cached_backward
from twinset.training.runs.processes import Process

STEPS, EPOCHS = 28_000, 6  # of the paper, and of its released code
LOWEST = 1e-3  # of the learning rate, as a share of the first one


class Trainee(nn.Module):
    """What is trained: a Combiner, and the towers of the encoder that are not frozen.

    clip: a model of open_clip; None where inputs are features already.
    frozen: its tower that stays as it is, ``image`` or ``text``.
    """

    def __init__(self, combiner: CombinerNetwork, clip: Any = None, frozen: str = "none") -> None:
        super().__init__()
        self.combiner, self.clip, self._frozen = combiner, clip, frozen
        for name, value in clip.named_parameters() if clip is not None else ():
            value.requires_grad_(_tower(name) != frozen)

    def train(self, mode: bool = True) -> Self:
        """As `torch.nn.Module.train`; a frozen tower stays in inference mode, or its batch normalisation would move."""
        super().train(mode)
        for name, module in self.clip.named_children() if self.clip is not None else ():
            module.train(mode and _tower(name) != self._frozen)
        return self

    def forward(self, inputs: Inputs) -> Features:
        """Queries as texts and target images as images, both with norm 1.

        Args:
            inputs: by role, images and tokens, or features that are not normalised.
        """
        reference, target, condition = inputs[REFERENCE], inputs[TARGET], inputs[CONDITION]
        if self.clip is not None:
            with self._graph("image"):
                reference, target = self.clip.encode_image(torch.cat([reference, target])).chunk(2)
            with self._graph("text"):
                condition = self.clip.encode_text(condition)
        queries = self.combiner(reference, condition)
        return Features(functional.normalize(target.float(), dim=-1), functional.normalize(queries.float(), dim=-1))

    def _graph(self, tower: str) -> torch.set_grad_enabled:
        """A frozen tower computes without a graph."""
        return torch.set_grad_enabled(torch.is_grad_enabled() and tower != self._frozen)


def _tower(name: str) -> str:
    """The tower of a parameter or module of open_clip by its name: all but ``visual`` encodes texts."""
    return "image" if name.partition(".")[0] == "visual" else "text"


def new_trainee(settings: CombinerSettings, clip: Any, features: int) -> Trainee:
    """A Combiner with random weights from the seed, with an encoder unless all of it is frozen.

    Args:
        features: numbers of a feature of the encoder.

    Raises:
        WrongUse: the batch is to be split, and a tower that is trained normalises over batches.
    """
    frozen = ("image", "text") if settings.frozen == "both" else (settings.frozen,)
    norms = [
        name
        for name, module in clip.named_modules()
        if isinstance(module, nn.modules.batchnorm._BatchNorm) and _tower(name) not in frozen
    ]
    if norms and settings.accumulate > 1:
        raise WrongUse(
            f"accumulate: {settings.model} normalises over a batch ({norms[0]}), whose parts give other features; "
            "leave it out, or train a vision transformer such as ViT-B-16"
        )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        combiner = CombinerNetwork(features, settings.projection, settings.hidden, settings.dropout)
    return Trainee(combiner, None if settings.frozen == "both" else clip, settings.frozen)


def new_optimiser(trainee: Trainee, settings: CombinerSettings) -> torch.optim.AdamW:
    """AdamW over all that is trained, with one rate and one decay for all."""
    trained = [one for one in trainee.parameters() if one.requires_grad]
    fused = True if trained[0].device.type == "cpu" else None  # one pass over memory instead of nine
    return torch.optim.AdamW(trained, settings.lr, settings.betas, settings.eps, settings.weight_decay, fused=fused)


def planned_steps(settings: CombinerSettings, steps_per_epoch: int) -> int:
    """Optimiser steps of a run: as many as settings say, or those of `CombinerSettings.epochs` where they do not."""
    return settings.steps or settings.epochs * steps_per_epoch or min(STEPS, EPOCHS * steps_per_epoch)


def learning_rate(epoch: int, epochs: float, settings: CombinerSettings) -> float:
    """The learning rate of epoch e = 0, 1, …: lr · (0.001 + 0.999 · (1 + cos(π · e / E)) / 2).

    Args:
        epochs: E, steps of the run over steps of an epoch, which need not be whole.
    """
    fallen = (1 + math.cos(math.pi * epoch / epochs)) / 2
    return settings.lr * (LOWEST + (1 - LOWEST) * fallen)


class Stepper:
    """Takes the steps of a run. All that is random in one is a function of the seed and the step."""

    def __init__(
        self, trainee: Trainee, optimiser: torch.optim.Optimizer, settings: CombinerSettings, process: Process
    ) -> None:
        self.trainee, self.optimiser, self.settings, self.process = trainee, optimiser, settings, process
        self._scale = torch.tensor(1 / settings.temperature, device=process.device)

    def take(self, batch: Batch, epochs: float) -> dict[str, float]:
        """Train on a batch; returns what is logged.

        Args:
            epochs: of the whole run, as `learning_rate` takes them.

        Raises:
            BuildFailed: loss or gradient is not finite; weights stay as they were.
        """
        settings = self.settings
        rate = learning_rate(batch.epoch, epochs, settings)
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        self.optimiser.zero_grad(set_to_none=True)
        torch.manual_seed(stream_seed(settings.seed, "dropout", batch.step, self.process.rank))
        inputs = {role: value.to(self.process.device) for role, value in {**batch.images, **batch.texts}.items()}
        value, logged = cached_backward(
            self._encode, inputs, contrast, settings.batch // self.process.world // settings.accumulate
        )
        self.process.average(self.trainee.parameters())
        norm = torch.nn.utils.get_total_norm([one.grad for one in self.trainee.parameters() if one.grad is not None])
        if not torch.isfinite(torch.stack([value, norm])).all():
            raise BuildFailed(
                f"step {batch.step + 1}: the loss is {float(value)} and the norm of its gradient {float(norm)}; the "
                f"examples are {listed(batch.keys)}. Train again into a new --out with a lower --lr"
            )
        if self.trainee.clip is not None and settings.clip_norm:
            # The released code clips gradients that its scaler of float16 has multiplied: by some 10^4 to 10^5, so that
            # they shrink whatever their norm is. Here they are not scaled: this is the norm that was meant.
            torch.nn.utils.clip_grad_norm_(self.trainee.clip.parameters(), settings.clip_norm)
        self.optimiser.step()
        return {"loss": float(value), "lr": rate, "gradient_norm": float(norm), **logged}

    def _encode(self, inputs: Inputs) -> tuple[Features, Tensor]:
        with autocast(self.settings.precision, self.process.device):
            return self.trainee(inputs), self._scale


def contrast(features: Features, scale: Tensor) -> tuple[Tensor, dict[str, float]]:
    """The contrastive loss of queries against the target images of their batch, and its accuracy (0-1).

    L = -1/n Σ_i log( exp(q_i · x_i / τ) / Σ_j exp(q_i · x_j / τ) ): one direction, from queries to images, so that two
    queries of one batch may share an image only at the price of one of them.

    Args:
        features: queries as texts, targets as images, both (n, d); those of other processes are gathered.
        scale: 1 / τ.
    """
    features = gather(features)
    logits = scale * similarities(features.texts, features.images)
    labels = torch.arange(len(logits), device=logits.device)
    accuracy = (logits.argmax(dim=1) == labels).float().mean()
    return functional.cross_entropy(logits, labels), {"accuracy": float(accuracy)}
