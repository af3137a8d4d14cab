"""Contrastive objectives: InfoNCE, also with negative texts or negative pairs; and their sum with a regulariser.

All use the logits L = scale · cosine and the mean of two cross-entropies, image → text and text → image. They differ in
which rows and columns L has. With CE(row, i) = −log(exp(row_i) / Σ_j exp(row_j)):

    loss = ½ · mean_i CE(L[i, :], i) + ½ · mean_i CE(L[:, i], i)
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from twinset.training.losses.features import Features, Loss, at_least_float32, chosen, similarities
from twinset.training.losses.names import OBJECTIVES, REGULARISERS


class InfoNCE:
    """n images against n texts (CLIP). Negatives of a batch, if any, are ignored."""

    def __call__(
        self, features: Features, scale: Tensor, generator: torch.Generator | None = None
    ) -> tuple[Tensor, dict[str, float]]:
        logits = at_least_float32(scale) * similarities(features.images, features.texts)  # (n, n)
        return contrast(logits, logits.T)

    def matched(self, features: Features) -> Features:
        """The matched pairs that this objective compares, for a regulariser to see the same."""
        return Features(features.images, features.texts)


class NegativeTexts(InfoNCE):
    """n images against 2n texts; n texts against n images. There is no loss on the rows of negative texts.

    Image row i of the logits (n, 2n) holds the n captions, then the n negative captions; its target is column i. Text
    row i holds the n images. Released code of BiVLC (CLIP_TROHN-Text, Appendix E: 200 images × 400 captions) and of
    NegCLIP (512 × 1024) compute this same formula; half of NegCLIP's images are mined neighbours of the other half,
    which is not done here.
    """

    def __call__(
        self, features: Features, scale: Tensor, generator: torch.Generator | None = None
    ) -> tuple[Tensor, dict[str, float]]:
        texts = torch.cat([features.texts, features.require("negative_texts")])
        logits = at_least_float32(scale) * similarities(features.images, texts)  # (n, 2n)
        return contrast(logits, logits[:, : len(features)].T)


class NegativePairs(InfoNCE):
    """2n images against 2n texts: negative images and texts are pairs of their own (CLIP_TROHN-Img, BiVLC 5.2 and E).

    200 positive and 200 negative pairs are 400 × 400 logits: image i has its negative text, and text i its negative
    image, among its 399 wrong answers.
    """

    def __call__(
        self, features: Features, scale: Tensor, generator: torch.Generator | None = None
    ) -> tuple[Tensor, dict[str, float]]:
        return super().__call__(features.all_pairs(), scale)

    def matched(self, features: Features) -> Features:
        """Positive and negative pairs."""
        return features.all_pairs()


def contrast(image_rows: Tensor, text_rows: Tensor) -> tuple[Tensor, dict[str, float]]:
    """Mean of both cross-entropies, where the answer of row i is column i.

    Args:
        image_rows: logits of images against texts, shape (n, at least n).
        text_rows: logits of texts against images, shape (n, at least n).

    Returns:
        The loss, and in-batch accuracies: shares of rows whose highest logit is the answer; their mean for guesses.
    """
    answers = torch.arange(len(image_rows), device=image_rows.device)
    (of_images, images_right), (of_texts, texts_right) = (chosen(rows, answers) for rows in (image_rows, text_rows))
    chance = (1 / image_rows.shape[1] + 1 / text_rows.shape[1]) / 2
    return (of_images + of_texts) / 2, {"image_accuracy": images_right, "text_accuracy": texts_right, "chance": chance}


@dataclass(frozen=True, slots=True)
class Total:
    """objective + weight · regulariser, where the regulariser sees the matched pairs that the objective compares.

    With negative-pairs these are 2n pairs, twins among them; otherwise n. A weight of 0 is the control: the regulariser
    is computed, sampled and logged, and the gradient is the objective's.
    """

    objective: InfoNCE
    regulariser: Loss | None = None
    weight: float = 0.0

    def __call__(
        self, features: Features, scale: Tensor, generator: torch.Generator | None = None
    ) -> tuple[Tensor, dict[str, float]]:
        loss, logged = self.objective(features, scale)
        if self.regulariser is None:
            return loss, logged
        extra, more = self.regulariser(self.objective.matched(features), scale, generator)
        logged |= {"objective": float(loss.detach()), "regulariser": float(extra.detach()), **more}
        return loss + self.weight * extra, logged


def open_loss(objective: str, regulariser: str | None = None, weight: float = 0.0, **options: Any) -> Total:
    """An objective with, or without, a regulariser of some weight and options; raises `UnknownKind`."""
    extra = None if regulariser is None else REGULARISERS.find(regulariser).open(**options)
    return Total(OBJECTIVES.find(objective).open(), extra, weight)
