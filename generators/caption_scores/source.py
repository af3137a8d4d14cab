"""Scores of captions and their negatives, as a table for the selection of negatives (BiVLC, Appendix B)."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field, field_validator

from twinset.contracts.errors import naming
from twinset.contracts.references import reasons_beside
from twinset.contracts.source import Need, StageName
from twinset.generators.caption_scores.scorers.scorer import CaptionScorer, scorer_of
from twinset.generators.papers import BIVLC
from twinset.models.device import OnDevice, check_installed
from twinset.shards.contracts import Source


class CaptionScores(OnDevice, Source):
    """Scores of each caption and of its negatives.

    negatives: the stage of negative captions, or the folder of a finished one. scorers: one of each kind at most;
    columns of twinset's other ones are null. device, threads: as `OnDevice`. licence: of the captions.
    """

    kind: Literal["caption-scores"]
    negatives: StageName
    scorers: tuple[CaptionScorer, ...] = Field(min_length=1)
    licence: str = ""

    generator = "twinset.generators.caption_scores.generator:ScoreGenerator"
    makes = "table"
    paper = BIVLC
    group = "caption"
    verb = "scored from"
    card_template = Path(__file__).with_name("card.md.j2")
    reasons: ClassVar[Mapping[str, str]] = reasons_beside(__file__, "caption-scores")

    @field_validator("scorers")
    @classmethod
    def _one_of_each(cls, scorers: tuple[CaptionScorer, ...]) -> tuple[CaptionScorer, ...]:
        scores = [one.score for one in scorers]
        if repeated := next((one.kind for one in scorers if scores.count(one.score) > 1), None):
            raise ValueError(f"two scorers of kind {repeated} would fill one column; name one, or two stages")
        for one in scorers:
            if (kind := scorer_of(one.score)[0]) != one.kind:
                raise ValueError(
                    f"{one.kind} calls its score {one.score!r}, as {kind} does; its package must rename it"
                )
        return scorers

    @property
    def scores_given(self) -> tuple[str, ...]:
        return tuple(one.score for one in self.scorers)

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        super().check_inputs(key, needs)
        if "models" in needs:
            for number, scorer in enumerate(self.scorers):
                with naming(f"{key}.scorers.{number}.model"):
                    scorer.weights()
                if "media" in needs:
                    check_installed(f"{key}.scorers.{number}", scorer.libraries(), scorer.extra)
