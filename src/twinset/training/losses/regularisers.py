"""Regularisers besides EqSim: the baselines HardNeg and CyCLIP."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from twinset.training.losses.eqsim import residual_v1
from twinset.training.losses.features import Features, at_least_float32, similarities
from twinset.training.losses.names import SAMPLES
from twinset.training.losses.sampling import sample_pairs


@dataclass(frozen=True, slots=True)
class HardNegatives:
    """HardNeg: the baseline that only trains on sampled hard negatives (EqBen, section 5.4, Table 6).

    There it is a fusion encoder's matching head: it classifies (image i, text i) as matched, and (image i, text j) and
    (image j, text i) as not, j sampled by similarity (`training.losses.fusion`). A dual encoder has no such head. Here
    a row's own logit is contrasted with those of the sampled columns only, so that this regulariser sees the pairs that
    EqSim's released form sees, and no others:

        ½ · mean_i −log(exp(L_ii) / (exp(L_ii) + Σ_{j in texts_i} exp(L_ij)))
      + ½ · mean_i −log(exp(L_ii) / (exp(L_ii) + Σ_{j in images_i} exp(L_ji)))

    samples: images for each text, and texts for each image.
    """

    samples: int = SAMPLES

    def __call__(
        self, features: Features, scale: Tensor, generator: torch.Generator | None = None
    ) -> tuple[Tensor, dict[str, float]]:
        logits = at_least_float32(scale) * similarities(features.images, features.texts)
        return self.on(logits, sample_pairs(logits, self.samples, generator))

    def on(self, logits: Tensor, pairs: tuple[Tensor, Tensor]) -> tuple[Tensor, dict[str, float]]:
        """The loss of given logits (n, n) and given samples: images and texts for each row, shapes (n, k)."""
        images, texts = pairs
        own = logits.diagonal()[:, None]
        rows = [torch.cat([own, logits.gather(1, texts)], 1), torch.cat([own, logits.T.gather(1, images)], 1)]
        answers = torch.zeros(len(logits), dtype=torch.int64, device=logits.device)
        loss = torch.stack([functional.cross_entropy(row, answers) for row in rows]).mean()
        with torch.no_grad():
            above = torch.stack([(row[:, 1:] >= row[:, :1]).float().mean() for row in rows]).mean()
        return loss, {"hard_above_own": float(above)}


@dataclass(frozen=True, slots=True)
class CyCLIP:
    """CyCLIP's consistency losses (Goel et al. 2022, section 2.2), a baseline of EqBen.

    With cosines c of images I and texts T of a batch of n pairs

        cross = (1/n) Σ_jk (c(I_j, T_k) − c(I_k, T_j))²        within = (1/n) Σ_jk (c(I_j, I_k) − c(T_j, T_k))²

    CyCLIP is InfoNCE + λ₁ · within + λ₂ · cross with λ₁ = λ₂ = 0.25: the regulariser is their sum and its weight 0.25.
    CyCLIP's own code gives the same numbers by another route: mean((s·c − s·cᵀ)²) / s² · n, s being the scale.

    Attributes:
        within: the form that EqBen released (``pairloss='cross_consist'``) is cross alone; images among each other and
            texts among each other are compared only by its other option, ``incross_consist``.
    """

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
