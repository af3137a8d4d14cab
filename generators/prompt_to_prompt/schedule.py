"""Which step replaces what: the edits of a batch as the matrices that attention layers apply at each denoising step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from generators.prompt_to_prompt.alignment import Alignment
from generators.prompt_to_prompt.edits import Edit


@dataclass(frozen=True)
class Step:
    """What one denoising step injects into a batch of n pairs. What is None, layers can skip.

    source: A of ``alignment``, (n, tokens, tokens): what edited images take of the source's cross-attention. None: this
        step edits no cross-attention.
    edited: b, (n, tokens): what they keep of their own. None, with a ``source``: nothing.
    self_attention: (n,) bool, which pairs' edited images take the source's self-attention. None: none.
    """

    source: torch.Tensor | None
    edited: torch.Tensor | None
    self_attention: torch.Tensor | None


class Schedule:
    """The steps of a batch of edits. All that depends on captions is computed once, on the CPU in float32."""

    def __init__(self, edits: Sequence[Edit], alignments: Sequence[Alignment], steps: int) -> None:
        self.steps = steps
        self._replaced = torch.stack([replaced_steps(*pair, steps) for pair in zip(edits, alignments, strict=True)], 1)
        weights = torch.stack([equalizer(*pair) for pair in zip(edits, alignments, strict=True)])
        self._source = torch.stack([alignment.source for alignment in alignments]) * weights[:, None, :]
        self._edited = torch.stack([alignment.edited for alignment in alignments]) * weights
        # int() as the published code has it, which counts steps for self-attention and steps + 1 for cross-attention.
        self._self_until = torch.tensor([int(steps * edit.self_replace_steps) for edit in edits])

    def step(self, index: int, device: torch.device, dtype: torch.dtype) -> Step:
        """What step ``index`` (0-based) injects, its matrices on the UNet's device in the UNet's dtype."""
        replaced = self._replaced[index]
        source = self._source * replaced[:, None, :]
        edited = self._edited * replaced + (1 - replaced)
        self_attention = index < self._self_until
        return Step(
            source=source.to(device, dtype) if replaced.any() else None,
            edited=edited.to(device, dtype) if replaced.any() and edited.any() else None,
            self_attention=self_attention.to(device) if self_attention.any() else None,
        )


def replaced_steps(edit: Edit, alignment: Alignment, steps: int) -> torch.Tensor:
    """(steps, tokens) of 0 and 1: whether a step replaces the attention of a token of the edited caption."""
    edited = alignment.captions[1]
    until = torch.full((edited.length,), int(edit.cross_replace_steps * (steps + 1)))
    for word, share in edit.word_replace_steps.items():
        until[edited.of_word(word)] = int(share * (steps + 1))
    return (torch.arange(steps)[:, None] < until).float()


def equalizer(edit: Edit, alignment: Alignment) -> torch.Tensor:
    """(tokens,) factors on the attention of the edited caption's tokens: 1 where nothing else is asked."""
    edited = alignment.captions[1]
    factors = torch.ones(edited.length)
    for word, factor in edit.weights.items():
        factors[edited.of_word(word)] = factor
    return factors
