"""The settings of a selection of negative captions, and what its card says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from twinset.generators.negative_captions.prompts import SUFFIX
from twinset.generators.negative_captions.replay import SUGARCREPE
from twinset.generators.papers import BIVLC
from twinset.manifests.panels import Panels
from twinset.manifests.source import SourceSettings, StageName
from twinset.shards.contracts import Context, Source

if TYPE_CHECKING:
    from twinset.generators.selection.generator import SelectionGenerator

FUNNEL, GAPS, ATTACKS, PICTURE = "funnel.json", "gaps.json", "attacks.json", "gaps.png"
Scorer = Literal["vera", "cola", "lm"]
Axis = Literal["vera", "cola", "lm", "words"]

#: What the paper says differently: "the top 35 percentile", and nothing of similarity (BiVLC, section 5.2, step 1).
_OF_THE_PAPER = {"quantile": 0.65, "similarity": None}


def remedy(setting: str, score: str) -> str:
    """What to do where a setting of a selection needs a score that the stage of scores lacks."""
    scorer = {"similarity": "clip", "lm": "language-model"}.get(score, score)
    instead = "set it to null" if setting == "similarity" else f"leave {score} out of {setting}"
    return (
        f"Name a scorer of kind {scorer} in that stage, or {instead}; with a language model alone, write "
        "quality: [lm], refine: [lm], similarity: null"
    )


class SelectedNegatives(Source):
    """The best of scored negative captions, without duplicates, refined so that the scores do not tell them apart.

    scores: the stage of scores, or the folder of a finished one.
    rules: ``published`` as the authors' code selects, or ``paper`` as section 5.2 says; the card says what differs.
    quality: scores that negatives are selected by. quantile: of each kind that these must reach (0-1); by default 0.645
    as published, 0.65 of the paper. similarity: cosine of both captions' embeddings that a pair must be below; null:
    not asked, as by default of the paper.
    refine: gaps that adversarial refinement balances; none: no refinement. grid: bins of a gap on each side of zero.
    suffix: of prompts, as of ``negative-prompts``. licence: of the captions.
    """

    kind: Literal["selected-negatives"]
    scores: StageName
    rules: Literal["published", "paper"] = "published"
    quality: tuple[Scorer, ...] = Field(default=("vera", "cola"), min_length=1)
    quantile: float = Field(default=0.645, ge=0, le=1)
    similarity: float | None = Field(default=0.999, ge=-1, le=1)
    refine: tuple[Axis, ...] = ("vera", "cola")
    grid: int = Field(default=50, ge=1, le=1000)
    suffix: str = SUFFIX
    licence: str = "the captions stay under the terms of their source"

    makes = "table"
    reference = SUGARCREPE
    paper = BIVLC
    group = "caption"
    verb = "selected from"
    reports = (FUNNEL, GAPS, ATTACKS)
    reasons: ClassVar[Mapping[str, str]] = {
        "no-score": "a score that the rules need is absent or not a number",
        "same-meaning": "both captions mean the same to CLIP's text encoder",
        "low-score": "the negative caption's scores are below the quantile of its kind",
        "no-full-stop": "the negative caption does not end with a full stop",
        "question": "the negative caption is a question",
        "no-final-punctuation": "the negative caption does not end with a full stop or an exclamation mark",
        "too-short": "the negative caption has at most ten characters",
        "repeated": "an earlier negative caption gives the same prompt; kinds in the order of the papers' tables",
        "unbalanced": "adversarial refinement: more pairs have this gap of scores than the opposite one",
    }

    @model_validator(mode="before")
    @classmethod
    def _defaults_of_the_rules(cls, raw: Any) -> Any:
        """What is not set stands as the rules have it."""
        if isinstance(raw, Mapping) and raw.get("rules") == "paper":
            return {**_OF_THE_PAPER, **raw}
        return raw

    @field_validator("quality", "refine")
    @classmethod
    def _once(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(names)) < len(names):
            raise ValueError("name each score once")
        return names

    @model_validator(mode="after")
    def _can_be_combined(self) -> SelectedNegatives:
        if self.rules == "paper" and "lm" in self.quality and len(self.quality) > 1:
            raise ValueError(
                "quality: the paper's rules average scores, and lm is no probability; name lm alone, or vera and cola"
            )
        return self

    def misfit(self, earlier: SourceSettings) -> str:
        """As `SourceSettings.misfit`: a score that the rules need and no scorer of that stage gives."""
        if (given := earlier.scores_given) is None:
            return ""
        for setting, score in self.scores_needed():
            if score not in (*given, "words"):
                return f"source.{setting} needs the score {score}, and {self.scores} has only {', '.join(given)}. " + (
                    remedy(setting, score)
                )
        return ""

    def scores_needed(self) -> list[tuple[str, str]]:
        """Settings, each with a score that it needs."""
        needed = [("quality", score) for score in self.quality] + [("refine", axis) for axis in self.refine]
        return needed + ([] if self.similarity is None else [("similarity", "similarity")])

    def how_made(self, reports: Mapping[str, Any]) -> str:
        """As `SourceSettings.how_made`; the funnel and the attacks where their reports are at hand."""
        from twinset.generators.selection.report import how_selected

        return how_selected(self, reports)

    def panels(self, reports: Mapping[str, Any]) -> Mapping[str, Panels]:
        """As `SourceSettings.panels`: gaps before and after refinement."""
        from twinset.generators.selection.report import gap_panels

        return {PICTURE: gap_panels(reports[GAPS])} if GAPS in reports else {}

    def open(self, context: Context) -> SelectionGenerator:
        """As `Source.open`."""
        from twinset.generators.selection.generator import SelectionGenerator

        return SelectionGenerator(self, context)
