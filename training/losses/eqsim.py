"""EqSim as the paper writes it (EqBen, sections 3, 5.4 and C).

With S_ij the similarity of image i and text j, two pairs i and j obey

    v1:  S_ij = S_ji
    v2:  S_ii − S_ij = S_jj − S_ji   (a change of the text)   and   S_ii − S_ji = S_jj − S_ij   (a change of the image)

and the hinge [(left − right)² − α]₊ of each equation is averaged over the pairs {i, j}. v1 is for semantically distant
pairs, v2 for close ones. What the paper leaves open is decided so:

* S is the softmax of each image's logits over the batch's texts: "the cosine similarity [...] normalize it by a softmax
  function" (C), with the axis and the temperature of the released code. ``normalise="cosine"`` takes the cosine, as
  section 3 alone reads.
* A pair is close when text j is among the k texts most similar to image i, or image j among the k images most similar
  to text i, or the same with i and j exchanged; by cosine, own pair left out, k = 8 (C).
* In the hybrid v1 is averaged over the distant pairs (section 3, Figure 4). Table 6 calls the same loss "EqSimv1-all +
  EqSimv2-close": ``v1_pairs="all"``.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from twinset.manifests.errors import WrongUse
from twinset.training.losses.features import Features, at_least_float32, similarities
from twinset.training.losses.names import MARGIN
from twinset.training.losses.sampling import chosen

#: k of the closest texts of an image, and images of a text (C).
CLOSE = 8

Normalise = Literal["softmax", "cosine"]


@dataclass(frozen=True, slots=True)
class EqSim:
    """EqSim on all pairs of a batch.

    Attributes:
        form: v1 and v2 alone are those of Table 6, EqSimv1-all and EqSimv2-close.
        margin: α, in squared similarity.
        close: k of v2's close pairs; None: v2 on all pairs (EqSimv2-all).
        normalise: what S is.
        v1_pairs: the pairs of v1 in the hybrid.
    """

    form: Literal["v1", "v2", "hybrid"] = "hybrid"
    margin: float = MARGIN
    close: int | None = CLOSE
    normalise: Normalise = "softmax"
    v1_pairs: Literal["distant", "all"] = "distant"

    def __call__(
        self, features: Features, scale: Tensor, generator: torch.Generator | None = None
    ) -> tuple[Tensor, dict[str, float]]:
        cosines = similarities(features.images, features.texts)
        scores = normalised(cosines, scale, self.normalise)
        others = ~torch.eye(len(cosines), dtype=torch.bool, device=cosines.device)
        close = others if self.close is None else close_pairs(cosines, self.close)
        near, far = close, others & ~close if self.form == "hybrid" and self.v1_pairs == "distant" else others
        value, active, count = scores.new_zeros(()), scores.new_zeros(()), scores.new_zeros(())
        if self.form != "v2":
            value, active, count = hinge(residual_v1(scores), far, self.margin)
        if self.form != "v1":
            for residual in residuals_v2(scores):
                more, above, number = hinge(residual, near, self.margin)
                value, active, count = value + more, active + above, count + number
        return value, {"active_fraction": float(active / count.clamp(min=1))}


def normalised(cosines: Tensor, scale: Tensor, how: Normalise) -> Tensor:
    """S: the softmax over each image's texts of the logits, or the cosines."""
    return (at_least_float32(scale) * cosines).softmax(1) if how == "softmax" else cosines


def residual_v1(scores: Tensor) -> Tensor:
    """S_ij − S_ji for all i, j; antisymmetric, shape (n, n)."""
    return scores - scores.T


def residuals_v2(scores: Tensor) -> tuple[Tensor, Tensor]:
    """Residuals of v2's two equations for all i, j, each antisymmetric, shape (n, n).

    change of the text:   (S_ii − S_ij) − (S_jj − S_ji) = (S_ii − S_jj) − (S_ij − S_ji)
    change of the image:  (S_ii − S_ji) − (S_jj − S_ij) = (S_ii − S_jj) + (S_ij − S_ji)
    """
    own, crossed = scores.diagonal(), residual_v1(scores)
    between = own[:, None] - own[None, :]
    return between - crossed, between + crossed


def close_pairs(cosines: Tensor, close: int) -> Tensor:
    """Symmetric mask (n, n) of the close pairs, false on the diagonal."""
    with torch.no_grad():
        if close < 1:
            raise WrongUse(f"close={close}: each image needs 1 close text or more")
        others = cosines.detach().clone().fill_diagonal_(-torch.inf)
        number = min(close, len(cosines) - 1)
        texts, images = (chosen(rows.topk(number, dim=1).indices, len(cosines)) for rows in (others, others.T))
        either = texts | images
        return either | either.T


def hinge(residual: Tensor, pairs: Tensor, margin: float) -> tuple[Tensor, Tensor, Tensor]:
    """Mean of [residual² − margin]₊ over pairs; zero where there are none.

    Where residuals of (i, j) and (j, i) differ in sign only, the mean over both is the mean over pairs {i, j}.

    Args:
        residual: of any shape.
        pairs: mask of the same shape.
        margin: α.

    Returns:
        The mean, the number of residuals above the margin, and the number of residuals.
    """
    above = residual.square() - margin
    count = pairs.sum()
    active = pairs & (above > 0)
    return (above * active).sum() / count.clamp(min=1), active.sum(), count
