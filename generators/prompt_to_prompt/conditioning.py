"""What a UNet is told: captions as the text embeddings of Stable Diffusion (one CLIP encoder) or SDXL (two)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from transformers import CLIPTextModel, CLIPTextModelWithProjection, CLIPTokenizer


@dataclass(frozen=True)
class Conditioning:
    """states: (rows, tokens, channels) for cross-attention; pooled: (rows, channels) of SDXL's second encoder."""

    states: torch.Tensor
    pooled: torch.Tensor | None

    def added(self, size: tuple[int, int]) -> dict[str, torch.Tensor] | None:
        """SDXL's further conditions: pooled embedding, and that the image is ``size`` (height, width in pixels),
        originally too and uncropped. None for Stable Diffusion."""
        if self.pooled is None:
            return None
        ids = torch.tensor([[*size, 0, 0, *size]], dtype=self.pooled.dtype, device=self.pooled.device)
        return {"text_embeds": self.pooled, "time_ids": ids.expand(len(self.pooled), -1)}


def encode(
    captions: Sequence[str],
    tokenizer: CLIPTokenizer,
    encoder: CLIPTextModel,
    tokenizer_2: CLIPTokenizer | None,
    encoder_2: CLIPTextModelWithProjection | None,
) -> Conditioning:
    """Embeddings of captions padded to the encoders' length. Each encoder sees all captions in one batch."""
    if tokenizer_2 is None or encoder_2 is None:
        return Conditioning(encoder(_ids(captions, tokenizer, encoder.device)).last_hidden_state, None)
    # SDXL (arXiv 2307.01952, section 2.1) takes the last layer but one of both, side by side.
    first = encoder(_ids(captions, tokenizer, encoder.device), output_hidden_states=True)
    second = encoder_2(_ids(captions, tokenizer_2, encoder_2.device), output_hidden_states=True)
    states = torch.cat([first.hidden_states[-2], second.hidden_states[-2]], dim=-1)
    return Conditioning(states, second.text_embeds)


def guided(conditions: Conditioning, unconditional: Conditioning) -> Conditioning:
    """The rows of classifier-free guidance: the unconditional row once for each caption, then the captions."""

    def rows(one: torch.Tensor, all_: torch.Tensor) -> torch.Tensor:
        return torch.cat([one.expand(len(all_), *one.shape[1:]), all_])

    pooled = None
    if conditions.pooled is not None and unconditional.pooled is not None:
        pooled = rows(unconditional.pooled, conditions.pooled)
    return Conditioning(rows(unconditional.states, conditions.states), pooled)


def zeros(like: Conditioning) -> Conditioning:
    """A single row of zeros: what SDXL was trained to take for no caption (``force_zeros_for_empty_prompt``)."""
    pooled = None if like.pooled is None else torch.zeros_like(like.pooled[:1])
    return Conditioning(torch.zeros_like(like.states[:1]), pooled)


def _ids(captions: Sequence[str], tokenizer: CLIPTokenizer, device: torch.device) -> torch.Tensor:
    padded = tokenizer(list(captions), padding="max_length", max_length=tokenizer.model_max_length, return_tensors="pt")
    ids: torch.Tensor = padded["input_ids"]
    return ids.to(device)
