"""Local blend: the change stays where the attention of the changed words is (published code, ``LocalBlend``).

Not in arXiv 2208.01626, but in the code published with it: cross-attention maps of the words, averaged over heads,
layers of one resolution and the steps so far, are widened by a pixel and cut at 0.3 of their greatest value. Latents
outside of both masks, the source's and the edited image's, are reset to the source's. Where an edit names words as its
`region` only, the same masks tell where it is, and nothing is reset.
"""

from collections.abc import Sequence

import torch
from torch.nn.functional import interpolate, max_pool2d

from twinset.generators.prompt_to_prompt.alignment import Alignment, Step
from twinset.generators.prompt_to_prompt.edits import Edit

THRESHOLD = 0.3  # of a map's greatest value
START = 0.2  # of the steps, before which attention is too vague to cut at


class LocalBlend:
    """Maps and masks of a batch of n pairs.

    size: (height, width) of the feature maps whose cross-attention is averaged. Only layers of this size are looked
    at, and only there are probabilities computed: 2 x heads x height x width x tokens floats a pair, freed at once. All
    pairs are, also those without words: what one asks for must not change the last bits of another.
    maps: (2, n, *size), the words' attention in source and edited images, summed over layers and steps.
    """

    def __init__(
        self, edits: Sequence[Edit], alignments: Sequence[Alignment], size: tuple[int, int], device: torch.device
    ) -> None:
        self.size = size
        self.pairs = len(edits)
        words = torch.zeros(2, len(edits), alignments[0].captions[0].length, 1)
        for n, (edit, alignment) in enumerate(zip(edits, alignments, strict=True)):
            for side, word in enumerate(edit.where or ()):
                words[side, n, alignment.captions[side].of_word(word)] = 1
        self._words = words.to(device)
        self._everywhere = torch.tensor([edit.where is None for edit in edits], device=device)
        self._never_reset = torch.tensor([edit.blend is None for edit in edits], device=device)
        self.maps = torch.zeros(2, len(edits), *size, device=device)

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
