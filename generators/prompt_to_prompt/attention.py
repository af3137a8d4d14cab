"""Attention processors that inject the source image's attention into the edited image's, without making the maps.

Probabilities of an edited image are linear in the source's P and its own P* (``edits``): P A + P* diag(b). Its
attention output is therefore P (A V*) + P* (diag(b) V*): two attentions with other values, each a call of the fused
``scaled_dot_product_attention``. Self-attention injection (A = 1, b = 0) is one call with the source's queries and keys
and the edited image's values. No layer ever holds its probabilities; only `LocalBlend` computes some, for its
words.

The rows of a batch of n pairs end in n source images and n edited images with their captions. Before them may come
2n unconditional rows of classifier-free guidance, which no edit touches.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from diffusers import UNet2DConditionModel
from torch.nn.functional import interpolate, max_pool2d, scaled_dot_product_attention

from twinset.generators.prompt_to_prompt.edits import Alignment, Step

THRESHOLD = 0.3  # of a map's greatest value
START = 0.2  # of the steps, before which attention is too vague to cut at


class LocalBlend:
    """Local blend: the change stays where the attention of the changed words is. Maps and masks of a batch of n pairs.

    Not in arXiv 2208.01626, but in the code published with it: cross-attention maps of the words, averaged over heads,
    layers of one resolution and the steps so far, are widened by a pixel and cut at 0.3 of their greatest value.
    Latents outside of both masks, the source's and the edited image's, are reset to the source's. Without
    `Edit.blend` the same masks say where the change is, and nothing is reset.

    size: (height, width) of the feature maps whose cross-attention is averaged. Only layers of this size are looked
    at, and only there are probabilities computed: 2 x heads x height x width x tokens floats a pair, freed at once. All
    pairs are, also those without words: what one asks for must not change the last bits of another.
    maps: (2, n, *size), the words' attention in source and edited images, summed over layers and steps.
    """

    def __init__(self, alignments: Sequence[Alignment], size: tuple[int, int], device: torch.device) -> None:
        self.size = size
        self.pairs = len(alignments)
        words = torch.zeros(2, self.pairs, alignments[0].captions[0].length, 1)
        for n, alignment in enumerate(alignments):
            for side, word in enumerate(alignment.edit.region or ()):
                words[side, n, alignment.captions[side].of_word(word)] = 1
        self._words = words.to(device)
        self._everywhere = torch.tensor([alignment.edit.region is None for alignment in alignments], device=device)
        self._never_reset = torch.tensor([not alignment.edit.blend for alignment in alignments], device=device)
        self.maps = torch.zeros(2, self.pairs, *size, device=device)

    def observe(self, q: torch.Tensor, k: torch.Tensor, scale: float, step: Step) -> None:
        """Adds the words' attention of one cross-attention layer: q (rows, heads, pixels, channels), k (rows, heads,
        tokens, channels). The edited image's is that after the edit, as published."""
        if q.shape[2] != self.size[0] * self.size[1]:
            return
        n = self.pairs
        of_source, of_edited = (  # (n, pixels, tokens) float32, the mean over heads
            (q[rows].float() @ k[rows].float().transpose(-1, -2) * scale).softmax(-1).mean(1)
            for rows in (slice(-2 * n, -n), slice(-n, None))
        )
        words0, words1 = self._words
        if step.source is None:
            maps1 = of_edited @ words1
        else:  # (P A + P* diag(b)) w, as P (A w) + P* (b w)
            maps1 = of_source @ (step.source.float() @ words1)
            if step.edited is not None:
                maps1 = maps1 + of_edited @ (step.edited.float()[:, :, None] * words1)
        self.maps += torch.stack([of_source @ words0, maps1]).reshape(self.maps.shape)

    def masks(self, size: tuple[int, int]) -> torch.Tensor:
        """(n, *size) bool of where each pair's change is, from the maps so far; everywhere for a pair without words."""
        maps = interpolate(max_pool2d(self.maps, 3, stride=1, padding=1), size=size)
        inside = (maps / maps.amax((2, 3), keepdim=True) > THRESHOLD).any(0)
        return inside | self._everywhere[:, None, None]

    def blend(self, latents: torch.Tensor, index: int, steps: int) -> torch.Tensor:
        """Latents (n sources, then n edited; channels, height, width) after step ``index`` (0-based) of ``steps``,
        with the edited ones that are to be blended reset to their sources outside of the masks."""
        if index < int(START * steps):
            return latents
        source, edited = latents.chunk(2)
        kept = self.masks((latents.shape[2], latents.shape[3])) | self._never_reset[:, None, None]
        return torch.cat([source, torch.where(kept[:, None], edited, source)])


class Injection:
    """The processor of all attention layers of a UNet, for a batch of n pairs at the present step.

    max_self_tokens: pixels of the largest feature map whose self-attention is injected.
    """

    def __init__(self, pairs: int, max_self_tokens: int, blend: LocalBlend | None) -> None:
        self.pairs = pairs
        self.max_self_tokens = max_self_tokens
        self.blend = blend
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
        if self.blend is not None:
            self.blend.observe(q, k, scale, self.step)
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


def cross_attention_sizes(unet: UNet2DConditionModel, height: int, width: int) -> list[tuple[int, int]]:
    """Sizes (height, width) of the feature maps that have cross-attention, for latents of height x width, largest
    first. Every down block but the last halves, rounding up."""
    last = len(unet.config.down_block_types) - 1
    levels = set()  # how often feature maps were halved
    for name in unet.attn_processors:
        if name.endswith("attn2.processor"):
            place, number, *_ = name.split(".")  # as in down_blocks.1.attentions.0, mid_block.attentions.0
            if place == "down_blocks":
                levels.add(int(number))
            else:
                levels.add(last - int(number) if place == "up_blocks" else last)
    return [(-(-height // 2**level), -(-width // 2**level)) for level in sorted(levels)]
