"""Losses of fusion encoders, whose matching head scores one image with one text at a time (EqBen C; METER, FIBER).

All n² pairs of a batch would take n² passes. Instead each pair i has m negatives j, and the head scores

    own s_ii,   changed text s_ij = (image i, text j),   changed image s_ji = (image j, text i),   both s_jj

that is 1 + 3m passes; without EqSim 1 + m. Scores are log-odds. A head with two classes has them as logit 1 − logit 0:
its softmax is their sigmoid, and its cross-entropy is the binary one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from twinset.training.losses.eqsim import Equivariance, share
from twinset.training.losses.features import at_least_float32, chosen
from twinset.training.losses.mining import Score


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
    changed = dict.fromkeys(CHANGES, scores.new_empty(len(rows), 0))
    changed |= zip(changes, scores[len(rows) :].view(len(changes), *negatives.shape), strict=True)
    return PairScores(scores[: len(rows)], **changed)


def rank_texts(scores: PairScores) -> tuple[Tensor, dict[str, float]]:
    """METER's retrieval loss: cross-entropy of the own text among 1 + m texts of an image.

    mean_i −log(exp(s_ii) / (exp(s_ii) + Σ_j exp(s_ij)))
    """
    rows = torch.cat([scores.own[:, None], scores.changed_text], 1)
    answers = torch.zeros(len(rows), dtype=torch.int64, device=rows.device)
    loss, accuracy = chosen(rows, answers)
    return loss, {"text_accuracy": accuracy}


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


#: A regulariser of the scores of a matching head, and what is logged beside it; the second argument is which negatives
#: are semantically close, bool, shape (n, m).
FusionLoss = Callable[[PairScores, Tensor], tuple[Tensor, dict[str, float]]]


class FusionEqSim(Equivariance):
    """EqSim on sampled negatives, with S = sigmoid(s): v1 and both sides of v2, each averaged over its negatives, as in
    `training.losses.eqsim`. FIBER's ``pairloss='hard_itm'`` is the released form of v2 alone on all negatives. No code
    of METER's EqSim was released.
    """

    def __call__(self, scores: PairScores, close: Tensor) -> tuple[Tensor, dict[str, float]]:
        parts = (scores.own[:, None], scores.changed_text, scores.changed_image, scores.both)
        own, text, image, negative = (part.sigmoid() for part in parts)
        near = close.to(own.dtype)
        every = torch.ones_like(near)
        of_v1 = share(every - near if self.v1 == "distant" else every)
        of_v2 = share(near if self.v2 == "close" else every)
        sides = ((own - text) - (negative - image), (own - image) - (negative - text))
        return self.total(text - image, of_v1, sides, of_v2)
