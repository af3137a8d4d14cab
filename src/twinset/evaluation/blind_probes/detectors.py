"""Detectors of natural and synthetic captions and images: what they alone score (BiVLC, Table 4, Appendix E), files.

As in BiVLC's released code: one linear layer on the projected embeddings of a frozen dual encoder, not normalised, with
a sigmoid; binary cross-entropy; Adam with a learning rate of 1e-3 (the paper says 1e-6); batches of 400 pairs, both
sides of each; ten epochs for captions, one for images; the epoch of the best validation accuracy, the first of equals.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from twinset.contracts.canonical import sha256_of_file
from twinset.contracts.errors import WrongUse
from twinset.models.encoders.checkpoints import read_weights
from twinset.models.loading import saving
from twinset.shards.storage.whole_file import whole_file, write_text

TEXT_EPOCHS, IMAGE_EPOCHS = 10, 1
RATE, BATCH = 1e-3, 400

Floats32 = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Detector:
    """weight: (d,), bias: of the layer; it gives the probability that something is synthetic."""

    weight: Floats32
    bias: float

    def __call__(self, features: Floats32) -> NDArray[np.float64]:
        """Probabilities (0-1) that features (..., d) are those of something synthetic."""
        logits = features.astype(np.float64) @ self.weight.astype(np.float64) + self.bias
        return np.asarray(0.5 * (1 + np.tanh(logits / 2)))  # the sigmoid, without overflow


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


def told_right(chances: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether each half is told right, (n, 2). chances: (n, 2), natural first; exactly 0.5 counts as natural."""
    return np.asarray((chances > 0.5) == [False, True])


def detection_accuracy(chances: NDArray[np.float64]) -> float:
    """Share (0-1) of all halves that are told right; as `told_right`."""
    return float(np.mean(told_right(chances)))


def detector_outcomes(texts: NDArray[np.float64], images: NDArray[np.float64]) -> dict[str, NDArray[np.bool_]]:
    """What two detectors get right of BiVLC without comparing any image with any caption.

    For an image the image detector says whether it is synthetic; if that is right, the caption that is more likely of
    this kind is chosen. For a caption the other way round.

    texts, images: (n, 2), probabilities of being synthetic, natural first. Returns (n,) each, by the names of BiVLC's
    released outcomes, and ``i2t``, ``t2i``, ``group``.
    """
    (natural_image, synthetic_image), (natural_text, synthetic_text) = told_right(images).T, told_right(texts).T
    texts_apart, images_apart = texts[:, 0] < texts[:, 1], images[:, 0] < images[:, 1]
    outcomes = {
        "text_score_i0": natural_image & texts_apart,
        "text_score_i1": synthetic_image & texts_apart,
        "image_score_c0": natural_text & images_apart,
        "image_score_c1": synthetic_text & images_apart,
    }
    outcomes["i2t"] = outcomes["text_score_i0"] & outcomes["text_score_i1"]
    outcomes["t2i"] = outcomes["image_score_c0"] & outcomes["image_score_c1"]
    outcomes["group"] = outcomes["i2t"] & outcomes["t2i"]
    return outcomes


FACTS = "detectors.json"
HALVES = ("text", "image")
_AGAIN = "write it again with `twinset train detectors`"


@dataclass(frozen=True)
class Detectors:
    """Detectors of one encoder.

    image: None where they were trained on captions alone. facts: ``model`` and ``encoder``, the name and the digest of
    the encoder whose features they read, ``data``, and how they were trained and tested.
    """

    text: Detector
    image: Detector | None
    facts: Mapping[str, Any]


class _Facts(BaseModel):
    """What is read of `FACTS`. sha256: of files of weights, by name."""

    model: str
    encoder: str
    data: list[str] = Field(min_length=1)
    sha256: dict[str, str]


def write_detectors(found: Detectors, out: Path) -> dict[str, str]:
    """Write ``HALF_detector.safetensors``, and `FACTS` last; returns the sha256 of each file of weights, by name."""
    from safetensors.numpy import save_file

    written = dict[str, str]()
    for half, detector in zip(HALVES, (found.text, found.image), strict=True):
        if detector is None:
            continue
        path = out / f"{half}_detector.safetensors"
        with whole_file(path) as temporary, saving(path):
            save_file({"weight": detector.weight[None], "bias": np.array([detector.bias], np.float32)}, temporary)
        written[path.name] = sha256_of_file(path)[0]
    write_text(out / FACTS, json.dumps({**found.facts, "sha256": written}, indent=1, sort_keys=True) + "\n")
    return written


def read_detectors(folder: Path) -> Detectors:
    """The detectors that `write_detectors` wrote. Raises `WrongUse`: there are none, or a file is damaged."""
    path = folder / FACTS
    try:
        facts = json.loads(path.read_bytes())
        written = _Facts.model_validate(facts).sha256
    except (OSError, ValueError, RecursionError) as error:
        raise WrongUse(f"{path}: absent or damaged ({error}); {_AGAIN}") from error
    text, image = (folder / f"{half}_detector.safetensors" for half in HALVES)
    return Detectors(_read(text, written), _read(image, written) if image.name in written else None, facts)


def _read(path: Path, written: Mapping[str, str]) -> Detector:
    if not path.is_file() or sha256_of_file(path)[0] != written.get(path.name):
        raise WrongUse(f"{path}: absent, or not what {FACTS} names; {_AGAIN}")
    weights = {name: value.float().numpy() for name, value in read_weights(path).items()}
    shapes = {name: value.shape for name, value in weights.items()}
    if shapes != {"weight": (1, *shapes.get("weight", ())[1:2]), "bias": (1,)}:
        raise WrongUse(f"{path}: not a detector, which is a layer with one output, but {shapes}; {_AGAIN}")
    return Detector(weights["weight"][0], float(weights["bias"][0]))
