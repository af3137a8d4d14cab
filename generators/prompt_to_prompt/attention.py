"""Attention processors that inject the source image's attention into the edited image's, without making the maps.

Probabilities of an edited image are linear in the source's P and its own P* (``edits``): P A + P* diag(b). Its
attention output is therefore P (A V*) + P* (diag(b) V*): two attentions with other values, each a call of the fused
``scaled_dot_product_attention``. Self-attention injection (A = 1, b = 0) is one call with the source's queries and keys
and the edited image's values. No layer ever holds its probabilities.

The rows of a batch of n pairs end in n source images and n edited images with their captions. Before them may come
2n unconditional rows of classifier-free guidance, which no edit touches.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from diffusers import UNet2DConditionModel
from torch.nn.functional import scaled_dot_product_attention

from twinset.generators.prompt_to_prompt.edits import Step


class Injection:
    """The processor of all attention layers of a UNet, for a batch of n pairs at the present step.

    max_self_tokens: pixels of the largest feature map whose self-attention is injected.
    """

    def __init__(self, pairs: int, max_self_tokens: int) -> None:
        self.pairs = pairs
        self.max_self_tokens = max_self_tokens
        self.step = Step()

    def __call__(
        self, attn: Any, hidden_states: torch.Tensor, encoder_hidden_states: Any = None, attention_mask: Any = None
    ) -> torch.Tensor:
        """One attention layer of a transformer block (diffusers' ``attn1`` and ``attn2``)."""
        context = hidden_states if encoder_hidden_states is None else encoder_hidden_states
        q, k, v = (
            projected.unflatten(-1, (attn.heads, -1)).transpose(1, 2)
            for projected in (attn.to_q(hidden_states), attn.to_k(context), attn.to_v(context))
        )
        attend = self.self_attention if encoder_hidden_states is None else self.cross_attention
        linear, dropout = attn.to_out
        out: torch.Tensor = dropout(linear(attend(q, k, v, attn.scale).transpose(1, 2).flatten(2)))
        return out

    def self_attention(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float) -> torch.Tensor:
        """q, k, v: (rows, heads, pixels, channels of a head)."""
        replaced = self.step.self_attention
        if replaced is not None and q.shape[2] <= self.max_self_tokens:
            rows = torch.arange(len(q), device=q.device)
            rows[-self.pairs :] -= self.pairs * replaced.to(rows.dtype)
            q, k = q[rows], k[rows]
        return scaled_dot_product_attention(q, k, v, scale=scale)

    def cross_attention(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float) -> torch.Tensor:
        """q: (rows, heads, pixels, channels of a head); k, v: (rows, heads, tokens, channels of a head)."""
        step, n = self.step, self.pairs
        if step.source is None:
            return scaled_dot_product_attention(q, k, v, scale=scale)
        of_source = step.source[:, None] @ v[-n:]
        if step.edited is None:
            q, k = torch.cat([q[:-n], q[-2 * n : -n]]), torch.cat([k[:-n], k[-2 * n : -n]])
            return scaled_dot_product_attention(q, k, torch.cat([v[:-n], of_source]), scale=scale)
        of_itself = step.edited[:, None, :, None] * v[-n:]
        out = scaled_dot_product_attention(q, k, torch.cat([v[:-n], of_itself]), scale=scale)
        out[-n:] += scaled_dot_product_attention(q[-2 * n : -n], k[-2 * n : -n], of_source, scale=scale)
        return out


@contextmanager
def injected(unet: UNet2DConditionModel, injection: Injection) -> Iterator[None]:
    """The UNet with its transformer blocks' attention under ``injection``; its own processors come back afterwards."""
    own = dict(unet.attn_processors)
    blocks = ("attn1.processor", "attn2.processor")
    unet.set_attn_processor({name: injection if name.endswith(blocks) else own[name] for name in own})
    try:
        yield
    finally:
        unet.set_attn_processor(own)
