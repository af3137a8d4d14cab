"""What is trained of a Combiner and its encoder, and the loss of a batch (GeneCIS, equation 1)."""

from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from twinset.models.encoders.combiner import CombinerNetwork
from twinset.training.combiner.data import CONDITION, REFERENCE, TARGET
from twinset.training.losses.features import Features, chosen, gather, similarities
from twinset.training.losses.gradient_cache import Inputs


class CombinerModel(nn.Module):
    """A Combiner, and the encoder unless its features are read.

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
        """Queries as texts and target images as images, norm 1, of images and tokens or of their features."""
        reference, target, condition = inputs[REFERENCE], inputs[TARGET], inputs[CONDITION]
        if self.clip is not None:
            reference, target = self.clip.encode_image(torch.cat([reference, target])).chunk(2)
            condition = self.clip.encode_text(condition)
        queries = self.combiner(reference, condition)
        return Features(functional.normalize(target.float(), dim=-1), functional.normalize(queries.float(), dim=-1))


def _tower(name: str) -> str:
    """The tower of a parameter or module of open_clip by its name: all but ``visual`` encodes texts."""
    return "image" if name.partition(".")[0] == "visual" else "text"


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
    loss, accuracy = chosen(logits, torch.arange(len(logits), device=logits.device))
    return loss, {"accuracy": accuracy}
