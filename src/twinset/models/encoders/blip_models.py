"""BLIP and BLIP-2 of transformers: their matching heads (ITM), and their contrastive ones (ITC) as dual encoders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from twinset.contracts.errors import WrongUse
from twinset.models.encoders.contract import Floats, ModelKind, Running
from twinset.models.encoders.fusion_models import FusionScorer, log_odds
from twinset.models.encoders.transformers_encoders import ClipEncoder, TransformersModel

if TYPE_CHECKING:
    import torch

    from twinset.models.encoders.transformers_encoders import Tensors


class _OfPatches(FusionScorer):
    """What the matching heads of both share: an image tower with a class token."""

    def see(self, pixels: Tensors) -> Tensors:
        """As `FusionScorer.see`: the patches that the image tower gives."""
        return {"patches": self.model.vision_model(pixel_values=pixels["pixel_values"]).last_hidden_state}

    def image_features(self, pixels: Tensors) -> torch.Tensor:
        """As `FusionScorer.image_features`: the class token of the image tower."""
        return self.see(pixels)["patches"][:, 0]


class Blip(_OfPatches):
    """BLIP fine-tuned for retrieval, with its ITM head: class 1 is a match."""

    types = ("blip",)
    network = "BlipForImageTextRetrieval"

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
        return log_odds(self.model.itm_head(read.last_hidden_state[:, 0]))

    def resize(self, size: int) -> None:
        """As `FusionScorer.resize`: positions of patches are interpolated once, as the library does in each pass."""
        import torch

        embeddings = self.model.vision_model.embeddings
        if size % embeddings.patch_size:
            raise WrongUse(f"image_size: {size} pixels are no multiple of the patches' {embeddings.patch_size}")
        number = (size // embeddings.patch_size) ** 2 + 1
        held = embeddings.position_embedding
        with torch.no_grad():
            found = embeddings.interpolate_pos_encoding(held.new_empty(1, number, held.shape[2]), size, size)
        embeddings.position_embedding = torch.nn.Parameter(found.clone())
        embeddings.image_size, embeddings.num_patches, embeddings.num_positions = size, number - 1, number
        self.model.config.vision_config.image_size = size
        self.processor.size = {"height": size, "width": size}


class BlipContrast(ClipEncoder):
    """BLIP's ITC: what the two projections give of the class tokens."""

    types = ("blip",)
    network = "BlipForImageTextRetrieval"
    cleaning = ""

    def image_features(self, prepared: Sequence[Floats]) -> Floats:
        import torch

        with torch.inference_mode():
            pixels = torch.from_numpy(np.stack(prepared)).to(self.device)
            return _floats(self.projected(self.model.vision_model(pixel_values=pixels).last_hidden_state))

    def text_features(self, texts: Sequence[str]) -> Floats:
        return self.by_length(texts, lambda places, tokens: self.projected_texts(tokens))

    def projected(self, patches: torch.Tensor) -> torch.Tensor:
        """Features of images, (n, d), from what the image tower gives."""
        found: torch.Tensor = self.model.vision_proj(patches[:, 0])
        return found

    def projected_texts(self, tokens: Tensors) -> torch.Tensor:
        """Features of texts, (n, d)."""
        read = self.model.text_encoder(input_ids=tokens["input_ids"], attention_mask=tokens["attention_mask"])
        found: torch.Tensor = self.model.text_proj(read.last_hidden_state[:, 0])
        return found


class _Blip2(TransformersModel):
    """BLIP-2's first stage: the image tower and the Q-Former with both heads."""

    types = ("blip-2",)
    network = "Blip2ForImageTextRetrieval"

    def __init__(self, name: str, parts: Sequence[str], running: Running) -> None:
        super().__init__(name, parts, running)
        # The configuration's own vocabulary is that of the second stage; its tokenizer marks images, texts do not.
        words = {token: at for token, at in self.tokenizer.get_vocab().items() if token != "<image>"}
        known = self.model.config.qformer_config.vocab_size
        if max(words.values()) >= known:
            raise WrongUse(
                f"--model {name}: its tokenizer has {len(words):,} tokens and its Q-Former {known:,}; fetch both "
                "again, or name another model"
            )

    def most(self) -> int:
        return int(self.model.config.qformer_config.max_position_embeddings)

    def queried(self, patches: torch.Tensor, tokens: Tensors | None = None) -> torch.Tensor:
        """What the Q-Former gives of its queries to images, read with texts or without, (n, queries, width)."""
        import torch

        queries = self.model.query_tokens.expand(len(patches), -1, -1)
        mask = torch.ones(queries.shape[:2], dtype=torch.long, device=self.device)
        read = queries
        if tokens is not None:
            read = self.model.embeddings(input_ids=tokens["input_ids"], query_embeds=queries)
            mask = torch.cat([mask, tokens["attention_mask"]], 1)
        out = self.model.qformer(
            query_embeds=read,
            query_length=queries.shape[1],
            attention_mask=mask,
            encoder_hidden_states=patches,
            encoder_attention_mask=torch.ones(patches.shape[:2], dtype=torch.long, device=self.device),
        )
        found: torch.Tensor = out.last_hidden_state[:, : queries.shape[1]]
        return found


class Blip2(_Blip2, _OfPatches):
    """BLIP-2's ITM: the mean of what its head gives of all queries; class 1 is a match."""

    def match(self, seen: Tensors, tokens: Tensors) -> torch.Tensor:
        return log_odds(self.model.itm_head(self.queried(seen["patches"], tokens)).mean(1))


class Blip2Contrast(_Blip2, BlipContrast):
    """BLIP-2's ITC: a feature for each query of an image, one after the other; the one nearest to a text counts."""

    several = True

    def projected(self, patches: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.model.vision_projection(self.queried(patches))
        return found.flatten(1)

    def projected_texts(self, tokens: Tensors) -> torch.Tensor:
        read = self.model.qformer(
            query_embeds=self.model.embeddings(input_ids=tokens["input_ids"]),
            query_length=0,
            attention_mask=tokens["attention_mask"],
        )
        found: torch.Tensor = self.model.text_projection(read.last_hidden_state[:, 0])
        return found


def _floats(found: torch.Tensor) -> Floats:
    features: Floats = found.float().cpu().numpy()
    return features


BLIP_ITM, BLIP_ITC, BLIP2_ITM, BLIP2_ITC = (
    ModelKind(kind, "FOLDER", check=kind.find) for kind in (Blip, BlipContrast, Blip2, Blip2Contrast)
)
