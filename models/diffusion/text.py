"""Captions as diffusion models read them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True, slots=True)
class Text:
    """A prompt, encoded.

    states: (1, tokens, channels) for cross-attention. pooled: (1, channels), SDXL's; None: the model reads none. cut:
    tokens of the prompt that the encoders did not read.
    """

    states: torch.Tensor
    pooled: torch.Tensor | None
    cut: int = 0


def embedded(encoders: Sequence[tuple[Any, Any]], captions: Sequence[str], cut: bool = False) -> list[torch.Tensor]:
    """Captions, padded to the encoders' length, as (rows, tokens, channels) for cross-attention; of SDXL also as its
    second encoder pools them, (rows, channels). Each encoder sees all captions in one batch.

    Args:
        encoders: tokenizer and text encoder, of SDXL twice.
        cut: whether captions that are too long are cut; else torch raises an error for them.
    """
    seen = []
    for tokenizer, encoder in encoders:
        length = tokenizer.model_max_length
        options = {"padding": "max_length", "max_length": length, "truncation": cut, "return_tensors": "pt"}
        ids = tokenizer(list(captions), **options)["input_ids"]
        seen.append(encoder(ids.to(encoder.device), output_hidden_states=True))
    if len(seen) == 1:
        return [seen[0].last_hidden_state]
    # SDXL (arXiv 2307.01952, section 2.1) takes the last layer but one of both, side by side.
    return [torch.cat([one.hidden_states[-2] for one in seen], dim=-1), seen[1].text_embeds]


def tokens_over(encoders: Sequence[tuple[Any, Any]], prompt: str) -> int:
    """How many tokens of a prompt, with its start and end, an encoder would not read; the largest number counts."""
    return max(max(0, len(tokenizer(prompt).input_ids) - int(tokenizer.model_max_length)) for tokenizer, _ in encoders)


@torch.inference_mode()
def encode(encoders: Sequence[tuple[Any, Any]], prompt: str) -> Text:
    """One prompt, alone in its pass: the same numbers whatever else is drawn. What is too long is cut at the end."""
    over = tokens_over(encoders, prompt)
    states, *pooled = embedded(encoders, [prompt], cut=True)
    return Text(states, pooled[0] if pooled else None, over)


def unconditional(encoders: Sequence[tuple[Any, Any]], zero: bool) -> Text:
    """What classifier-free guidance takes for no caption: zeros, as SDXL was trained with, or an empty caption."""
    empty = encode(encoders, "")
    if not zero:
        return empty
    return Text(torch.zeros_like(empty.states), None if empty.pooled is None else torch.zeros_like(empty.pooled))
