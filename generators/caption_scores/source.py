"""Scores of captions and their negatives, as a table for the selection of negatives (BiVLC, Appendix B)."""

from collections.abc import Collection, Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field, field_validator

from twinset.generators.caption_scores.scorers.clip import Clip
from twinset.generators.caption_scores.scorers.cola import Cola
from twinset.generators.caption_scores.scorers.language_model import LanguageModel
from twinset.generators.caption_scores.scorers.vera import Vera
from twinset.generators.papers import BIVLC
from twinset.manifests.errors import WrongUse
from twinset.manifests.source import Need, Reference, StageName
from twinset.models.device import OnDevice, check_installed
from twinset.shards.contracts import Source

#: What a selection calls the score of each kind of scorer.
SCORE_OF = {"vera": "vera", "cola": "cola", "clip": "similarity", "language-model": "lm"}
AnyScorer = Annotated[Vera | Cola | Clip | LanguageModel, Field(discriminator="kind")]


class CaptionScores(OnDevice, Source):
    """Scores of each caption and of its negatives.

    negatives: the stage of negative captions, or the folder of a finished one. scorers: one of each kind at most;
    columns of the others are null. device, threads: as `OnDevice`. licence: of the captions.
    """

    kind: Literal["caption-scores"]
    negatives: StageName
    scorers: tuple[AnyScorer, ...] = Field(min_length=1)
    licence: str = "the captions stay under the terms of their source"

    generator = "twinset.generators.caption_scores.generator:ScoreGenerator"
    makes = "table"
    reference = Reference(
        "VERA, CoLA and CLIP as scorers of captions",
        "https://arxiv.org/abs/2305.03695",
        """@inproceedings{liu2023vera,
  title     = {Vera: A General-Purpose Plausibility Estimation Model for Commonsense Statements},
  author    = {Liu, Jiacheng and Wang, Wenya and Wang, Dianzhuo and Smith, Noah A. and Choi, Yejin and
               Hajishirzi, Hannaneh},
  booktitle = {EMNLP},
  year      = {2023}
}

@article{warstadt2019cola,
  title     = {Neural Network Acceptability Judgments},
  author    = {Warstadt, Alex and Singh, Amanpreet and Bowman, Samuel R.},
  journal   = {Transactions of the Association for Computational Linguistics},
  volume    = {7},
  year      = {2019}
}""",
    )
    paper = BIVLC
    group = "caption"
    verb = "scored from"
    reasons: ClassVar[Mapping[str, str]] = {
        "no-text": "the caption or its negative is empty",
        "score-not-finite": "a model gives no number for the caption or its negative",
    }

    @field_validator("scorers")
    @classmethod
    def _one_of_each(cls, scorers: tuple[AnyScorer, ...]) -> tuple[AnyScorer, ...]:
        kinds = [one.kind for one in scorers]
        if repeated := next((kind for kind in kinds if kinds.count(kind) > 1), None):
            raise ValueError(f"two scorers of kind {repeated} would fill one column; name one, or two stages")
        return scorers

    @property
    def scores_given(self) -> tuple[str, ...]:
        """As `SourceSettings.scores_given`."""
        return tuple(SCORE_OF[one.kind] for one in self.scorers)

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        """As `Source.check_inputs`: the files of the models, and what loads them."""
        super().check_inputs(key, needs)
        if "models" in needs:
            for number, scorer in enumerate(self.scorers):
                try:
                    scorer.weights()
                except WrongUse as error:
                    raise WrongUse(f"{key}.scorers.{number}.model: {error}") from error
                if "media" in needs:
                    check_installed(f"{key}.scorers.{number}", scorer.libraries(), scorer.extra)

    def notes(self) -> str:
        """What no count tells of scores."""
        return (
            "* Scores are those of models, and share their biases: a caption that is rare is not a bad one.\n"
            "* A text longer than a model reads is scored by its beginning; the column `truncated` names the models.\n"
        )
