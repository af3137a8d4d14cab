"""Detectors of natural and synthetic captions and images: what they alone score (BiVLC, Table 4, Appendix E), files.

Each is one linear layer with a sigmoid on the projected embeddings of a frozen dual encoder, not normalised.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from twinset.contracts.errors import WrongUse
from twinset.models.encoders.checkpoints import read_weights

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


FACTS, WEIGHTS = "detectors.json", "best.safetensors"
HALVES = ("text", "image")


@dataclass(frozen=True)
class Detectors:
    """Detectors of one encoder.

    image: None where they were trained on captions alone. facts: ``model`` and ``encoder``, the name and the digest of
    the encoder whose features they read, and ``data``.
    """

    text: Detector
    image: Detector | None
    facts: Mapping[str, Any]


class _Facts(BaseModel):
    """What `FACTS` holds."""

    model: str
    encoder: str
    data: list[str] = Field(min_length=1)


def read_detectors(folder: Path) -> Detectors:
    """The detectors that ``twinset train detectors`` wrote. Raises `WrongUse`: there are none, or a file is damaged."""
    again = "train them again with `twinset train detectors`"
    try:
        facts = _Facts.model_validate_json((folder / FACTS).read_bytes()).model_dump()
    except (OSError, ValueError) as error:
        raise WrongUse(f"{folder / FACTS}: absent or damaged ({error}); {again}") from error
    weights = {name: value.float().numpy() for name, value in read_weights(folder / WEIGHTS).items()}
    shapes = {name: value.shape for name, value in weights.items()}
    halves = HALVES if "image.weight" in weights else HALVES[:1]
    width = weights["text.weight"].size if "text.weight" in weights else 0
    layer = {"weight": (1, width), "bias": (1,)}
    if shapes != {f"{half}.{name}": shape for half in halves for name, shape in layer.items()}:
        raise WrongUse(f"{folder / WEIGHTS}: not detectors, which are layers with one output, but {shapes}; {again}")
    text, *image = (Detector(weights[f"{half}.weight"][0], float(weights[f"{half}.bias"][0])) for half in halves)
    return Detectors(text, image[0] if image else None, facts)
