"""Captions about motion, which a still frame cannot show (EqBen, B.2)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, Literal

from twinset.contracts.candidate import CaptionedCandidate
from twinset.contracts.kinds.samples import Drop
from twinset.contracts.parts import CaptionFilter, Filter


class MotionWords(Filter):
    """Drops captions that hold one of ``words`` as a whole word: a still frame cannot show motion (EqBen, B.2).

    words: the paper's five, which it gives as examples, and their other spellings.
    """

    kind: Literal["motion-words"]
    words: tuple[str, ...] = ("up", "upward", "upwards", "down", "downward", "downwards", "toward", "towards")

    judges = "captions"
    reasons: ClassVar[Mapping[str, str]] = {
        "motion-word": "every caption of an image has a word of motion, which a still frame cannot show"
    }

    def open(self) -> MotionWordsFilter:
        return MotionWordsFilter(self)


class MotionWordsFilter(CaptionFilter):
    """Takes away captions that hold one of the words; drops the candidate when a side has none left.

    Whole words, in any case: "pick up" and "pick-up" hold ``up``; "cup", "upper" and "upside" do not.
    """

    version: ClassVar[int] = 1

    def __init__(self, settings: MotionWords) -> None:
        words = (r"\s+".join(map(re.escape, word.split())) for word in settings.words)
        # "(?!)" matches nothing: without words, every caption stays.
        either = "|".join(word for word in words if word) or "(?!)"
        self._motion = re.compile(rf"(?<!\w)(?:{either})(?!\w)", re.IGNORECASE)

    def __call__(self, candidate: CaptionedCandidate) -> CaptionedCandidate | Drop:
        captions0, captions1 = self._still(candidate.captions0), self._still(candidate.captions1)
        if not captions0 or not captions1:
            return Drop("motion-word")
        return replace(candidate, captions0=captions0, captions1=captions1)

    def _still(self, captions: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(caption for caption in captions if not self._motion.search(caption))
