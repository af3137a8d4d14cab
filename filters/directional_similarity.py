"""CLIP's directional similarity (Gal et al. 2021, arXiv 2108.00946): do the images change as their captions do?

Opt-in, and it rejects nothing: a limit would favour what one model of the kind that is tested takes for right.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Literal

from twinset.contracts.kinds.samples import Score
from twinset.filters.clip_pairs import ClipFilter, ClipSettings

if TYPE_CHECKING:
    from torch import Tensor

#: Unit embeddings of equal inputs can be this far apart, by their places in a batch: such a step has no direction.
ROUNDING = 1e-5


class DirectionalSimilarity(ClipSettings):
    """Scores how well the change of the images follows that of the captions, by a CLIP model; drops nothing.

    model, device, threads, micro_batch: as `ClipSettings`.
    """

    kind: Literal["directional-similarity"]

    scored: ClassVar[Mapping[str, str]] = {
        "direction": "cosine of the change of the images and that of the captions, by CLIP (-1 to 1); 1: alike"
    }

    def open(self) -> DirectionalSimilarityFilter:
        return DirectionalSimilarityFilter(self, self.kind)


class DirectionalSimilarityFilter(ClipFilter):
    """Scores every pair as ``direction`` and drops none."""

    version: ClassVar[int] = 1

    def measure(self, images: Tensor, captions: Tensor) -> Tensor:
        """Directional similarity of each pair: with unit embeddings e,

            direction = cos(e(image1) - e(image0), e(caption1) - e(caption0))

        1 where the images change as the captions do; 0 where neither has to do with the other, or nothing changes.
        """
        import torch

        # (2, pairs, channels): the step of the images and that of the captions
        steps = torch.stack([embeds[:, 1] - embeds[:, 0] for embeds in (images, captions)])
        cosines = torch.nn.functional.cosine_similarity(steps[0], steps[1], dim=1)
        still = (steps.norm(dim=2) < ROUNDING).any(dim=0)
        return torch.where(still, 0.0, cosines)

    def verdict(self, value: float) -> Score:
        return Score("direction", value)
