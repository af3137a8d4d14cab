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

    A score is the head's log-odds of a match, not its probability: the order of pairs is the same, and float32
    probabilities of 1 would tie.
    """

    precision = f"float32, images by {SEEN}"
    threshold: float | None = 0.0  # log-odds of a match at probability 1/2

    def score(self, images: Sequence[Image], texts: Sequence[str]) -> Floats:
        import torch

        each_once = {id(image): image for image in images}
        shown, rows = list(each_once.values()), {one: row for row, one in enumerate(each_once)}
        size = min(SEEN, len(images))
        with torch.inference_mode():
            parts = [shown[start : start + size] for start in range(0, len(shown), size)]
            parts[-1] += parts[-1][-1:] * (size - len(parts[-1]))
            each = [self.see(self.pixels(part)) for part in parts]
        seen = {key: torch.cat([one[key] for one in each]) for key in each[0]}

        def match(places: list[int], tokens: Tensors) -> torch.Tensor:
            at = [rows[id(images[one])] for one in places]
            return self.match({key: value[at] for key, value in seen.items()}, tokens)

        return self.by_length(texts, match)

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

    def resize(self, size: int) -> None:
        """Read images of another size from now on, in pixels; optional. Raises `WrongUse`: the model cannot."""
        raise WrongUse(f"{self.name}: reads images of one size; name blip-itm: or vilt:, or leave image_size out")


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
        return log_odds(self.model.itm_head(found.multimodal_embeddings))

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

    def resize(self, size: int) -> None:
        """As `FusionScorer.resize`: of the shorter side; positions are interpolated in each pass."""
        self.processor.size = {"shortest_edge": size}

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


def log_odds(logits: torch.Tensor) -> torch.Tensor:
    """Log-odds of class 1 of two, (n,) of (n, 2)."""
    # log p(match) − log p(no match) = logit 1 − logit 0, with the softmax's denominator gone
    odds: torch.Tensor = logits[:, 1] - logits[:, 0]
    return odds


VILT = ModelKind(Vilt, "FOLDER", check=Vilt.find)
FLAVA = ModelKind(Flava, "FOLDER", check=Flava.find)
