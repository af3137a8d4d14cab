"""Filters of captions: words of motion, and pairs that are said alike."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import ClassVar, Literal

from twinset.contracts.candidate import CaptionedCandidate
from twinset.contracts.kinds.samples import Drop
from twinset.contracts.parts import Filter


class MotionWords(Filter):
    """Drops captions that hold one of ``words`` as a whole word: a still frame cannot show motion (EqBen, B.2).

    Whole words, in any case: "pick up" and "pick-up" hold ``up``; "cup", "upper" and "upside" do not.

    words: the paper's five, which it gives as examples, and their other spellings.
    """

    kind: Literal["motion-words"]
    words: tuple[str, ...] = ("up", "upward", "upwards", "down", "downward", "downwards", "toward", "towards")

    version: ClassVar[int] = 1
    judges = "captions"
    reasons: ClassVar[Mapping[str, str]] = {
        "motion-word": "every caption of an image has a word of motion, which a still frame cannot show"
    }

    @cached_property
    def _motion(self) -> re.Pattern[str]:
        words = (r"\s+".join(map(re.escape, word.split())) for word in self.words)
        # "(?!)" matches nothing: without words, every caption stays.
        either = "|".join(word for word in words if word) or "(?!)"
        return re.compile(rf"(?<!\w)(?:{either})(?!\w)", re.IGNORECASE)

    def judge(self, candidate: CaptionedCandidate) -> CaptionedCandidate | Drop:
        """Without the captions of motion, or a drop when a side has none left."""
        sides = candidate.captions0, candidate.captions1
        still0, still1 = (tuple(text for text in side if not self._motion.search(text)) for side in sides)
        return replace(candidate, captions0=still0, captions1=still1) if still0 and still1 else Drop("motion-word")


def words(caption: str) -> tuple[str, ...]:
    """What a caption says, whatever its case, spacing and punctuation."""
    folded = unicodedata.normalize("NFKC", caption).casefold()
    # Categories P, Z and C are punctuation, separators and control characters; marks and symbols tell words apart.
    spaced = (" " if unicodedata.category(character)[0] in "PZC" else character for character in folded)
    return tuple("".join(spaced).split())


def led_by_difference(candidate: CaptionedCandidate) -> CaptionedCandidate | None:
    """The candidate with the first captions that differ moved to the front of both lists; None where none differ.

    Rather captions that the other picture does not have: with (a, b) and (a, c) the pair is b and c, since a is true
    of both pictures.
    """
    said0, said1 = ([words(caption) for caption in side] for side in (candidate.captions0, candidate.captions1))
    differing = [(i, j) for i, first in enumerate(said0) for j, second in enumerate(said1) if first != second]
    if not differing:
        return None
    i, j = min(differing, key=lambda pair: (said0[pair[0]] in said1) + (said1[pair[1]] in said0))
    captions0, captions1 = _led_by(candidate.captions0, i), _led_by(candidate.captions1, j)
    return replace(candidate, captions0=captions0, captions1=captions1)


def _led_by(captions: tuple[str, ...], first: int) -> tuple[str, ...]:
    return (captions[first], *captions[:first], *captions[first + 1 :])


class EqualCaptions(Filter):
    """Drops pairs whose captions all say the same; leads with the first two that differ.

    Case, spaces and punctuation do not make a difference.
    """

    kind: Literal["equal-captions"]

    version: ClassVar[int] = 1
    judges = "captions"
    reasons: ClassVar[Mapping[str, str]] = {"equal-captions": "no caption of one image differs from those of the other"}

    def judge(self, candidate: CaptionedCandidate) -> CaptionedCandidate | Drop:
        """The candidate as `led_by_difference`."""
        return led_by_difference(candidate) or Drop("equal-captions")
