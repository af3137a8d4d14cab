"""EqSim as the paper writes it (EqBen, sections 3, 5.4 and C), and as its released code computes it.

With S_ij the similarity of image i and text j, two pairs i and j obey

    v1:  S_ij = S_ji
    v2:  S_ii − S_ij = S_jj − S_ji   (a change of the text)   and   S_ii − S_ji = S_jj − S_ij   (a change of the image)

v1 is for semantically distant pairs, v2 for close ones. S is the softmax of each image's logits over the batch's texts:
"the cosine similarity [...] normalize it by a softmax function" (C), with the axis and the temperature of the released
code. Each equation gives a term; the regulariser is their sum.

The paper's form. The hinge [(left − right)² − α]₊ is averaged over the pairs {i, j}. A pair is close when text j is
among the k texts most similar to image i, or image j among the k images most similar to text i, or the same with i and
j exchanged; own pair left out, k = 8 (C). v1 has a margin of its own, α₁: the paper names one for both, but a softmax
makes (S_ij − S_ji)² of a distant pair at most 1/81, below every margin of the paper but 0, which is the released code's
for v1. Figure 4 has v1 on distant pairs, Table 6 on all (5.4, A.3).

The released form (repository Wangt-CN/EqBen, EqSim/FIBER; ``pairloss='hard_easy_itc'`` is v1 distant and v2 close). For
each i, k = 4 images and 4 texts j are sampled by similarity; P holds these n · 2k pairs (i, j), each as often as it was
sampled. The margin is subtracted from a mean, not from each pair's square: below it a term has no gradient.

    v2 close: [mean over P of (left − right)² − α]₊      v2 all: of all pairs i < j (``itc``)
    v1 distant: [Σ (S_ij − S_ji)² / n² − α₁]₊ over the (i, j) of which neither (i, j) nor (j, i) is in P; all: over all

There each of 8 GPUs samples for its own 8 rows of a gathered batch of 64 and has hinges of its own; here each hinge is
on the mean over all rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from twinset.contracts.errors import WrongUse
from twinset.training.losses.features import Features, at_least_float32, similarities
from twinset.training.losses.names import CLOSE, MARGIN, MARGIN_V1, SAMPLES, V1, V2, Form
from twinset.training.losses.sampling import sample_pairs


@dataclass(frozen=True)
class Equivariance:
    """What EqSim is on the features of a dual encoder and on the scores of a matching head.

    Attributes:
        v1, v2: the pairs that each is for; none: it is left out.
        form: as the paper writes it, or as released.
        margin, margin_v1: α of v2 and α₁ of v1, in squared similarity.
    """

    v1: V1 = "all"
    v2: V2 = "close"
    form: Form = "paper"
    margin: float = MARGIN
    margin_v1: float = MARGIN_V1

    def total(self, v1: Tensor, of_v1: Tensor, v2: Sequence[Tensor], of_v2: Tensor) -> tuple[Tensor, dict[str, float]]:
        """The sum of the terms, and the mean share of hinges above the margin by name.

        Args:
            v1, v2: left − right of each equation, of one shape. of_v1, of_v2: weights of these in the means.

        Raises:
            WrongUse: v1 and v2 are both left out.
        """
        terms = {}
        if self.v1 != "none":
            terms["active_v1"] = [hinge(v1, of_v1, self.margin_v1, self.form)]
        if self.v2 != "none":
            terms["active_v2"] = [hinge(side, of_v2, self.margin, self.form) for side in v2]
        if not terms:
            raise WrongUse("eqsim: v1 and v2 are both none; choose pairs for one of them, or leave the regulariser out")
        shares = {name: float(torch.stack([share for _, share in term]).mean()) for name, term in terms.items()}
        return torch.stack([value for term in terms.values() for value, _ in term]).sum(), shares


class EqSim(Equivariance):
    """EqSim on pairs of a batch."""

    def __call__(
        self, features: Features, scale: Tensor, generator: torch.Generator | None = None
    ) -> tuple[Tensor, dict[str, float]]:
        logits = at_least_float32(scale) * similarities(features.images, features.texts)
        scores = logits.softmax(1)
        with torch.no_grad():
            of_v1, of_v2 = (self._released if self.form == "released" else self._paper)(logits, generator)
        crossed, own = scores - scores.T, scores.diagonal()
        between = own[:, None] - own[None, :]
        text, image = between - crossed, between + crossed  # the equations of v2, put in another order
        return self.total(crossed, of_v1, (text, image), of_v2)

    def _paper(self, logits: Tensor, _generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        """Weights of all (i, j) in the means of v1 and v2, shape (n, n)."""
        close, every = close_pairs(logits), (1 - torch.eye(len(logits))).to(logits)
        return share(every - close if self.v1 == "distant" else every), share(close if self.v2 == "close" else every)

    def _released(self, logits: Tensor, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        places = torch.cat(sample_pairs(logits, SAMPLES, generator), 1)  # (n, 2k)
        times = torch.zeros_like(logits).scatter_add_(1, places, torch.ones_like(places, dtype=logits.dtype))
        far, every = (times + times.T == 0).to(logits), (1 - torch.eye(len(logits))).to(logits)
        of_v1 = far if self.v1 == "distant" else torch.ones_like(far)
        return of_v1 / logits.numel(), share(times if self.v2 == "close" else every)


def close_pairs(logits: Tensor) -> Tensor:
    """1 for each close pair, otherwise 0, symmetric, shape (n, n); 0 on the diagonal."""
    off_diagonal, number = logits.clone().fill_diagonal_(-torch.inf), min(CLOSE, len(logits) - 1)
    texts, images = (rows.topk(number, dim=1).indices for rows in (off_diagonal, off_diagonal.T))
    near = torch.zeros_like(logits).scatter_(1, texts, 1.0) + torch.zeros_like(logits).scatter_(1, images, 1.0).T
    return (near + near.T).clamp(max=1)


def share(times: Tensor) -> Tensor:
    """Weights whose sum is 1, of how often each cell counts; zeros where none does."""
    return times / times.sum().clamp(min=1)


def hinge(residual: Tensor, weights: Tensor, margin: float, form: Form) -> tuple[Tensor, Tensor]:
    """A term of EqSim, and the share of its hinges that are above the margin.

    Args:
        residual: left − right of an equation, of any shape. weights: of these in the mean, of the same shape.
        margin: α.
        form: ``paper``: the mean of hinges [residual² − α]₊; ``released``: the hinge of the mean of squares.
    """
    if form == "released":
        above = (weights * residual.square()).sum() - margin
        return above.clamp(min=0), (above.detach() > 0).to(above.dtype)
    above = residual.square() - margin
    return (weights * above.clamp(min=0)).sum(), (weights * (above.detach() > 0)).sum()
