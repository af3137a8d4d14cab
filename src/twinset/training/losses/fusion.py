"""Losses of fusion encoders, whose matching head scores one image with one text at a time (EqBen C; METER, FIBER).

All n² pairs of a batch would take n² passes. Instead each pair i has m negatives j, and the head scores

    own s_ii,   changed text s_ij = (image i, text j),   changed image s_ji = (image j, text i),   both s_jj

that is 1 + 3m passes; without EqSim 1 + m. Scores are log-odds. A head with two classes has them as logit 1 − logit 0:
its softmax is their sigmoid, and its cross-entropy is the binary one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import torch
from torch import Tensor
from torch.nn import functional

from twinset.training.losses.eqsim import Hinge, added, hinge, mean_hinge
from twinset.training.losses.features import at_least_float32
from twinset.training.losses.mining import Score
from twinset.training.losses.names import MARGIN, MARGIN_V1, V1, V2


@dataclass(frozen=True, slots=True)
class PairScores:
    """Log-odds that image and text match, of n pairs with m negatives each.

    Attributes:
        own: image i with text i, shape (n,).
        changed_text: image i with text j, shape (n, m).
        changed_image: image j with text i, shape (n, m).
        both: image j with text j, shape (n, m).
    """

    own: Tensor
    changed_text: Tensor
    changed_image: Tensor
    both: Tensor


TEMPERATURE = 0.07  # of BLIP's and FIBER's contrastive losses at their start
CHANGES = ("changed_text", "changed_image", "both")


def score_pairs(score: Score, rows: Tensor, negatives: Tensor, changes: Sequence[str] = CHANGES) -> PairScores:
    """Scores of a batch from one call of the head, for all changes with n · (1 + 3m) pairs.

    Args:
        score: the head, of places of images and texts; text i describes image i.
        rows: places of the batch's pairs, int64, shape (n,).
        negatives: places of their negatives, int64, shape (n, m).
        changes: those of `CHANGES` that a loss reads; the others get the shape (n, 0).
    """
    own = rows[:, None].expand_as(negatives)
    pairs = {"changed_text": (own, negatives), "changed_image": (negatives, own), "both": (negatives, negatives)}
    images, texts = (torch.cat([rows, *(pairs[name][side].flatten() for name in changes)]) for side in (0, 1))
    scores = at_least_float32(score(images, texts))
    found = dict.fromkeys(CHANGES, scores.new_empty(len(rows), 0))
    found |= zip(changes, scores[len(rows) :].view(len(changes), *negatives.shape), strict=True)
    return PairScores(scores[: len(rows)], **found)


def rank_texts(scores: PairScores) -> tuple[Tensor, dict[str, float]]:
    """METER's retrieval loss: cross-entropy of the own text among 1 + m texts of an image.

    mean_i −log(exp(s_ii) / (exp(s_ii) + Σ_j exp(s_ij)))
    """
    rows = torch.cat([scores.own[:, None], scores.changed_text], 1)
    answers = torch.zeros(len(rows), dtype=torch.int64, device=rows.device)
    return functional.cross_entropy(rows, answers), {"text_accuracy": float((rows.argmax(1) == 0).float().mean())}


def match_hard_negatives(scores: PairScores) -> tuple[Tensor, dict[str, float]]:
    """FIBER's matching loss, EqBen's HardNeg: own pairs match, pairs with a changed text or image do not.

    The mean over n · (1 + 2m) pairs of the binary cross-entropy: log(1 + exp(−s)) where they match, otherwise
    log(1 + exp(s)). As released m = 1, and pairs with both changed are left out, though they match too.
    """
    wrong = torch.cat([scores.changed_text.flatten(), scores.changed_image.flatten()])
    odds = torch.cat([scores.own, wrong])
    labels = torch.cat([torch.ones_like(scores.own), torch.zeros_like(wrong)])
    right = ((odds > 0) == labels.bool()).float().mean()
    return functional.binary_cross_entropy_with_logits(odds, labels), {"match_accuracy": float(right)}


def contrast_negatives(
    images: Tensor, texts: Tensor, rows: Tensor, negatives: Tensor
) -> tuple[Tensor, dict[str, float]]:
    """The contrastive loss of the same pairs: own text among 1 + m texts, own image among 1 + m images.

    ½ · mean_i −log(exp(c_ii / τ) / (exp(c_ii / τ) + Σ_j exp(c_ij / τ))), with c_ij of image i and text j, plus the same
    with c_ji; τ is `TEMPERATURE`. What matches pair i too is none of its negatives.

    Args:
        images, texts: features with norm 1, shape (k, d). rows, negatives: places there, shapes (n,) and (n, m).
    """
    images, texts = at_least_float32(images), at_least_float32(texts)
    own = (images[rows] * texts[rows]).sum(-1, keepdim=True)
    both = ((images, texts), (texts, images))
    others = [torch.einsum("nd,nmd->nm", one[rows], other[negatives]) for one, other in both]
    sides = [torch.cat([own, wrong], 1) / TEMPERATURE for wrong in others]
    answers = torch.zeros(len(rows), dtype=torch.int64, device=own.device)
    loss = torch.stack([functional.cross_entropy(side, answers) for side in sides]).mean()
    right = torch.stack([(side.argmax(1) == 0).float().mean() for side in sides]).tolist()
    return loss, {"contrast": float(loss.detach()), "text_accuracy": right[0], "image_accuracy": right[1]}


class FusionLoss(Protocol):
    """A regulariser of the scores of a matching head."""

    def __call__(self, scores: PairScores, close: Tensor) -> tuple[Tensor, dict[str, float]]:
        """The regulariser of a batch, and what is logged beside it.

        Args:
            close: which negatives are semantically close, bool, shape (n, m).
        """
        ...


def residuals_of_changes(own: Tensor, text: Tensor, image: Tensor, both: Tensor) -> tuple[Tensor, Tensor]:
    """v2 of changes: (S_ii − S_ij) − (S_jj − S_ji) of the text, (S_ii − S_ji) − (S_jj − S_ij) of the image."""
    return (own - text) - (both - image), (own - image) - (both - text)


@dataclass(frozen=True, slots=True)
class FusionEqSim:
    """EqSim on sampled negatives, with S = sigmoid(s): [v1 − α₁]₊ and both sides of [v2 − α]₊, each averaged over its
    negatives, as in `training.losses.eqsim`.

    Attributes:
        v1, v2: the negatives that each is for; None: it is left out.
        margin, margin_v1: α and α₁.
        normalise: ``logits``: S = s.
    """

    v1: V1 | None = "all"
    v2: V2 | None = "close"
    margin: float = MARGIN
    margin_v1: float = MARGIN_V1
    normalise: Literal["sigmoid", "logits"] = "sigmoid"

    def __call__(self, scores: PairScores, close: Tensor) -> tuple[Tensor, dict[str, float]]:
        parts = (scores.own[:, None], scores.changed_text, scores.changed_image, scores.both)
        own, text, image, both = (part.sigmoid() for part in parts) if self.normalise == "sigmoid" else parts
        every, terms = torch.ones_like(close), dict[str, list[Hinge]]()
        if self.v1 is not None:
            terms["v1"] = [hinge(text - image, ~close if self.v1 == "distant" else every, self.margin_v1)]
        if self.v2 is not None:
            near = close if self.v2 == "close" else every
            terms["v2"] = [hinge(one, near, self.margin) for one in residuals_of_changes(own, text, image, both)]
        return added(terms)


@dataclass(frozen=True, slots=True)
class FusionEqSimReleased:
    """FIBER's ``pairloss='hard_itm'``: v2 alone, on all negatives, α subtracted from the mean of either side. No code
    of METER's EqSim was released.
    """

    margin: float = MARGIN

    def __call__(self, scores: PairScores, close: Tensor) -> tuple[Tensor, dict[str, float]]:
        parts = (scores.own[:, None], scores.changed_text, scores.changed_image, scores.both)
        changes = residuals_of_changes(*(part.sigmoid() for part in parts))
        return added({"v2": [mean_hinge(change.square().mean(), self.margin) for change in changes]})
