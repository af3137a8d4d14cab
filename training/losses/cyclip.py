"""CyCLIP's consistency losses (Goel et al. 2022, section 2.2), a baseline of EqBen.

With cosines c of images I and texts T of a batch of n pairs

    cross = (1/n) Σ_jk (c(I_j, T_k) − c(I_k, T_j))²        within = (1/n) Σ_jk (c(I_j, I_k) − c(T_j, T_k))²

CyCLIP is InfoNCE + λ₁ · within + λ₂ · cross with λ₁ = λ₂ = 0.25: the regulariser is their sum and its weight 0.25.
CyCLIP's own code gives the same numbers by another route: mean((s·c − s·cᵀ)²) / s² · n, s being the scale.

The form that EqBen released as its baseline (``pairloss='cross_consist'``) is cross alone: images among each other and
texts among each other are compared only by its other option, ``incross_consist``.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from twinset.training.losses.eqsim import residual_v1
from twinset.training.losses.features import Features, similarities


@dataclass(frozen=True, slots=True)
class CyCLIP:
    """Cyclic consistency. within: whether images among each other are compared with texts among each other too."""

    within: bool = True

    def __call__(
        self, features: Features, scale: Tensor, generator: torch.Generator | None = None
    ) -> tuple[Tensor, dict[str, float]]:
        n, images, texts = len(features), features.images, features.texts
        cross = residual_v1(similarities(images, texts)).square().sum() / n
        if not self.within:
            return cross, {"cross": float(cross.detach())}
        within = (similarities(images, images) - similarities(texts, texts)).square().sum() / n
        return cross + within, {"cross": float(cross.detach()), "within": float(within.detach())}
