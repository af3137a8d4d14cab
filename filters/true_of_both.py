"""Captions that are true of both images, as a CLIP model sees them: such a pair has no right answer.

Natural pairs have them: Action Genome lacks relations, YouCook2 says one sentence of two steps. Opt-in: no paper asks
for it, and a limit favours what one model of the kind that is tested takes for right. So pairs are scored and flagged
to be looked at; dropping needs a setting of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from twinset.contracts.kinds.samples import Drop, Score
from twinset.filters.clip_pairs import ClipFilter, ClipSettings

if TYPE_CHECKING:
    from torch import Tensor

REASON = "true-of-both"


class TrueOfBoth(ClipSettings):
    """Scores how much the captions of a pair prefer their own images, by a CLIP model.

    model, device, threads, micro_batch: as `ClipSettings`.
    flag_at_most: pairs of at most this ``preference`` are flagged, and the card counts them; 0: a caption that does not
    prefer its own image. drop_at_most: those of at most this are dropped; without it none is. Both are differences of
    cosines (-2 to 2).
    """

    kind: Literal["true-of-both"]
    flag_at_most: float = Field(default=0.0, ge=-2, le=2)
    drop_at_most: float | None = Field(default=None, ge=-2, le=2)

    scored: ClassVar[Mapping[str, str]] = {
        "preference": "how much nearer a caption is to its own image than to the other one, of the two captions the "
        "smaller, by CLIP (-2 to 2)"
    }
    reasons: ClassVar[Mapping[str, str]] = {
        REASON: "a CLIP model does not tell that a caption belongs to its own image rather than to the other one: it "
        "may be true of both"
    }

    def open(self) -> TrueOfBothFilter:
        return TrueOfBothFilter(self)


class TrueOfBothFilter(ClipFilter):
    """Scores every pair as ``preference``, flags low ones, and drops them where the settings say so."""

    version: ClassVar[int] = 1

    def __init__(self, settings: TrueOfBoth) -> None:
        super().__init__(settings, settings.kind)
        self.flagged, self.dropped = settings.flag_at_most, settings.drop_at_most

    def measure(self, images: Tensor, captions: Tensor) -> Tensor:
        """Preference of each pair: with unit embeddings e of captions and images, the smaller one of

        e(caption0) . (e(image0) - e(image1))  and  e(caption1) . (e(image1) - e(image0))
        """
        step = images[:, 0] - images[:, 1]
        # (pairs, 2): how much nearer each caption is to its own image than to the other one
        preferences = (captions * step[:, None]).sum(2)
        preferences[:, 1] *= -1
        return preferences.amin(1)

    def verdict(self, value: float) -> Score | Drop:
        if self.dropped is not None and value <= self.dropped:
            return Drop(REASON, value)
        return Score("preference", value, REASON if value <= self.flagged else "")
