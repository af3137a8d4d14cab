"""EqSim as the paper writes it (EqBen, sections 3, 5.4 and C), and as its released code computes it (`EqSimReleased`).

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
from twinset.training.losses.sampling import SAMPLES, chosen, sample_pairs

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


@dataclass(frozen=True, slots=True)
class EqSimReleased:
    """EqSim as its released code computes it (repository Wangt-CN/EqBen, EqSim/FIBER, ``pairloss='hard_easy_itc'``).

    For each i, k = 4 images and k = 4 texts are sampled by similarity; P holds these n · 2k pairs (i, j), each as often
    as it was sampled. M is 0 at (i, j) and (j, i) for the pairs of P, otherwise 1.

        v2 = [mean_P ((S_ii − S_ij) − (S_jj − S_ji))² − α]₊ + [mean_P ((S_ii − S_ji) − (S_jj − S_ij))² − α]₊,   α = 0.1
        v1 = [Σ_ij M_ij (S_ij − S_ji)² / n² − α₁]₊,   α₁ = 0

    Differences from the paper's form:

    * The margin is subtracted from a mean, not from each pair's square: below α the whole gradient of v2 is 0.
    * Close pairs are sampled, not the top k: v2 and the hybrid need a generator.
    * v1 has a margin of its own, 0, and its mean counts all n² cells, also the diagonal and the masked ones.

    Differences from the released code: there each of 8 GPUs samples for its own 8 rows of a gathered batch of 64, has
    hinges of its own, and gradients are averaged; here each hinge is on the mean over all rows. The released weight,
    0.5 on v1 and on each side of v2, is the regulariser's weight here.

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
