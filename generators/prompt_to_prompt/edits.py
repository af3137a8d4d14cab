"""Edits of prompt-to-prompt: whose attention each token of the edited caption takes, and at which steps.

Let P be the source's attention probabilities (pixels x tokens) and P* those of the edited image. Word swap and adding a
phrase (arXiv 2208.01626, section 3.2) give the edited image probabilities that are linear in both:

    P_edited = P A + P* diag(b)

with A (source tokens x edited tokens) and b (edited tokens). Word swap: A pairs the words, b = 0. Adding a phrase: A
pairs the tokens both captions share, b = 1 at new tokens. `Schedule` adds the steps, ``attention`` makes use of the
linearity.

Two rules, chosen as the published code's examples choose: *replacement* (word for word) when both captions have as
many words, else *refinement*: the longest common sequence of tokens, start and end marks included, takes the source's
attention, new tokens keep their own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from transformers import CLIPTokenizer

from twinset.contracts.errors import WrongUse


class EditError(WrongUse):
    """An edit that the model cannot make: a caption is too long for it."""


@dataclass(frozen=True)
class Edit:
    """A pair to draw.

    captions: of the source image and of the edited image.
    cross_replace_steps: the share of the denoising steps, from the first on, in which the edited image takes the
        source's cross-attention (τ in arXiv 2208.01626, section 3.2). 0: never, 1: always.
    self_replace_steps: the same for self-attention at low resolution (the published code's second knob).
    """

    captions: tuple[str, str]
    cross_replace_steps: float = 0.8
    self_replace_steps: float = 0.4


@dataclass(frozen=True)
class Tokens:
    """A caption's token ids with start and end marks, and where each token stands in it: (start, end) in characters,
    empty for the marks. ``length`` is what the model's text encoder pads to."""

    caption: str
    ids: tuple[int, ...]
    offsets: tuple[tuple[int, int], ...]
    length: int

    @classmethod
    def of(cls, caption: str, tokenizer: CLIPTokenizer) -> Tokens:
        """Raises EditError if the caption has more tokens than the text encoder reads: CLIP would cut it silently."""
        encoded = tokenizer(caption, return_offsets_mapping=True)
        ids, length = tuple(encoded["input_ids"]), int(tokenizer.model_max_length)
        if len(ids) > length:
            raise EditError(f"the caption {caption!r} has {len(ids)} tokens, the model reads {length}: shorten it")
        return cls(caption, ids, tuple((start, end) for start, end in encoded["offset_mapping"]), length)

    def within(self, start: int, end: int) -> list[int]:
        """Positions of the tokens of the characters start..end."""
        return [at for at, (first, last) in enumerate(self.offsets) if max(first, start) < min(last, end)]

    def words(self) -> list[tuple[str, list[int]]]:
        """The caption split at white space, each word with the positions of its tokens."""
        return [(match.group(), self.within(*match.span())) for match in re.finditer(r"\S+", self.caption)]


@dataclass(frozen=True)
class Alignment:
    """An edit whose captions are matched.

    source: A, (length, length) float32, rows source tokens; edited: b, (length,) float32; both on the CPU.
    """

    edit: Edit
    kind: Literal["replacement", "refinement"]
    source: torch.Tensor
    edited: torch.Tensor
    captions: tuple[Tokens, Tokens]


def align(edit: Edit, tokenizer: CLIPTokenizer) -> Alignment:
    """The alignment of an edit's captions. Raises EditError if a caption is too long for the model.

    A changed word with as many tokens takes token from token; else each of its tokens takes an equal share of what
    all tokens of the source's word have. Padding goes by position. The published code sends what follows the last
    changed word by position too; where a word of other length moved it, that is another word's place, so here it goes
    by word. With as many tokens in both captions the two agree.
    """
    source, edited = tokens = Tokens.of(edit.captions[0], tokenizer), Tokens.of(edit.captions[1], tokenizer)
    swap = len(source.words()) == len(edited.words())
    if swap:
        pairs = zip(source.words(), edited.words(), strict=True)
        blocks = [(tokens0, tokens1) for (_, tokens0), (_, tokens1) in pairs]
        blocks += [([0], [0]), ([len(source.ids) - 1], [len(edited.ids) - 1])]  # start and end marks
    else:
        blocks = [([at0], [at1]) for at0, at1 in _longest_common_subsequence(source.ids, edited.ids)]
    matrix = torch.zeros(source.length, edited.length)
    for tokens0, tokens1 in blocks:
        if len(tokens0) == len(tokens1):
            matrix[tokens0, tokens1] = 1
        elif tokens0 and tokens1:
            matrix[torch.tensor(tokens0)[:, None], torch.tensor(tokens1)] = 1 / len(tokens1)
    padding = torch.arange(len(edited.ids), edited.length)
    matrix[padding, padding] = 1
    if swap:
        return Alignment(edit, "replacement", matrix, torch.zeros(edited.length), tokens)
    return Alignment(edit, "refinement", matrix, (matrix.sum(0) == 0).float(), tokens)


def _longest_common_subsequence(ids0: Sequence[int], ids1: Sequence[int]) -> list[tuple[int, int]]:
    """Positions of a longest common subsequence; of several, the one a global alignment (Needleman-Wunsch with gap 0,
    match 1, mismatch -1) finds that prefers, from the end, to skip in ``ids1``, then in ``ids0``: the published one."""
    length = [[0] * (len(ids1) + 1) for _ in range(len(ids0) + 1)]
    for i, id0 in enumerate(ids0, 1):
        for j, id1 in enumerate(ids1, 1):
            taken = length[i - 1][j - 1] + (1 if id0 == id1 else -1)
            length[i][j] = max(length[i][j - 1], length[i - 1][j], taken)
    i, j, pairs = len(ids0), len(ids1), []
    while i and j:
        if length[i][j] == length[i][j - 1]:
            j -= 1
        elif length[i][j] == length[i - 1][j]:
            i -= 1
        else:
            i, j = i - 1, j - 1
            pairs.append((i, j))
    return pairs[::-1]


@dataclass(frozen=True)
class Step:
    """What one denoising step injects into a batch of n pairs. What is None, layers can skip.

    source: A, (n, tokens, tokens): what edited images take of the source's cross-attention. None: this
        step edits no cross-attention.
    edited: b, (n, tokens): what they keep of their own. None, with a ``source``: nothing.
    self_attention: (n,) bool, which pairs' edited images take the source's self-attention. None: none.
    """

    source: torch.Tensor | None = None
    edited: torch.Tensor | None = None
    self_attention: torch.Tensor | None = None


class Schedule:
    """The steps of a batch of edits."""

    def __init__(self, alignments: Sequence[Alignment], steps: int) -> None:
        self._source = torch.stack([alignment.source for alignment in alignments])
        self._edited = torch.stack([alignment.edited for alignment in alignments])
        # int() as the published code has it, which counts steps for self-attention and steps + 1 for cross-attention.
        edits = [alignment.edit for alignment in alignments]
        self._cross_until = torch.tensor([int(edit.cross_replace_steps * (steps + 1)) for edit in edits])
        self._self_until = torch.tensor([int(edit.self_replace_steps * steps) for edit in edits])

    def step(self, index: int, device: torch.device, dtype: torch.dtype) -> Step:
        """What step ``index`` (0-based) injects, its matrices on the UNet's device in the UNet's dtype."""
        replaced, self_attention = index < self._cross_until, index < self._self_until
        kept = torch.where(replaced[:, None], self._edited, 1.0)
        return Step(
            source=(self._source * replaced[:, None, None]).to(device, dtype) if replaced.any() else None,
            edited=kept.to(device, dtype) if replaced.any() and kept.any() else None,
            self_attention=self_attention.to(device) if self_attention.any() else None,
        )
