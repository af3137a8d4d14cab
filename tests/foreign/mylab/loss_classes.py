"""What `mylab.losses` names."""

import torch
from torch import Tensor

from twinset.training.losses.features import Features, similarities
from twinset.training.losses.objectives import InfoNCE, contrast


class Paired(InfoNCE):
    """Each pair against its own twin alone."""

    def __call__(
        self, features: Features, scale: Tensor, generator: torch.Generator | None = None
    ) -> tuple[Tensor, dict[str, float]]:
        pairs = features.all_pairs()
        logits = scale * similarities(pairs.images, pairs.texts)
        n = len(features)
        own = torch.eye(2 * n, dtype=torch.bool) | torch.eye(2 * n, dtype=torch.bool).roll(n, 1)
        near = logits.masked_fill(~own, -1e4)
        return contrast(near, near.T)

    def matched(self, features: Features) -> Features:
        return features.all_pairs()


class Spread:
    """The mean cosine of texts."""

    def __call__(
        self, features: Features, scale: Tensor, generator: torch.Generator | None = None
    ) -> tuple[Tensor, dict[str, float]]:
        mean = similarities(features.texts, features.texts).mean()
        return mean, {"spread": float(mean.detach())}
