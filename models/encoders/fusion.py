"""Fusion models of transformers with a head that says whether an image and a text match: BLIP, ViLT, FLAVA.

A score is the head's log-odds of a match, not its probability: the order of pairs is the same, and float32
probabilities of 1 would tie.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from twinset.models.encoders.contract import Floats, Matcher, ModelKind
from twinset.models.encoders.transformers_encoders import TransformersModel

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image

    Tensors = dict[str, torch.Tensor]

LENGTHS = (32, 64, 128, 256, 512)  # tokens that texts are filled up to


class FusionScorer(TransformersModel, Matcher):
    """Pairs in passes of one shape, by the length of their texts."""

    threshold: float | None = 0.0  # log-odds of a match at probability 1/2

    def score(self, images: Sequence[Image], texts: Sequence[str]) -> Floats:
        import torch

        scores = np.empty(len(texts), np.float32)
        lengths = self.lengths(texts)
        for length in sorted(set(lengths)):
            places = [place for place, one in enumerate(lengths) if one == length]
            # Filled up to the whole batch, so that a pair's bits do not depend on the other pairs.
            filled = places + [places[-1]] * (len(texts) - len(places))
            with torch.inference_mode():
                seen = self.see(self.pixels([images[place] for place in filled]))
                odds = self.match(seen, self.tokens([texts[p] for p in filled], length))
            scores[places] = odds.float().cpu().numpy()[: len(places)]
        return scores

    def lengths(self, texts: Sequence[str]) -> list[int]:
        """Of `LENGTHS`, the one that each text is filled up to."""
        most = self.most()
        buckets = [length for length in LENGTHS if length < most] + [most]
        counted = self.tokenizer(list(texts), truncation=True, max_length=most, padding=False)["input_ids"]
        return [next(length for length in buckets if len(ids) <= length) for ids in counted]

    def see(self, pixels: Tensors) -> Tensors:
        """What `match` reads of images, a row an image: what does not depend on a text, where a model has such."""
        return pixels

    @abstractmethod
    def match(self, seen: Tensors, tokens: Tensors) -> torch.Tensor:
        """Log-odds of a match of image i and text i, shape (n,), with gradients where these are on.

        Args:
            seen: as `see` gives it. tokens: as `TransformersModel.tokens` gives them.
        """

    @abstractmethod
    def image_features(self, pixels: Tensors) -> torch.Tensor:
        """Features of images alone, by which similar ones are found, shape (n, d); not normalised."""


class Blip(FusionScorer):
    """BLIP fine-tuned for retrieval, with its ITM head: class 1 is a match."""

    types = ("blip",)
    network = "BlipForImageTextRetrieval"

    def see(self, pixels: Tensors) -> Tensors:
        """As `FusionScorer.see`: the patches that the image tower gives."""
        return {"patches": self.model.vision_model(pixel_values=pixels["pixel_values"]).last_hidden_state}

    def match(self, seen: Tensors, tokens: Tensors) -> torch.Tensor:
        import torch

        patches = seen["patches"]
        read = self.model.text_encoder(
            input_ids=tokens["input_ids"],
            attention_mask=tokens["attention_mask"],
            encoder_hidden_states=patches,
            # BlipForImageTextRetrieval.forward makes it on the CPU, wherever the model is.
            encoder_attention_mask=torch.ones(patches.shape[:2], dtype=torch.long, device=patches.device),
        )
        return _match(self.model.itm_head(read.last_hidden_state[:, 0]))

    def image_features(self, pixels: Tensors) -> torch.Tensor:
        """As `FusionScorer.image_features`: the class token of the image tower."""
        return self.see(pixels)["patches"][:, 0]


class Flava(FusionScorer):
    """FLAVA as pretrained, with its ITM head on the unmasked image and text: class 1 is a match."""

    types = ("flava",)
    network = "FlavaForPreTraining"

    def see(self, pixels: Tensors) -> Tensors:
        """As `FusionScorer.see`: pixels, without those of the codebook."""
        return {"pixel_values": pixels["pixel_values"]}

    def match(self, seen: Tensors, tokens: Tensors) -> torch.Tensor:
        found = self.model.flava(
            input_ids=tokens["input_ids"],
            attention_mask=tokens["attention_mask"],
            pixel_values=seen["pixel_values"],
        )
        return _match(self.model.itm_head(found.multimodal_embeddings))

    def image_features(self, pixels: Tensors) -> torch.Tensor:
        """As `FusionScorer.image_features`: the class token of the image tower."""
        found: torch.Tensor = self.model.flava.image_model(pixel_values=pixels["pixel_values"]).last_hidden_state
        return found[:, 0]


class Vilt(FusionScorer):
    """ViLT fine-tuned for retrieval: its ranking head gives the log-odds at once.

    Its images keep their shape, and are filled up to the largest of a pass: so a pass has one pair.
    """

    types = ("vilt",)
    network = "ViltForImageAndTextRetrieval"
    threshold = None  # trained to rank: its 0 means nothing

    def most(self) -> int:
        return int(self.model.config.max_position_embeddings)

    def score(self, images: Sequence[Image], texts: Sequence[str]) -> Floats:
        one_by_one = super().score
        return np.concatenate([one_by_one([image], [text]) for image, text in zip(images, texts, strict=True)])

    def match(self, seen: Tensors, tokens: Tensors) -> torch.Tensor:
        odds: torch.Tensor = self.model(**_read(tokens), **seen).logits[:, 0]
        return odds

    def image_features(self, pixels: Tensors) -> torch.Tensor:
        """As `FusionScorer.image_features`: there is no image tower; images are read with an empty text."""
        empty = self.tokens([""] * len(pixels["pixel_values"]), 2)
        found: torch.Tensor = self.model.vilt(**_read(empty), **pixels).last_hidden_state
        return found[:, 0]


def _read(tokens: Tensors) -> Tensors:
    return {key: tokens[key] for key in ("input_ids", "attention_mask", "token_type_ids") if key in tokens}


def _match(logits: torch.Tensor) -> torch.Tensor:
    # log p(match) − log p(no match) = logit 1 − logit 0, with the softmax's denominator gone
    odds: torch.Tensor = logits[:, 1] - logits[:, 0]
    return odds


BLIP_ITM = ModelKind(Blip, "FOLDER", check=Blip.find)
VILT = ModelKind(Vilt, "FOLDER", check=Vilt.find)
FLAVA = ModelKind(Flava, "FOLDER", check=Flava.find)
