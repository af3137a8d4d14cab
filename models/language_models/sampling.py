"""Sampling the next tokens of a batch: each row by random numbers of its own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from transformers import LogitsProcessor


class RowSampler(LogitsProcessor):  # type: ignore[misc]
    """Samples a token a row; all others get a score of -inf, so that a search for the likeliest finds it.

    A step takes one number of each row's generator, whatever the other rows are: `transformers` samples all rows from
    one generator, so that an answer would depend on what is answered beside it.

    Args:
        seeds: of the rows.
        temperature: that scores are divided by; above 0.
        top_p: share of the probability (0-1) of the tokens that are sampled from, the likeliest first.
    """

    def __init__(self, seeds: Sequence[int], temperature: float, top_p: float) -> None:
        self._generators = [np.random.Generator(np.random.PCG64(seed)) for seed in seeds]
        self._temperature, self._top_p = temperature, top_p

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """scores: (rows, vocabulary)."""
        chances = torch.softmax(scores.float() / self._temperature, dim=-1)
        # Stable: equal chances stay in the order of the vocabulary.
        chances, tokens = torch.sort(chances, dim=-1, descending=True, stable=True)
        sums = torch.cumsum(chances.double(), dim=-1)
        # A token is taken while those before it have less than top_p, so that there is always one.
        kept = torch.where(sums - chances < self._top_p, sums, -1.0).amax(dim=-1, keepdim=True)
        numbers = torch.tensor([[one.random()] for one in self._generators], dtype=torch.float64, device=scores.device)
        # The first token at which the sum of chances exceeds the number, of all sums up to the last one kept.
        places = torch.searchsorted(sums, numbers * kept, right=True).clamp(max=sums.shape[-1] - 1)
        chosen = torch.gather(tokens, -1, places)
        return torch.full_like(scores, -torch.inf).scatter(-1, chosen, 0.0)
