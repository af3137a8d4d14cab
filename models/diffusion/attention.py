"""Attention of a UNet whose captions stay the same over all steps, without work that gives what is known.

A pass has n unconditional rows, then n rows with their captions. SDXL's unconditional embedding is zeros, and its keys
and values have no bias: then keys and values are zeros, attention over them is zero, and the layer's output is the bias
of its last projection, the same bits as by computing it. That half needs no queries either: 4 % of SDXL's work.
"""

from collections.abc import Sequence
from typing import Any

import torch
from diffusers import UNet2DConditionModel
from torch.nn.functional import scaled_dot_product_attention

from twinset.models.diffusion.text import Text


class FusedSelfAttention:
    """The processor of self-attention: queries, keys and values in one multiplication."""

    def __call__(
        self, attn: Any, hidden_states: torch.Tensor, encoder_hidden_states: Any = None, attention_mask: Any = None
    ) -> torch.Tensor:
        """hidden_states: (rows, pixels, channels)."""
        q, k, v = (_heads(attn, one) for one in attn.to_qkv(hidden_states).chunk(3, dim=-1))
        return _out(attn, scaled_dot_product_attention(q, k, v, scale=attn.scale))


class CaptionAttention:
    """The processor of cross-attention of one layer, with the keys and values of the captions that are drawn.

    keys, values: (rows, heads, tokens, channels of a head), of all rows after the first ``skipped`` ones, whose
    captions are zeros.
    """

    keys: torch.Tensor
    values: torch.Tensor
    skipped: int = 0

    def __call__(
        self, attn: Any, hidden_states: torch.Tensor, encoder_hidden_states: Any = None, attention_mask: Any = None
    ) -> torch.Tensor:
        """hidden_states: (rows, pixels, channels)."""
        q = _heads(attn, attn.to_q(hidden_states[self.skipped :]))
        out = _out(attn, scaled_dot_product_attention(q, self.keys, self.values, scale=attn.scale))
        if not self.skipped:
            return out
        bias = attn.to_out[0].bias
        known = out.new_zeros(()) if bias is None else bias
        return torch.cat([known.expand(self.skipped, *out.shape[1:]), out])


class CaptionLayers:
    """The cross-attention layers of a UNet, which this gives its processors."""

    def __init__(self, unet: UNet2DConditionModel) -> None:
        own = dict(unet.attn_processors)
        self._layers: list[tuple[Any, CaptionAttention]] = []
        for name, layer in unet.named_modules():
            if name.endswith(".attn1"):
                layer.fuse_projections()
                layer.to_q = layer.to_k = layer.to_v = None  # copied into to_qkv
                own[f"{name}.processor"] = FusedSelfAttention()
            elif name.endswith(".attn2"):
                own[f"{name}.processor"] = CaptionAttention()
                self._layers.append((layer, own[f"{name}.processor"]))
        unet.set_attn_processor(own)

    @property
    def skip_zeros(self) -> bool:
        """Whether captions that are zeros have keys and values that are zeros."""
        return all(layer.to_k.bias is None and layer.to_v.bias is None for layer, _ in self._layers)

    def remember(self, captions: Sequence[Text], rows: Sequence[int], skipped: int) -> None:
        """Compute keys and values of captions, each in a pass of its own, for all steps to come.

        Args:
            captions: that occur in the batch, each once.
            rows: which of them each row has, after the first ``skipped`` rows.
        """
        order = torch.tensor(rows, device=captions[0].states.device)
        for layer, processor in self._layers:
            keys, values = (
                torch.cat([_heads(layer, project(one.states)) for one in captions])[order]
                for project in (layer.to_k, layer.to_v)
            )
            processor.keys, processor.values, processor.skipped = keys, values, skipped


def _heads(attn: Any, projected: torch.Tensor) -> torch.Tensor:
    """(rows, tokens, channels) -> (rows, heads, tokens, channels of a head)."""
    rows, tokens, channels = projected.shape
    return projected.view(rows, tokens, attn.heads, channels // attn.heads).transpose(1, 2)


def _out(attn: Any, attended: torch.Tensor) -> torch.Tensor:
    """(rows, heads, pixels, channels of a head) -> (rows, pixels, channels), projected."""
    linear, dropout = attn.to_out
    out: torch.Tensor = dropout(linear(attended.transpose(1, 2).flatten(2)))
    return out
