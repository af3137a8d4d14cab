"""What is asked of prompt-to-prompt: two captions, and how much of the first picture's attention the second keeps."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from twinset.manifests.errors import WrongUse


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
