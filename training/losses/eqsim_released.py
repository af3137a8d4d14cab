"""EqSim as its released code computes it (repository Wangt-CN/EqBen, EqSim/FIBER, ``pairloss='hard_easy_itc'``).

S is the softmax of each image's logits over the batch's texts, as in `training.losses.eqsim`. For each i, k = 4 images
and k = 4 texts are sampled by similarity; P holds these n · 2k pairs (i, j), each as often as it was sampled. M is 0 at
(i, j) and (j, i) for the pairs of P, otherwise 1.

    v2 = [mean_P ((S_ii − S_ij) − (S_jj − S_ji))² − α]₊ + [mean_P ((S_ii − S_ji) − (S_jj − S_ij))² − α]₊,   α = 0.1
    v1 = [Σ_ij M_ij (S_ij − S_ji)² / n² − α₁]₊,   α₁ = 0

Differences from the paper's form:

* The margin is subtracted from a mean, not from each pair's square: below α the whole gradient of v2 is 0.
* Close pairs are sampled, not the top k: v2 and the hybrid need a generator.
* v1 has a margin of its own, 0, and its mean counts all n² cells, also the diagonal and the masked ones.

Differences of this module from the released code: there each of 8 GPUs samples for its own 8 rows of a gathered batch
of 64, has hinges of its own, and gradients are averaged; here each hinge is on the mean over all rows. The released
weight, 0.5 on v1 and on each side of v2, is the regulariser's weight here.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from twinset.training.losses.eqsim import normalised, residual_v1, residuals_v2
from twinset.training.losses.features import Features, at_least_float32, similarities
from twinset.training.losses.names import MARGIN
from twinset.training.losses.sampling import SAMPLES, chosen, sample_pairs


@dataclass(frozen=True, slots=True)
class EqSimReleased:
    """EqSim's released form.

    Attributes:
        form: v1 alone masks nothing (EqSimv1-all of Table 6); v2 alone is on sampled pairs (EqSimv2-close).
        margin: α of v2.
        margin_v1: α₁.
        samples: k; None: v2 on all pairs i < j (``pairloss='itc'``, EqSimv2-all), so that in the hybrid v1 is zero.
    """

    form: Literal["v1", "v2", "hybrid"] = "hybrid"
    margin: float = MARGIN
    margin_v1: float = 0.0
    samples: int | None = SAMPLES

    def __call__(
        self, features: Features, scale: Tensor, generator: torch.Generator | None = None
    ) -> tuple[Tensor, dict[str, float]]:
        cosines = similarities(features.images, features.texts)
        pairs: tuple[Tensor, Tensor] | None = None
        if self.form != "v1" and self.samples is not None:
            pairs = sample_pairs(at_least_float32(scale) * cosines, self.samples, generator)
        return self.on(normalised(cosines, scale, "softmax"), pairs)

    def on(self, scores: Tensor, pairs: tuple[Tensor, Tensor] | None) -> tuple[Tensor, dict[str, float]]:
        """The loss of given similarities and given samples.

        Args:
            scores: S, shape (n, n).
            pairs: images and texts sampled for each row, shapes (n, k); None: all pairs, and for v1 no mask.
        """
        n = len(scores)
        places = None if pairs is None else torch.cat(pairs, 1)  # (n, 2k)
        means, margins = [], []
        if self.form != "v1":
            for residual in residuals_v2(scores):
                square = residual.square()
                # All pairs i < j: half of the n · (n − 1) cells beside the diagonal, whose own residual is 0.
                means.append(square.sum() / max(n * (n - 1), 1) if places is None else square.gather(1, places).mean())
                margins.append(self.margin)
        if self.form != "v2":
            means.append((residual_v1(scores).square() * self.mask(places, scores)).mean())
            margins.append(self.margin_v1)
        above = torch.stack(means) - torch.tensor(margins, dtype=scores.dtype, device=scores.device)
        return above.clamp(min=0).sum(), {"active_fraction": float((above.detach() > 0).float().mean())}

    def mask(self, places: Tensor | None, scores: Tensor) -> Tensor:
        """M: the cells that v1 compares, shape (n, n)."""
        if self.form == "v1":
            return torch.ones_like(scores)
        if places is None:
            return torch.zeros_like(scores)
        near = chosen(places, len(scores))
        return (~(near | near.T)).to(scores.dtype)
