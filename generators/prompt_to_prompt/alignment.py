"""Which token of the source caption each token of the edited caption takes its attention from, and at which steps.

Let P be the source's attention probabilities (pixels x tokens) and P* those of the edited image. Each edit of
arXiv 2208.01626, section 3.2 gives the edited image probabilities that are linear in both:

    P_edited = P A + P* diag(b)

with A (source tokens x edited tokens) and b (edited tokens). Word swap: A pairs the words, b = 0. Adding a phrase:
A pairs the tokens both captions share, b = 1 at new tokens. Re-weighting scales the columns. `Schedule` puts the
steps in, ``attention`` makes use of the linearity.

Two rules, chosen as the published code's examples choose: *replacement* (word for word) when both captions have as
many words, else *refinement*: the longest common sequence of tokens, start and end marks included, takes the source's
attention, new tokens keep their own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import torch
from transformers import CLIPTokenizer

from twinset.contracts.errors import WrongUse


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

    def of_word(self, word: str) -> list[int]:
        """Positions of the tokens of a word or phrase, wherever it occurs; EditError if it is not in the caption."""
        return [at for span in occurrences(self.caption, word) for at in self.within(*span)]

    def words(self) -> list[tuple[str, list[int]]]:
        """The caption split at white space, each word with the positions of its tokens."""
        return [(match.group(), self.within(*match.span())) for match in re.finditer(r"\S+", self.caption)]


@dataclass(frozen=True)
class Alignment:
    """source: A, (length, length) float32, rows source tokens; edited: b, (length,) float32; both on the CPU."""

    kind: Literal["replacement", "refinement"]
    source: torch.Tensor
    edited: torch.Tensor
    captions: tuple[Tokens, Tokens]


def align(captions: tuple[str, str], tokenizer: CLIPTokenizer) -> Alignment:
    """The alignment of an edited caption with its source. Raises EditError if a caption is too long for the model.

    A changed word with as many tokens takes token from token; else each of its tokens takes an equal share of what
    all tokens of the source's word have. Padding goes by position. The published code sends what follows the last
    changed word by position too; where a word of other length moved it, that is another word's place, so here it goes
    by word. With as many tokens in both captions the two agree.
    """
    source, edited = tokens = Tokens.of(captions[0], tokenizer), Tokens.of(captions[1], tokenizer)
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
        return Alignment("replacement", matrix, torch.zeros(edited.length), tokens)
    return Alignment("refinement", matrix, (matrix.sum(0) == 0).float(), tokens)


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


class EditError(WrongUse):
    """An edit that cannot be made: a word that is not in its caption, a caption too long for the model."""


@dataclass(frozen=True)
class Edit:
    """One pair to draw. Words are matched whole and without regard to case; phrases of several words are fine.

    captions: of the source image and of the edited image.
    cross_replace_steps: the share of the denoising steps, from the first on, in which the edited image takes the
        source's cross-attention (τ in arXiv 2208.01626, section 3.2). 0: never, 1: always.
    self_replace_steps: the same for self-attention at low resolution (the published code's second knob).
    word_replace_steps: word of the second caption -> its own share of steps, where it differs from
        ``cross_replace_steps`` (the published code's ``{"default_": 1.0, "lion": 0.4}``).
    blend: a word of each caption that says where the change belongs. The rest of the edited image's latents is reset
        to the source's after each step (local blend). None: nothing is reset.
    region: the same words where nothing is to be reset: their attention only tells where the change is (`Made.masks`).
        With ``blend`` they are known, and can be left out.
    weights: word of the second caption -> factor on its attention (re-weighting, section 3.2, the published code's
        equalizer); it acts while attention is replaced. Negative factors are allowed.

    Raises EditError if a share is outside 0..1, a factor is not finite, a word is not in its caption, or blend and
    region are not the same words.
    """

    captions: tuple[str, str]
    cross_replace_steps: float = 0.8
    self_replace_steps: float = 0.4
    word_replace_steps: Mapping[str, float] = field(default_factory=dict)
    blend: tuple[str, str] | None = None
    weights: Mapping[str, float] = field(default_factory=dict)
    region: tuple[str, str] | None = None

    @property
    def where(self) -> tuple[str, str] | None:
        """A word of each caption whose attention tells where the change is, be it kept there or not."""
        return self.blend or self.region

    @classmethod
    def plain(cls, captions: tuple[str, str]) -> Edit:
        """Both captions from one noise with nothing replaced: two independent images, to compare an edit with."""
        return cls(captions, cross_replace_steps=0.0, self_replace_steps=0.0)

    def __post_init__(self) -> None:
        shares = {"cross_replace_steps": self.cross_replace_steps, "self_replace_steps": self.self_replace_steps}
        shares |= {f"word_replace_steps[{word!r}]": share for word, share in self.word_replace_steps.items()}
        for name, share in shares.items():
            if not 0 <= share <= 1:
                raise EditError(f"{name} is {share}: it is a share of the denoising steps, give it between 0 and 1")
        for word, factor in self.weights.items():
            if not math.isfinite(factor):
                raise EditError(f"weights[{word!r}] is {factor}: give a finite factor, 1 changes nothing")
        if None not in (self.blend, self.region) and self.blend != self.region:
            raise EditError(
                f"blend is {self.blend}, region {self.region}: the change is in one place, leave region out"
            )
        for caption, word in zip(self.captions, self.where or (), strict=False):
            occurrences(caption, word)
        for word in (*self.word_replace_steps, *self.weights):
            occurrences(self.captions[1], word)


def occurrences(caption: str, word: str) -> list[tuple[int, int]]:
    """Where a word or phrase stands in a caption: (start, end) in characters, left to right.

    A word ends at punctuation too, so that "dog" is found in "A photo of a dog." Raises EditError if it is nowhere.
    """
    if word.strip():
        whole_word = rf"(?<!\w){re.escape(word.strip())}(?!\w)"
        found = [match.span() for match in re.finditer(whole_word, caption, re.IGNORECASE)]
        if found:
            return found
    raise EditError(f"{word!r} is not a word of the caption {caption!r}: name a word as it is written there")
