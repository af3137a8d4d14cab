"""Local blend: the change stays where the attention of the changed words is (published code, ``LocalBlend``).

Not in arXiv 2208.01626, but in the code published with it: cross-attention maps of the words, averaged over heads,
layers of one resolution and the steps so far, are widened by a pixel and cut at 0.3 of their greatest value. Latents
outside of both masks, the source's and the edited image's, are reset to the source's.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.nn.functional import interpolate, max_pool2d

from generators.prompt_to_prompt.alignment import Alignment
from generators.prompt_to_prompt.edits import Edit
from generators.prompt_to_prompt.schedule import Step

THRESHOLD = 0.3  # of a map's greatest value
START = 0.2  # of the steps, before which attention is too vague to cut at


class LocalBlend:
    """Maps and masks of a batch, for the pairs in it whose edit names blend words.

    size: (height, width) of the feature maps whose cross-attention is averaged. Only layers of this size are looked
    at, and only there are probabilities computed: 2 x heads x height x width x tokens floats a blended pair, freed
    at once.
    maps: (2, blended pairs, *size), the words' attention in source and edited images, summed over layers and steps.
    """

    def __init__(
        self, edits: Sequence[Edit], alignments: Sequence[Alignment], size: tuple[int, int], device: torch.device
    ) -> None:
        self.size = size
        self.pairs = len(edits)
        blended = [n for n, edit in enumerate(edits) if edit.blend is not None]
        self._blended = torch.tensor(blended, device=device)
        words = torch.zeros(2, len(blended), alignments[0].captions[0].length)
        for row, n in enumerate(blended):
            for side, word in enumerate(edits[n].blend or ()):
                words[side, row, alignments[n].captions[side].of_word(word)] = 1
        self._words = words.to(device)
        self.maps = torch.zeros(2, len(blended), *size, device=device)

    def observe(self, q: torch.Tensor, k: torch.Tensor, scale: float, step: Step) -> None:
        """Adds the words' attention of one cross-attention layer: q (rows, heads, pixels, channels), k (rows, heads,
        tokens, channels). The edited image's is that after the edit, as published."""
        if q.shape[2] != self.size[0] * self.size[1]:
            return
        source, edited = self._blended + len(q) - 2 * self.pairs, self._blended + len(q) - self.pairs
        of_source, of_edited = (_mean_probabilities(q[rows], k[rows], scale) for rows in (source, edited))
        words0, words1 = self._words
        if step.source is None:
            maps1 = _of_words(of_edited, words1)
        else:  # (P A + P* diag(b)) w, as P (A w) + P* (b w)
            maps1 = _of_words(of_source, (step.source.float()[self._blended] @ words1[:, :, None])[:, :, 0])
            if step.edited is not None:
                maps1 = maps1 + _of_words(of_edited, step.edited.float()[self._blended] * words1)
        maps0 = _of_words(of_source, words0)
        self.maps += torch.stack([maps0, maps1]).reshape(self.maps.shape)

    def masks(self, size: tuple[int, int]) -> torch.Tensor:
        """(n, *size) bool of where each pair may change, from the maps so far; everywhere for a pair without blend."""
        wide = max_pool2d(self.maps, 3, stride=1, padding=1)
        maps = interpolate(wide, size=size)
        masks = torch.ones(self.pairs, *size, dtype=torch.bool, device=maps.device)
        masks[self._blended] = (maps / maps.amax((2, 3), keepdim=True) > THRESHOLD).any(0)
        return masks

    def blend(self, latents: torch.Tensor, index: int, steps: int) -> torch.Tensor:
        """Latents (n sources, then n edited; channels, height, width) after step ``index`` (0-based) of ``steps``,
        with the edited ones reset to their sources outside of the masks."""
        if index < int(START * steps):
            return latents
        source, edited = latents.chunk(2)
        masks = self.masks((latents.shape[2], latents.shape[3]))[:, None]
        return torch.cat([source, torch.where(masks, edited, source)])


def _mean_probabilities(q: torch.Tensor, k: torch.Tensor, scale: float) -> torch.Tensor:
    """(rows, pixels, tokens) float32, the mean over heads."""
    return (q.float() @ k.float().transpose(-1, -2) * scale).softmax(-1).mean(1)


def _of_words(probabilities: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
    """(rows, pixels): the attention of some tokens, (rows, tokens) weights."""
    return (probabilities @ words[:, :, None])[:, :, 0]
