"""Pairs that are said alike: two pictures, one caption."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, Literal

from twinset.manifests.candidate import CaptionedCandidate
from twinset.shards.contracts import CaptionFilter, Filter
from twinset.shards.kinds.samples import Drop


class EqualCaptions(Filter):
    """Drops pairs whose captions all say the same; leads with the first two that differ."""

    kind: Literal["equal-captions"]

    judges = "captions"
    reasons: ClassVar[Mapping[str, str]] = {"equal-captions": "no caption of one image differs from those of the other"}

    def open(self) -> EqualCaptionsFilter:
        return EqualCaptionsFilter()


class EqualCaptionsFilter(CaptionFilter):
    """Leads both lists with the first captions that differ, preferring ones that the other picture does not have.

    With (a, b) and (a, c) the pair is b and c: a holds for both pictures. Case, spaces and punctuation do not make a
    difference. Drops the candidate when no two captions differ.
    """

    version: ClassVar[int] = 1

    def __call__(self, candidate: CaptionedCandidate) -> CaptionedCandidate | Drop:
        words0, words1 = list(map(words, candidate.captions0)), list(map(words, candidate.captions1))
        differing = [(i, j) for i in range(len(words0)) for j in range(len(words1)) if words0[i] != words1[j]]
        if not differing:
            return Drop("equal-captions")
        i, j = min(differing, key=lambda pair: (words0[pair[0]] in words1) + (words1[pair[1]] in words0))
        return replace(candidate, captions0=led_by(candidate.captions0, i), captions1=led_by(candidate.captions1, j))


def words(caption: str) -> tuple[str, ...]:
    """What a caption says, whatever its case, spacing and punctuation."""
    folded = unicodedata.normalize("NFKC", caption).casefold()
    # Categories P, Z and C are punctuation, separators and control characters; marks and symbols tell words apart.
    spaced = (" " if unicodedata.category(character)[0] in "PZC" else character for character in folded)
    return tuple("".join(spaced).split())


def led_by(captions: tuple[str, ...], first: int) -> tuple[str, ...]:
    """The captions with the one at a place moved to the front."""
    return (captions[first], *captions[:first], *captions[first + 1 :])
