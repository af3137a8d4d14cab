"""Fusion models of transformers with a head that says whether an image and a text match: BLIP, ViLT, FLAVA.

A score is the head's log-odds of a match, not its probability: the order of pairs is the same, and float32
probabilities of 1 would tie.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from evaluation.scorers.contract import Floats, PairScorer, Running
from evaluation.scorers.transformers_encoders import TransformersModel

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image

LENGTHS = (32, 64, 128, 256, 512)  # tokens that texts are filled up to


class FusionScorer(TransformersModel, PairScorer):
    """Pairs in passes of one shape, by the length of their texts."""

    threshold: float | None = 0.0  # log-odds of a match at probability 1/2

    def score(self, images: Sequence[Image], texts: Sequence[str]) -> Floats:
        """As `PairScorer.score`."""
        import torch

        scores = np.empty(len(texts), np.float32)
        lengths = self._lengths(texts)
        for length in sorted(set(lengths)):
            places = [place for place, one in enumerate(lengths) if one == length]
            # Filled up to the whole batch, so that a pair's bits do not depend on the other pairs.
            filled = places + [places[-1]] * (len(texts) - len(places))
            with torch.inference_mode():
                odds = self._log_odds(
                    [images[place] for place in filled], self.tokens([texts[p] for p in filled], length)
                )
            scores[places] = odds.float().cpu().numpy()[: len(places)]
        return scores

    def _lengths(self, texts: Sequence[str]) -> list[int]:
        most = self.most()
        buckets = [length for length in LENGTHS if length < most] + [most]
        counted = self.tokenizer(list(texts), truncation=True, max_length=most, padding=False)["input_ids"]
        return [next(length for length in buckets if len(ids) <= length) for ids in counted]

    @abstractmethod
    def _log_odds(self, images: Sequence[Image], tokens: dict[str, Any]) -> torch.Tensor:
        """Log-odds of a match of each image and text, shape (n,)."""


class Blip(FusionScorer):
    """BLIP fine-tuned for retrieval, with its ITM head: class 1 is a match."""

    types = ("blip",)
    network = "BlipForImageTextRetrieval"

    def _log_odds(self, images: Sequence[Image], tokens: dict[str, Any]) -> torch.Tensor:
        import torch

        seen = self.model.vision_model(**self.pixels(images)).last_hidden_state
        read = self.model.text_encoder(
            input_ids=tokens["input_ids"],
            attention_mask=tokens["attention_mask"],
            encoder_hidden_states=seen,
            # BlipForImageTextRetrieval.forward makes it on the CPU, wherever the model is.
            encoder_attention_mask=torch.ones(seen.shape[:2], dtype=torch.long, device=seen.device),
        )
        return _match(self.model.itm_head(read.last_hidden_state[:, 0]))


class Flava(FusionScorer):
    """FLAVA as pretrained, with its ITM head on the unmasked image and text: class 1 is a match."""

    types = ("flava",)
    network = "FlavaForPreTraining"

    def _log_odds(self, images: Sequence[Image], tokens: dict[str, Any]) -> torch.Tensor:
        found = self.model.flava(
            input_ids=tokens["input_ids"],
            attention_mask=tokens["attention_mask"],
            pixel_values=self.pixels(images)["pixel_values"],
        )
        return _match(self.model.itm_head(found.multimodal_embeddings))


class Vilt(FusionScorer):
    """ViLT fine-tuned for retrieval: its ranking head gives the log-odds at once.

    Its images keep their shape, and are filled up to the largest of a pass: so a pass has one pair.
    """

    types = ("vilt",)
    network = "ViltForImageAndTextRetrieval"
    threshold = None  # trained to rank: its 0 means nothing

    def most(self) -> int:
        """As `TransformersModel.most`."""
        return int(self.model.config.max_position_embeddings)

    def score(self, images: Sequence[Image], texts: Sequence[str]) -> Floats:
        """As `PairScorer.score`."""
        one_by_one = super().score
        return np.concatenate([one_by_one([image], [text]) for image, text in zip(images, texts, strict=True)])

    def _log_odds(self, images: Sequence[Image], tokens: dict[str, Any]) -> torch.Tensor:
        names = ("input_ids", "attention_mask", "token_type_ids")
        read = {key: tokens[key] for key in names if key in tokens}
        odds: torch.Tensor = self.model(**read, **self.pixels(images)).logits[:, 0]
        return odds


def _match(logits: torch.Tensor) -> torch.Tensor:
    # log p(match) − log p(no match) = logit 1 − logit 0, with the softmax's denominator gone
    odds: torch.Tensor = logits[:, 1] - logits[:, 0]
    return odds


def open_blip(name: str, parts: Sequence[str], running: Running) -> Blip:
    """``blip-itm:FOLDER``."""
    return Blip(name, parts[0], running)


def open_vilt(name: str, parts: Sequence[str], running: Running) -> Vilt:
    """``vilt:FOLDER``."""
    return Vilt(name, parts[0], running)


def open_flava(name: str, parts: Sequence[str], running: Running) -> Flava:
    """``flava:FOLDER``."""
    return Flava(name, parts[0], running)
