"""The settings of a selection of negative captions, and what its card says."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from twinset.contracts.doors import UnknownKind
from twinset.contracts.markdown import block_of, cell, table
from twinset.contracts.references import reasons_beside
from twinset.contracts.source import Panels, SourceSettings, StageName, Steps
from twinset.generators.blind_attacks import ALL, attack_table, title_of
from twinset.generators.caption_scores.scorers.scorer import bringing, scorer_of
from twinset.generators.negative_captions.prompts import SUFFIX
from twinset.generators.papers import BIVLC
from twinset.generators.selection.refinement import WORDS
from twinset.shards.contracts import Source

FUNNEL, GAPS, ATTACKS, PICTURE = "funnel.json", "gaps.json", "attacks.json", "gaps.png"
#: Points at which gaps and attacks are measured.
EVERY, BEFORE, AFTER = "all", "before refinement", "selected"

#: What the paper says differently: "the top 35 percentile", and nothing of similarity (BiVLC, section 5.2, step 1).
_OF_THE_PAPER = {"quantile": 0.65, "similarity": None}


def remedy(setting: str, score: str) -> str:
    """What to do where a setting of a selection needs a score that the stage of scores lacks."""
    scorer, _ = scorer_of(score)
    instead = "set it to null" if setting == "similarity" else f"leave {score} out of {setting}"
    return (
        f"Name a scorer of kind {scorer} in that stage, or {instead}; with a language model alone, write "
        "quality: [lm], refine: [lm], similarity: null"
    )


class SelectedNegatives(Source):
    """The best of scored negative captions, without duplicates, refined so that the scores do not tell them apart.

    scores: the stage of scores, or the folder of a finished one.
    rules: ``published`` as the authors' code selects, or ``paper`` as section 5.2 says; the card says what differs.
    quality: scores that negatives are selected by, of any caption scorer. quantile: of each kind that these must reach
    (0-1); by default 0.645 as published, 0.65 of the paper. similarity: cosine of both captions' embeddings that a pair
    must be below; null: not asked, as by default of the paper.
    refine: gaps that adversarial refinement balances; none: no refinement. grid: bins of a gap on each side of zero.
    suffix: of prompts, as of ``negative-prompts``. licence: of the captions.
    """

    kind: Literal["selected-negatives"]
    scores: StageName
    rules: Literal["published", "paper"] = "published"
    quality: tuple[str, ...] = Field(default=("vera", "cola"), min_length=1)
    quantile: float = Field(default=0.645, ge=0, le=1)
    similarity: float | None = Field(default=0.999, ge=-1, le=1)
    refine: tuple[str, ...] = ("vera", "cola")
    grid: int = Field(default=50, ge=1, le=1000)
    suffix: str = SUFFIX
    licence: str = ""

    generator = "twinset.generators.selection.generator:SelectionGenerator"
    makes = "table"
    paper = BIVLC
    group = "caption"
    verb = "selected from"
    reports = (FUNNEL, GAPS, ATTACKS)
    card_template = Path(__file__).with_name("card.md.j2")
    reasons: ClassVar[Mapping[str, str]] = reasons_beside(__file__, "selected-negatives")

    @model_validator(mode="before")
    @classmethod
    def _defaults_of_the_rules(cls, raw: Any) -> Any:
        """What is not set stands as the rules have it."""
        if isinstance(raw, Mapping) and raw.get("rules") == "paper":
            return {**_OF_THE_PAPER, **raw}
        return raw

    @field_validator("quality", "refine")
    @classmethod
    def _known(cls, names: tuple[str, ...], setting: ValidationInfo) -> tuple[str, ...]:
        if len(set(names)) < len(names):
            raise ValueError("name each score once")
        for name in names:
            if setting.field_name == "refine" and name == WORDS:
                continue
            try:
                kind, scorer = scorer_of(name)
            except UnknownKind as error:
                raise ValueError(str(error)) from error
            if scorer.of_pairs:
                raise ValueError(f"{name} of {kind} is one number of both captions; name a score of each")
        return names

    @model_validator(mode="after")
    def _can_be_combined(self) -> SelectedNegatives:
        other = next((name for name in self.quality if not scorer_of(name)[1].probability), None)
        if self.rules == "paper" and other is not None and len(self.quality) > 1:
            raise ValueError(
                f"quality: the paper's rules average scores, and {other} is not a probability; name it alone, or vera "
                "and cola"
            )
        return self

    @property
    def brought(self) -> dict[str, str]:
        axes = [axis for axis in self.refine if axis != WORDS]
        return bringing(self.quality, "quality") | bringing(axes, "refine")

    def misfit(self, earlier: SourceSettings) -> str:
        if (given := earlier.scores_given) is None:
            return ""
        for setting, score in self.scores_needed():
            if score not in (*given, WORDS):
                return f"source.{setting} needs the score {score}, and {self.scores} has only {', '.join(given)}. " + (
                    remedy(setting, score)
                )
        return ""

    def scores_needed(self) -> list[tuple[str, str]]:
        """Settings, each with a score that it needs."""
        needed = [("quality", score) for score in self.quality] + [("refine", axis) for axis in self.refine]
        return needed + ([] if self.similarity is None else [("similarity", "similarity")])

    def how_made(self, reports: Mapping[str, Any]) -> str:
        return block_of(
            self.card_template,
            "how_made",
            source=self,
            reports=reports,
            scores=[title_of(score) for score in self.quality],
            axes=[_title(axis) for axis in self.refine],
            unusual=_unusual(self),
            funnel=_funnel,
            attack_table=attack_table,
        )

    def panels(self, reports: Mapping[str, Any]) -> Mapping[str, Panels]:
        if GAPS not in reports:
            return {}
        return {
            PICTURE: {
                f"caption − negative: {_title(name)}": Steps(
                    one["edges"], {point: one[point] for point in (EVERY, BEFORE, AFTER)}
                )
                for name, one in reports[GAPS].items()
            }
        }


def _title(axis: str) -> str:
    if axis == WORDS:
        return axis
    unit = scorer_of(axis)[1].unit
    return title_of(axis) + (f", {unit}" if unit else "")


def _unusual(source: SelectedNegatives) -> dict[str, str]:
    """What the rules have by default for each setting that is another one."""
    usual = type(source).model_validate({"kind": source.kind, "scores": source.scores, "rules": source.rules})
    names = ("quality", "quantile", "similarity", "refine", "grid")
    return {name: _said(getattr(usual, name)) for name in names if getattr(source, name) != getattr(usual, name)}


def _said(value: Any) -> str:
    return ", ".join(value) if isinstance(value, tuple) else "none" if value is None else f"{value:g}"


def _funnel(source: SelectedNegatives, funnel: Mapping[str, Any]) -> str:
    kinds, rows = funnel["kinds"], []
    before: dict[str, int] = {}
    for step in funnel["steps"]:
        kept = {ALL: sum(step["kept"].values()), **step["kept"]}
        loss = [f"−{before[kind] - kept[kind]:,}" if before else f"{kept[kind]:,}" for kind in (ALL, *kinds)]
        rows.append((step["reason"] or "scored", *loss))
        before = kept
    rows.append(("selected", *(f"{before[kind]:,}" for kind in (ALL, *kinds))))
    text = table(("", ALL, *(kind.replace("_", " ") for kind in kinds)), rows)
    meanings = "".join(
        f"* `{step['reason']}`: {cell(source.reasons[step['reason']])}\n"
        for step in funnel["steps"]
        if step["reason"] in source.reasons
    )
    return f"{text}\n{meanings}"
