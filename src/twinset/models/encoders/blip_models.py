"""BLIP and BLIP-2 of transformers: their matching heads (ITM), and their contrastive ones (ITC) as dual encoders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from twinset.contracts.canonical import digest
from twinset.contracts.errors import WrongUse
from twinset.models.encoders.contract import DualEncoder, Floats, ModelKind, Running, as_floats
from twinset.models.encoders.fusion_models import FusionScorer, log_odds
from twinset.models.loading import check_vocabulary

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image

    from twinset.models.encoders.transformers_encoders import Tensors


class Blip(FusionScorer):
    """BLIP fine-tuned for retrieval. A score is that of its ITM head: class 1 is a match."""

    types = ("blip",)
    network = "BlipForImageTextRetrieval"

    def see(self, pixels: Tensors) -> Tensors:
        return {"patches": self.model.vision_model(pixel_values=pixels["pixel_values"]).last_hidden_state}

    def image_features(self, pixels: Tensors) -> torch.Tensor:
        return self.see(pixels)["patches"][:, 0]  # the class token

    def match(self, seen: Tensors, tokens: Tensors) -> torch.Tensor:
        # BlipForImageTextRetrieval.forward makes the mask on the CPU, wherever the model is.
        patches = {"encoder_hidden_states": seen["patches"], "encoder_attention_mask": _mask(seen["patches"])}
        return log_odds(self.model.itm_head(self._read(tokens, **patches)))

    def projected_images(self, seen: Tensors) -> torch.Tensor:
        """What the ITC head gives of images, (n, d), not normalised."""
        features: torch.Tensor = self.model.vision_proj(seen["patches"][:, 0])
        return features

    def projected_texts(self, tokens: Tensors) -> torch.Tensor:
        """What the ITC head gives of texts, (n, d), not normalised."""
        features: torch.Tensor = self.model.text_proj(self._read(tokens))
        return features

    def _read(self, tokens: Tensors, **patches: torch.Tensor) -> torch.Tensor:
        """The class token of the text encoder, which may attend to patches."""
        texts = {key: tokens[key] for key in ("input_ids", "attention_mask")}
        states: torch.Tensor = self.model.text_encoder(**texts, **patches).last_hidden_state
        return states[:, 0]

    def resize(self, size: int) -> None:
        """As `FusionScorer.resize`: positions of patches are interpolated once, as the library does in each pass."""
        import torch

        embeddings = self.model.vision_model.embeddings
        if size % embeddings.patch_size:
            raise WrongUse(f"image_size: {size} pixels are no multiple of the patches' {embeddings.patch_size}")
        number = (size // embeddings.patch_size) ** 2 + 1
        held = embeddings.position_embedding
        positions = embeddings.interpolate_pos_encoding(held.new_empty(1, number, held.shape[2]), size, size)
        embeddings.position_embedding = torch.nn.Parameter(positions.detach().clone())
        embeddings.image_size, embeddings.num_patches, embeddings.num_positions = size, number - 1, number
        self.model.config.vision_config.image_size = size
        self.processor.size = {"height": size, "width": size}


class Blip2(Blip):
    """BLIP-2's first stage: the image tower and the Q-Former, whose queries give an image several features. A score is
    the mean of what the ITM head gives of all queries.
    """

    types = ("blip-2",)
    network = "Blip2ForImageTextRetrieval"

    def __init__(self, name: str, parts: Sequence[str], running: Running) -> None:
        super().__init__(name, parts, running)
        # The configuration's own vocabulary is that of the second stage; its tokenizer marks images, texts do not.
        check_vocabulary(self.tokenizer, self.model.config.qformer_config.vocab_size, Path(parts[0]), unread="<image>")

    def most(self) -> int:
        return int(self.model.config.qformer_config.max_position_embeddings)

    def _queried(self, patches: torch.Tensor, tokens: Tensors | None = None) -> torch.Tensor:
        """What the Q-Former gives of its queries to images, read with texts or without, (n, queries, width)."""
        read = queries = self.model.query_tokens.expand(len(patches), -1, -1)
        mask = _mask(queries)
        if tokens is not None:
            read = self.model.embeddings(input_ids=tokens["input_ids"], query_embeds=queries)
            mask = _mask(read)
            mask[:, queries.shape[1] :] = tokens["attention_mask"]
        states: torch.Tensor = self.model.qformer(
            query_embeds=read,
            query_length=queries.shape[1],
            attention_mask=mask,
            encoder_hidden_states=patches,
            encoder_attention_mask=_mask(patches),
        ).last_hidden_state
        return states[:, : queries.shape[1]]

    def match(self, seen: Tensors, tokens: Tensors) -> torch.Tensor:
        return log_odds(self.model.itm_head(self._queried(seen["patches"], tokens)).mean(1))

    def projected_images(self, seen: Tensors) -> torch.Tensor:
        """As `Blip.projected_images`: a feature for each query, one after the other."""
        features: torch.Tensor = self.model.vision_projection(self._queried(seen["patches"]))
        return features.flatten(1)

    def projected_texts(self, tokens: Tensors) -> torch.Tensor:
        read = self.model.qformer(
            query_embeds=self.model.embeddings(input_ids=tokens["input_ids"]),
            query_length=0,
            attention_mask=tokens["attention_mask"],
        )
        features: torch.Tensor = self.model.text_projection(read.last_hidden_state[:, 0])
        return features


class ContrastiveHead(DualEncoder):
    """The ITC head of a BLIP as a dual encoder; of BLIP-2's features of an image the nearest to a text counts."""

    def __init__(self, blip: Blip) -> None:
        self.name, self._blip, self.several = blip.name, blip, isinstance(blip, Blip2)

    def digest(self) -> str:
        return digest([type(self).__name__, self._blip.digest()])

    def too_long(self, texts: Sequence[str]) -> list[str]:
        return self._blip.too_long(texts)

    def prepare(self, image: Image) -> Floats:
        return self._blip.prepare(image)

    def image_features(self, prepared: Sequence[Floats]) -> Floats:
        import torch

        with torch.inference_mode():
            seen = self._blip.see({"pixel_values": self._blip.stacked(prepared)})
            return as_floats(self._blip.projected_images(seen))

    def text_features(self, texts: Sequence[str]) -> Floats:
        return self._blip.by_length(texts, lambda places, tokens: self._blip.projected_texts(tokens))


def _mask(states: torch.Tensor) -> torch.Tensor:
    """The mask of states that are all read, (n, length) of (n, length, width)."""
    import torch

    return torch.ones(states.shape[:2], dtype=torch.long, device=states.device)


def _contrastive(kind: type[Blip]) -> Callable[[str, Sequence[str], Running], ContrastiveHead]:
    return lambda name, parts, running: ContrastiveHead(kind(name, parts, running))


BLIP_ITM, BLIP2_ITM = (ModelKind(kind, "FOLDER", check=kind.find) for kind in (Blip, Blip2))
BLIP_ITC, BLIP2_ITC = (
    ModelKind(_contrastive(kind), "FOLDER", check=kind.find, about=ContrastiveHead.__doc__) for kind in (Blip, Blip2)
)
