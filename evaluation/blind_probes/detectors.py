"""Detectors of natural and synthetic captions and images, and what they alone score (BiVLC, Table 4 and Appendix E).

As in BiVLC's released code: one linear layer on the projected embeddings of a frozen dual encoder, not normalised, with
a sigmoid; binary cross-entropy; Adam with a learning rate of 1e-3 (the paper says 1e-6); batches of 400 pairs, both
sides of each; ten epochs for captions, one for images; the epoch of the best validation accuracy, the first of equals.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

TEXT_EPOCHS, IMAGE_EPOCHS = 10, 1
RATE, BATCH = 1e-3, 400
FOLDS = 5

Floats32 = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Detector:
    """weight: (d,), bias: of the layer; it gives the probability that something is synthetic."""

    weight: Floats32
    bias: float

    def __call__(self, features: Floats32) -> NDArray[np.float64]:
        """Probabilities (0-1) that features (..., d) are those of something synthetic."""
        logits = features.astype(np.float64) @ self.weight.astype(np.float64) + self.bias
        found: NDArray[np.float64] = 0.5 * (1 + np.tanh(logits / 2))  # the sigmoid, without overflow
        return found


def train_detector(
    train: Floats32,
    validation: Floats32,
    epochs: int,
    seed: int,
    rate: float = RATE,
    on_epoch: Callable[[float, float], None] | None = None,
) -> Detector:
    """Train a detector.

    Args:
        train, validation: (n, 2, d), features of pairs: natural, synthetic; at least one pair each.
        epochs: `TEXT_EPOCHS` or `IMAGE_EPOCHS` as released.
        seed: of the first weights and of the order of pairs.
        rate: the learning rate.
        on_epoch: called after each epoch with its mean loss and the validation accuracy (0-1).
    """
    import torch

    random = torch.Generator().manual_seed(seed)
    channels = train.shape[-1]
    layer = torch.nn.Linear(channels, 1)
    bound = channels**-0.5  # what `Linear` begins with, here from the seed
    with torch.no_grad():
        for part in (layer.weight, layer.bias):
            part.copy_((torch.rand(part.shape, generator=random) * 2 - 1) * bound)
    optimizer = torch.optim.Adam(layer.parameters(), lr=rate)
    features = torch.from_numpy(np.ascontiguousarray(train, np.float32))
    best, kept = -1.0, Detector(np.zeros(channels, np.float32), 0.0)
    for _ in range(epochs):
        order, losses = torch.randperm(len(features), generator=random), list[float]()
        for start in range(0, len(order), BATCH):
            chosen = order[start : start + BATCH]
            batch = features[chosen].flatten(0, 1)
            labels = torch.tensor([0.0, 1.0]).repeat(len(chosen))
            loss = torch.nn.functional.binary_cross_entropy_with_logits(layer(batch).squeeze(1), labels)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            losses.append(loss.item() * len(chosen))
        found = Detector(layer.weight.detach().numpy()[0].copy(), float(layer.bias.detach()[0]))
        accuracy = detection_accuracy(found(validation))
        if on_epoch is not None:
            on_epoch(sum(losses) / len(order), accuracy)
        if accuracy > best:
            best, kept = accuracy, found
    return kept


def cross_validated_detector(
    features: Floats32, groups: NDArray[np.int32], epochs: int, seed: int
) -> NDArray[np.float64] | None:
    """Probabilities of detectors that have not seen the group of a pair, for a benchmark that has no training part.

    The authors train on TROHN-Img. Here a fold is tested with a detector that was trained on three others and
    validated on the next one.

    Args:
        features: (n, 2, d), natural first. groups: (n,).
        epochs, seed: as `train_detector`.

    Returns:
        (n, 2); None with fewer groups than folds.
    """
    names, codes = np.unique(groups, return_inverse=True)
    if len(names) < FOLDS:
        return None
    fold = (np.random.default_rng(seed).permutation(len(names)) % FOLDS)[codes]
    found = np.zeros(features.shape[:2])
    for number in range(FOLDS):
        after = (number + 1) % FOLDS
        train = features[(fold != number) & (fold != after)]
        found[fold == number] = train_detector(train, features[fold == after], epochs, seed)(features[fold == number])
    return found


def detection_accuracy(chances: NDArray[np.float64]) -> float:
    """Share (0-1) of all halves that are told right. chances: (n, 2), natural first; exactly 0.5 counts as natural."""
    return float(np.mean((chances > 0.5) == np.array([False, True])))


def detector_outcomes(texts: NDArray[np.float64], images: NDArray[np.float64]) -> dict[str, NDArray[np.bool_]]:
    """What two detectors get right of BiVLC without comparing any image with any caption.

    For an image the image detector says whether it is synthetic; if that is right, the caption that is more likely of
    this kind is chosen. For a caption the other way round.

    Args:
        texts, images: (n, 2), probabilities of being synthetic, natural first.

    Returns:
        (n,) each, by the names of BiVLC's released outcomes, and ``i2t``, ``t2i``, ``group``.
    """
    (natural_image, synthetic_image), (natural_text, synthetic_text) = (
        ((chances[:, 0] <= 0.5), (chances[:, 1] > 0.5)) for chances in (images, texts)
    )
    texts_apart, images_apart = texts[:, 0] < texts[:, 1], images[:, 0] < images[:, 1]
    found = {
        "text_score_i0": natural_image & texts_apart,
        "text_score_i1": synthetic_image & texts_apart,
        "image_score_c0": natural_text & images_apart,
        "image_score_c1": synthetic_text & images_apart,
    }
    found["i2t"] = found["text_score_i0"] & found["text_score_i1"]
    found["t2i"] = found["image_score_c0"] & found["image_score_c1"]
    found["group"] = found["i2t"] & found["t2i"]
    return found
