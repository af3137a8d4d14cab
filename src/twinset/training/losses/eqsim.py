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
* v1 has a margin of its own, α₁. The paper names one for both; but with softmax-normalised scores (S_ij − S_ji)² of a
  distant pair is at most 1/81, below every margin of the paper but 0, which is the released code's for v1.

Of Table 6, "EqSim" is v1 on all pairs and v2 on close ones (5.4, A.3); Figure 4 has v1 on distant pairs only.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from twinset.contracts.errors import WrongUse
from twinset.training.losses.features import Features, at_least_float32, similarities
from twinset.training.losses.names import CLOSE, MARGIN, MARGIN_V1, SAMPLES, V1, V2
from twinset.training.losses.sampling import chosen, sample_pairs

#: The mean of a term, the number of its residuals above the margin, and the number of its residuals.
Hinge = tuple[Tensor, Tensor, Tensor]


@dataclass(frozen=True, slots=True)
class EqSim:
    """EqSim on pairs of a batch.

    Attributes:
        v1, v2: the pairs that each is for; None: it is left out.
        margin, margin_v1: α of v2 and α₁ of v1, in squared similarity.
        close: k of the close pairs.
        normalise: what S is.
    """

    v1: V1 | None = "all"
    v2: V2 | None = "close"
    margin: float = MARGIN
    margin_v1: float = MARGIN_V1
    close: int = CLOSE
    normalise: Literal["softmax", "cosine"] = "softmax"

    def __call__(
        self, features: Features, scale: Tensor, generator: torch.Generator | None = None
    ) -> tuple[Tensor, dict[str, float]]:
        cosines = similarities(features.images, features.texts)
        scores = softmax_of(cosines, scale) if self.normalise == "softmax" else cosines
        every = ~torch.eye(len(cosines), dtype=torch.bool, device=cosines.device)
        reads_close = self.v1 == "distant" or self.v2 == "close"
        close = close_pairs(cosines, self.close) if reads_close else every
        terms: dict[str, list[Hinge]] = {}
        if self.v1 is not None:
            terms["v1"] = [
                hinge(residual_v1(scores), every & ~close if self.v1 == "distant" else every, self.margin_v1)
            ]
        if self.v2 is not None:
            near = close if self.v2 == "close" else every
            terms["v2"] = [hinge(residual, near, self.margin) for residual in residuals_v2(scores)]
        return added(terms)


def softmax_of(cosines: Tensor, scale: Tensor) -> Tensor:
    """S: the softmax over each image's texts of the logits."""
    return (at_least_float32(scale) * cosines).softmax(1)


def added(terms: Mapping[str, Sequence[Hinge]]) -> tuple[Tensor, dict[str, float]]:
    """The sum of the hinges of some terms, and the active fraction: the share of residuals above the margin, of all
    and, where there are several, of each term.
    """
    sums = {
        name: torch.stack([torch.stack([above, count]) for _, above, count in some]).sum(0)
        for name, some in terms.items()
    }
    counts = torch.stack([*sums.values()])
    above, number = torch.cat([counts.sum(0, keepdim=True), counts]).T
    shares = dict(zip(("fraction", *sums), (above / number.clamp(min=1)).tolist(), strict=True))
    logged = {f"active_{name}": share for name, share in shares.items() if len(terms) > 1 or name == "fraction"}
    return torch.stack([value for some in terms.values() for value, _, _ in some]).sum(), logged


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


def hinge(residual: Tensor, pairs: Tensor, margin: float) -> Hinge:
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
    * Close pairs are sampled, not the top k: what is for close or distant pairs needs a generator.
    * The mean of v1 counts all n² cells, also the diagonal and the masked ones.

    Differences from the released code: there each of 8 GPUs samples for its own 8 rows of a gathered batch of 64, has
    hinges of its own, and gradients are averaged; here each hinge is on the mean over all rows. The released weight,
    0.5 on v1 and on each side of v2, is the regulariser's weight here.

    Attributes:
        v1: distant: as above; all: M is 1 everywhere; None: without.
        v2: close: as above; all: on all pairs i < j (``pairloss='itc'``); None: without.
        margin, margin_v1: α and α₁.
        close: k.
    """

    v1: V1 | None = "distant"
    v2: V2 | None = "close"
    margin: float = MARGIN
    margin_v1: float = MARGIN_V1
    close: int = SAMPLES

    def __call__(
        self, features: Features, scale: Tensor, generator: torch.Generator | None = None
    ) -> tuple[Tensor, dict[str, float]]:
        cosines = similarities(features.images, features.texts)
        pairs: tuple[Tensor, Tensor] | None = None
        if self.v1 == "distant" or self.v2 == "close":
            pairs = sample_pairs(at_least_float32(scale) * cosines, self.close, generator)
        return self.on(softmax_of(cosines, scale), pairs)

    def on(self, scores: Tensor, pairs: tuple[Tensor, Tensor] | None) -> tuple[Tensor, dict[str, float]]:
        """The loss of given similarities and given samples.

        Args:
            scores: S, shape (n, n).
            pairs: images and texts sampled for each row, shapes (n, k); None where no close pairs are needed.
        """
        n = len(scores)
        places = None if pairs is None else torch.cat(pairs, 1)  # (n, 2k)
        terms: dict[str, list[Hinge]] = {}
        if self.v1 is not None:
            squares = residual_v1(scores).square()
            if self.v1 == "distant":
                near = chosen(_needed(places), n)
                squares = squares * ~(near | near.T)
            terms["v1"] = [mean_hinge(squares.mean(), self.margin_v1)]
        if self.v2 is not None:
            squares = torch.stack(residuals_v2(scores)).square()
            if self.v2 == "close":
                means = squares.gather(2, _needed(places).expand(2, -1, -1)).mean((1, 2))
            else:  # all pairs i < j: half of the n · (n − 1) cells beside the diagonal, whose own residual is 0
                means = squares.sum((1, 2)) / max(n * (n - 1), 1)
            terms["v2"] = [mean_hinge(mean, self.margin) for mean in means]
        return added(terms)


def mean_hinge(mean: Tensor, margin: float) -> Hinge:
    """[mean − margin]₊ as a term of one residual."""
    above = mean - margin
    return above.clamp(min=0), (above.detach() > 0).to(torch.int64), torch.ones_like(mean, dtype=torch.int64)


def _needed(places: Tensor | None) -> Tensor:
    if places is None:
        raise WrongUse("EqSimReleased.on: this form is on sampled pairs; give them")
    return places
