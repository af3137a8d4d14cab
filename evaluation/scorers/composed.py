"""The baselines of GeneCIS (6.1) for queries of an image with a text: Image-only, Text-only, Image+Text, Combiner."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evaluation.scorers.checkpoints import COMBINER_PARTS, Weights, fit, read_weights
from evaluation.scorers.contract import Composer, DualEncoder, Floats, Running, unit
from manifests.canonical import digest
from manifests.errors import WrongUse
from shards.models.files import sha256_once

if TYPE_CHECKING:
    import torch


class Averaged(Composer):
    """A weighted mean of the features of image and text, neither normalised before, as GeneCIS's code has it.

    image_share: 1 is Image-only, 0 Text-only, 0.5 Image+Text.
    """

    def __init__(self, name: str, encoder: DualEncoder, image_share: float) -> None:
        self.name, self.encoder, self.image_share = name, encoder, image_share

    def digest(self) -> str:
        """As `Scorer.digest`."""
        return digest(["averaged", self.image_share, self.encoder.digest()])

    def compose(self, images: Floats, texts: Floats) -> Floats:
        """As `Composer.compose`."""
        share = np.float32(self.image_share)
        # q = (λ f(I) + (1 − λ) g(T)) / ‖…‖
        return unit((share * images + (1 - share) * texts).astype(np.float32))


class Combiner(Composer):
    """The network of Baldrati et al. (2022) with trained weights; GeneCIS trains it on mined triplets."""

    def __init__(self, name: str, encoder: DualEncoder, path: Path) -> None:
        self.name, self.encoder = name, encoder
        self._weights = sha256_once(path)
        self._network = combiner_network(path)

    def digest(self) -> str:
        """As `Scorer.digest`."""
        return digest(["combiner", self._weights, self.encoder.digest()])

    def compose(self, images: Floats, texts: Floats) -> Floats:
        """As `Composer.compose`."""
        import torch

        width = self._network.output_layer.out_features
        if images.shape[1] != width:
            raise WrongUse(
                f"{self.name}: the Combiner reads features of {width} numbers, and {self.encoder.name} gives "
                f"{images.shape[1]}; name the CLIP that it was trained with"
            )
        with torch.inference_mode():
            combined = self._network(torch.from_numpy(images.copy()), torch.from_numpy(texts.copy()))
        return unit(combined.numpy())


def combiner_network(path: Path) -> Any:
    """A Combiner with the weights of a file, whose shapes say its sizes; on the CPU, ready for inference."""
    import torch
    from torch import nn
    from torch.nn import functional

    class Network(nn.Module):
        """Names of layers are those of the published checkpoints."""

        def __init__(self, features: int, projection: int, hidden: int) -> None:
            super().__init__()
            self.text_projection_layer = nn.Linear(features, projection)
            self.image_projection_layer = nn.Linear(features, projection)
            self.combiner_layer = nn.Linear(2 * projection, hidden)
            self.output_layer = nn.Linear(hidden, features)
            gate = [nn.Linear(2 * projection, hidden), nn.ReLU(), nn.Dropout(0.5), nn.Linear(hidden, 1), nn.Sigmoid()]
            self.dynamic_scalar = nn.Sequential(*gate)

        def forward(self, image: torch.Tensor, text: torch.Tensor) -> torch.Tensor:
            """Combined features, not normalised; dropout is none at inference."""
            # z = [relu(W_t g(T)); relu(W_i f(I))]
            both = torch.cat(
                (
                    functional.relu(self.text_projection_layer(text)),
                    functional.relu(self.image_projection_layer(image)),
                ),
                dim=-1,
            )
            share: torch.Tensor = self.dynamic_scalar(both)  # λ = σ(MLP(z)) weights the text
            mixed: torch.Tensor = self.output_layer(functional.relu(self.combiner_layer(both)))
            # q = MLP'(z) + λ g(T) + (1 − λ) f(I)
            return mixed + share * text + (1 - share) * image

    weights: Weights = read_weights(path, COMBINER_PARTS)
    for name in ("text_projection_layer.weight", "combiner_layer.weight"):
        if name not in weights or weights[name].ndim != 2:
            raise WrongUse(
                f"{path}: not a Combiner: it lacks {name} (it has {next(iter(weights))}); name the file that holds "
                f"the Combiner, alone or under {' or '.join(COMBINER_PARTS[:2])}"
            )
    projection, features = weights["text_projection_layer.weight"].shape
    network = Network(features, projection, weights["combiner_layer.weight"].shape[0])
    fit(network, weights, path, "a Combiner of these sizes")
    return network.float().eval()


def open_image_only(name: str, parts: Sequence[str], running: Running) -> Averaged:
    """``image-only:ENCODER``, where ENCODER is the spec of a dual encoder."""
    return Averaged(name, _encoder(name, parts[0], running), 1.0)


def open_text_only(name: str, parts: Sequence[str], running: Running) -> Averaged:
    """``text-only:ENCODER``."""
    return Averaged(name, _encoder(name, parts[0], running), 0.0)


def open_image_text(name: str, parts: Sequence[str], running: Running) -> Averaged:
    """``image+text:ENCODER``."""
    return Averaged(name, _encoder(name, parts[0], running), 0.5)


def open_combiner(name: str, parts: Sequence[str], running: Running) -> Combiner:
    """``combiner:FILE:ENCODER``; a file of both is also the checkpoint of the encoder."""
    if len(parts) < 2:
        raise WrongUse(f"--model {name}: write combiner:FILE:ENCODER, such as combiner:FILE:open_clip:RN50x4:FILE")
    return Combiner(name, _encoder(name, parts[1], running), Path(parts[0]).expanduser())


def _encoder(name: str, spec: str, running: Running) -> DualEncoder:
    from evaluation.scorers.kinds import open_model

    found = open_model(spec, running)
    if not isinstance(found, DualEncoder):
        raise WrongUse(f"--model {name}: {spec} is not a dual encoder; name one, such as open_clip:RN50x4:openai")
    return found
