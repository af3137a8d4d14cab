"""Fusion models of transformers: networks that read an image and a text together and say whether they match."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from twinset.contracts.errors import WrongUse
from twinset.models.encoders.contract import Floats, Matcher, ModelKind
from twinset.models.encoders.transformers_encoders import TransformersModel

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image

    from twinset.models.encoders.transformers_encoders import Tensors


SEEN = 8  # images at a time that `FusionScorer.see` is given: always as many, so that bits do not depend on others


class FusionScorer(TransformersModel, Matcher):
    """Networks with a head that says whether an image and a text match; pairs in passes of one shape, by texts' length.
    What does not depend on a text is computed once for all texts of an image that are scored together.

    A score is the head's log-odds of a match: float32 probabilities of 1 would tie.
    """

    precision = f"float32, images by {SEEN}"
    threshold: float | None = 0.0  # log-odds of a match at probability 1/2

    def score(self, images: Sequence[Image], texts: Sequence[str]) -> Floats:
        import torch

        distinct = list({id(image): image for image in images}.values())
        rows = {id(image): row for row, image in enumerate(distinct)}
        size = min(SEEN, len(images))
        with torch.inference_mode():
            parts = [distinct[start : start + size] for start in range(0, len(distinct), size)]
            parts[-1] += parts[-1][-1:] * (size - len(parts[-1]))
            each = [self.see(self.pixels(part)) for part in parts]
        seen = {key: torch.cat([part[key] for part in each]) for key in each[0]}

        def match(places: list[int], tokens: Tensors) -> torch.Tensor:
            at = [rows[id(images[place])] for place in places]
            return self.match({key: value[at] for key, value in seen.items()}, tokens)

        return self.by_length(texts, match)

    def see(self, pixels: Tensors) -> Tensors:
        """What `match` reads of images, a row an image: what does not depend on a text, where a model has such."""
        return pixels

    @abstractmethod
    def match(self, seen: Tensors, tokens: Tensors) -> torch.Tensor:
        """Log-odds of a match of image i, as `see` gives it, and text i, shape (n,), with gradients if these are on."""

    @abstractmethod
    def image_features(self, pixels: Tensors) -> torch.Tensor:
        """Features of images alone, by which similar ones are found, shape (n, d); not normalised."""

    def resize(self, size: int) -> None:
        """Read images of another size from now on, in pixels; optional. Raises `WrongUse`: the model cannot."""
        raise WrongUse(f"{self.name}: reads images of one size; name blip-itm: or vilt:, or leave image_size out")


class Flava(FusionScorer):
    """FLAVA as pretrained, with its ITM head on the unmasked image and text: class 1 is a match."""

    types = ("flava",)
    network = "FlavaForPreTraining"

    def see(self, pixels: Tensors) -> Tensors:
        return {"pixel_values": pixels["pixel_values"]}  # without those of the codebook

    def match(self, seen: Tensors, tokens: Tensors) -> torch.Tensor:
        out = self.model.flava(input_ids=tokens["input_ids"], attention_mask=tokens["attention_mask"], **seen)
        return log_odds(self.model.itm_head(out.multimodal_embeddings))

    def image_features(self, pixels: Tensors) -> torch.Tensor:
        states: torch.Tensor = self.model.flava.image_model(**self.see(pixels)).last_hidden_state
        return states[:, 0]


class Vilt(FusionScorer):
    """ViLT fine-tuned for retrieval: its ranking head gives the log-odds at once. Its images keep their shape, and are
    filled up to the largest of a pass: so a pass has one pair.
    """

    types = ("vilt",)
    network = "ViltForImageAndTextRetrieval"
    threshold = None  # trained to rank: its 0 means nothing

    def most(self) -> int:
        return int(self.model.config.max_position_embeddings)

    def resize(self, size: int) -> None:
        self.processor.size = {"shortest_edge": size}  # positions are interpolated in each pass

    def score(self, images: Sequence[Image], texts: Sequence[str]) -> Floats:
        one_by_one = super().score
        return np.concatenate([one_by_one([image], [text]) for image, text in zip(images, texts, strict=True)])

    def match(self, seen: Tensors, tokens: Tensors) -> torch.Tensor:
        odds: torch.Tensor = self.model(**_read(tokens), **seen).logits[:, 0]
        return odds

    def image_features(self, pixels: Tensors) -> torch.Tensor:
        # There is no image tower: images are read with an empty text.
        empty = self.tokens([""] * len(pixels["pixel_values"]), 2)
        states: torch.Tensor = self.model.vilt(**_read(empty), **pixels).last_hidden_state
        return states[:, 0]


def _read(tokens: Tensors) -> Tensors:
    return {key: tokens[key] for key in ("input_ids", "attention_mask", "token_type_ids") if key in tokens}


def log_odds(logits: torch.Tensor) -> torch.Tensor:
    """Log-odds of class 1 of two, (n,) of (n, 2)."""
    # log p(match) − log p(no match) = logit 1 − logit 0, with the softmax's denominator gone
    odds: torch.Tensor = logits[:, 1] - logits[:, 0]
    return odds


VILT = ModelKind(Vilt, "FOLDER", check=Vilt.find)
FLAVA = ModelKind(Flava, "FOLDER", check=Flava.find)
