"""How well the change of two images follows that of their captions, as COCO-Counterfactuals measures its pairs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from twinset.contracts.kinds.samples import Score
from twinset.filters.clip_scores import ClipFilter
from twinset.models.encoders.contract import Floats, unit

#: Unit embeddings of equal inputs can be this far apart, by their places in a batch: such a step has no direction.
ROUNDING = 1e-5


class DirectionalSimilarity(ClipFilter):
    """Scores how well the change of the images follows that of the captions, by a CLIP model; drops nothing.

    CLIP's directional similarity (Gal et al. 2021, arXiv 2108.00946). A limit would favour what one model of the kind
    that is tested takes for right.

    model, device, threads, micro_batch: as `ClipFilter`.
    """

    kind: Literal["directional-similarity"]

    scored: ClassVar[Mapping[str, str]] = {
        "direction": "cosine of the change of the images and that of the captions, by CLIP (-1 to 1); 1: alike"
    }

    def measure(self, images: Floats, captions: Floats) -> NDArray[np.floating]:
        """Directional similarity of each pair: with unit embeddings e,

            direction = cos(e(image1) - e(image0), e(caption1) - e(caption0))

        1 where the images change as the captions do; 0 where neither has to do with the other, or nothing changes.
        """
        steps = [embeds[:, 1] - embeds[:, 0] for embeds in (images, captions)]
        still = np.any([np.linalg.norm(step, axis=1) < ROUNDING for step in steps], axis=0)
        return np.where(still, np.float32(0), (unit(steps[0]) * unit(steps[1])).sum(axis=1))

    def verdict(self, value: float) -> Score:
        return Score("direction", value)
