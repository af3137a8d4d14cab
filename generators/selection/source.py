"""Which scored negative captions are kept, by the authors' code or by their paper, refined in the end.

Both sets of rules end in adversarial refinement (`generators.selection.refinement`), pooled over kinds. Before it:

* published (BiVLC's code): similarity below 0.999; then each scorer's quantile of the kind, all of which must be
  reached; then pooled over kinds a full stop at the very end, more than ten characters, the first of equal prompts.
* paper (BiVLC, section 5.2): step 1 takes "the top 35 percentile, according to the combined score of both models",
  here the mean, of each kind; step 2 removes "duplicate negative captions, captions in the form of questions, and
  generations that do not end with a final punctuation mark". It has no step of similarity and no least length.

Equal captions pass the same tests, so whether duplicates are removed before or after these makes no difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field, ValidationInfo, field_validator, model_validator

from twinset.contracts.canonical import canonical_json
from twinset.contracts.doors import UnknownKind
from twinset.contracts.errors import WrongUse
from twinset.contracts.markdown import block_of, cell, table
from twinset.contracts.parts import EXAMPLES
from twinset.contracts.references import reasons_beside
from twinset.contracts.source import Panels, SourceSettings, StageName, Steps
from twinset.generators.caption_scores.scorers.scorer import bringing, scorer_of
from twinset.generators.negative_captions.kinds import KINDS, columns_of, scored_schema
from twinset.generators.negative_captions.prompts import SUFFIX
from twinset.generators.papers import BIVLC
from twinset.generators.selection.refinement import WORDS, ranks_of, reach_of, refined
from twinset.generators.words_alone.guesses import (
    ALL,
    LENGTHS,
    NEGATIVE,
    gaps,
    kind_of_row,
    scores_among,
    title_of,
)
from twinset.shards.contracts import TableStage

if TYPE_CHECKING:
    import polars as pl

REPORT, PICTURE = "selection.json", "gaps.png"
#: Points at which gaps are measured.
EVERY, BEFORE, AFTER = "all", "before refinement", "selected"

BINS = 100  # of a histogram of gaps
MOST_WORDS = 20  # gaps in words that are told apart in a histogram
LEAST_CHARACTERS = 10  # a negative caption must have more (BiVLC as released)

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


class SelectedNegatives(TableStage):
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

    version = 2
    libraries = ("numpy", "polars")
    paper = BIVLC
    group = "caption"
    verb = "selected from"
    reports = (REPORT,)
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

    @cached_property
    def row_schema(self) -> pa.Schema:  # type: ignore[override]  # with the scores that the rules need
        """As the earlier table, with a prompt each."""
        numbers = columns_of(score for _, score in self.scores_needed() if score not in LENGTHS)
        return pa.schema([*scored_schema(numbers), pa.field("prompt", pa.string(), nullable=False)])

    @cached_property
    def report(self) -> dict[str, Any]:
        """What `transform` counts: steps with what is kept by kind, gaps before and after."""
        return {}

    def report_files(self) -> Mapping[str, bytes]:
        return {REPORT: canonical_json(self.report) + b"\n"}

    def transform(self, *tables: pl.LazyFrame) -> pl.LazyFrame:
        """Selected rows in the order of the earlier table.

        Raises `WrongUse` when that lacks scores that the rules need, or nothing is left.
        """
        import polars as pl

        there = tables[0].collect_schema().names()
        tests = {"full-stop": pl.col("negative_caption").str.ends_with(".")}
        tests["long"] = pl.col("negative_caption").str.len_chars() > LEAST_CHARACTERS
        tests["question"] = pl.col("negative_caption").str.strip_chars_end().str.ends_with("?")
        tests["final-punctuation"] = pl.col("negative_caption").str.contains(r"[.!]\s*$")
        scores = scores_among(there)
        rows = (
            tables[0]
            .with_row_index("row")
            .select(
                "row",
                "key",
                "identity",
                kind=kind_of_row(),
                prompt=pl.col("negative_caption").str.replace_all(".", "", literal=True),
                text=pl.col("negative_caption"),
                similarity=_finite("similarity") if "similarity" in there else None,
                **{f"negative {score}": _finite(score + NEGATIVE) for score in scores},
                **{f"gap {name}": gap for name, gap in gaps("caption", "negative_caption", scores).items()},
                **tests,
            )
            .collect()
        )
        if not rows.height:
            raise WrongUse(f"{self.earlier().where}: has no rows to select from; name other negative captions")
        self._refuse_absent(rows)
        steps = list(self._steps(rows))
        self._count(rows, steps)
        chosen = rows.select("row").filter(steps[-1][1])
        numbers = [field.name for field in self.row_schema if field.type == pa.float64()]
        return (
            tables[0]
            .with_row_index("row")
            .join(chosen.lazy(), on="row", how="semi", maintain_order="left")
            .with_columns(
                *(
                    _finite(name).alias(name) if name in there else pl.lit(None, pl.Float64).alias(name)
                    for name in numbers
                ),
                prompt=pl.col("negative_caption").str.replace_all(".", "", literal=True) + self.suffix,
            )
            .select(pl.exclude("group"))
        )

    def _refuse_absent(self, rows: pl.DataFrame) -> None:
        """Raise `WrongUse` for scores that no row has: the earlier stage was not asked for them."""
        column = {"quality": "negative {}", "refine": "gap {}", "similarity": "{}"}
        for setting, score in self.scores_needed():
            name = column[setting].format(score)
            if name not in rows.columns or rows[name].null_count() == rows.height:
                raise WrongUse(
                    f"{self.stage.name}: source.{setting} needs scores that {self.earlier().where} lacks: its {score} "
                    f"is no number in any row. {remedy(setting, score)}"
                )

    def _steps(self, rows: pl.DataFrame) -> Iterator[tuple[str, pl.Series]]:
        """The reason of each step, and whether it and those before it keep a row; the rules of this class's module."""
        import polars as pl

        kept = pl.repeat(True, rows.height, eager=True)

        def narrowed(reason: str, passed: pl.Series) -> tuple[str, pl.Series]:
            nonlocal kept
            before, kept = kept, kept & passed.fill_null(False)
            if not kept.any():
                raise WrongUse(self._nothing_left(reason, int(before.sum())))
            return reason, kept

        asked = [f"negative {score}" for score in self.quality] + [f"gap {axis}" for axis in self.refine]
        asked += ["similarity"] if self.similarity is not None else []
        yield narrowed("no-score", rows.select(pl.all_horizontal(pl.col(asked).is_not_null())).to_series())
        if self.similarity is not None:
            yield narrowed("same-meaning", rows["similarity"] < self.similarity)
        quality = [pl.col(f"negative {score}") for score in self.quality]
        quality = [pl.mean_horizontal(quality)] if self.rules == "paper" else quality
        least = [pl.when("kept").then(score).quantile(self.quantile, "linear").over("kind") for score in quality]
        reached = pl.all_horizontal(score >= bound for score, bound in zip(quality, least, strict=True))
        yield narrowed("low-score", rows.with_columns(kept=kept).select(reached).to_series())
        if self.rules == "published":
            yield narrowed("no-full-stop", rows["full-stop"])
            yield narrowed("too-short", rows["long"])
        else:
            yield narrowed("question", ~rows["question"])
            yield narrowed("no-final-punctuation", rows["final-punctuation"])
        ordered = rows.filter(kept).sort(_place_of_kind(), "row")
        first = ordered.unique("prompt" if self.rules == "published" else "text", keep="first", maintain_order=True)
        yield narrowed("repeated", rows["row"].is_in(first["row"].implode()))
        if self.refine:
            left = rows.filter(kept)
            grid = left.select(pl.col(f"gap {axis}").alias(f"gap{place}") for place, axis in enumerate(self.refine))
            ranks = pl.Series("rank", ranks_of(self.stage.seed, self.stage.name, left["key"].to_list()))
            balanced = refined(grid.with_columns(ranks), [reach_of(axis) for axis in self.refine], self.grid)
            yield narrowed("unbalanced", rows["row"].is_in(left["row"].filter(balanced).implode()))

    def _nothing_left(self, reason: str, before: int) -> str:
        where = self.earlier().where
        advice = _REMEDIES[reason].format(where=where, quantile=self.quantile, grid=self.grid)
        return (
            f"{self.stage.name}: of the {before:,} negative captions of {where} that came so far, every one is left "
            f"out as {reason} ({self.reasons[reason]}); {advice}"
        )

    def _count(self, rows: pl.DataFrame, steps: list[tuple[str, pl.Series]]) -> None:
        """Fill `excluded` and `report`."""
        import polars as pl

        every = pl.repeat(True, rows.height, eager=True)
        points = {EVERY: every, BEFORE: every, AFTER: steps[-1][1]}
        before = every
        for reason, kept in steps:
            lost = before & ~kept
            for identity in rows.filter(lost).head(EXAMPLES // len(steps))["identity"]:
                self.excluded.add(reason, f"{self.scores} {identity}")
            self.excluded[reason] = int(lost.sum())
            before = kept
            points[BEFORE] = kept if reason != "unbalanced" else points[BEFORE]
        kinds = rows.select("kind").unique().sort(_place_of_kind(), "kind")["kind"].to_list()
        funnel = [("", every), *steps]
        counts = [dict(rows.filter(kept).group_by("kind").len().iter_rows()) for _, kept in funnel]
        names = [name for name in rows.columns if name.startswith("gap ")]
        measured = rows.select("kind", **{name.removeprefix("gap "): name for name in names})
        self.report.clear()
        self.report |= {
            "rules": self.rules,
            "kinds": kinds,
            "steps": [
                {"reason": reason, "kept": {kind: count.get(kind, 0) for kind in kinds}}
                for (reason, _), count in zip(funnel, counts, strict=True)
            ],
            "gaps": {
                name: _histogram(name, {point: measured[name].filter(kept) for point, kept in points.items()})
                for name in measured.columns
                if name not in ("kind", "characters") and measured[name].null_count() < measured.height
            },
        }

    def how_made(self, reports: Mapping[str, Any]) -> str:
        return block_of(
            self.card_template,
            "how_made",
            source=self,
            report=reports.get(REPORT),
            scores=[title_of(score) for score in self.quality],
            axes=[_title(axis) for axis in self.refine],
            funnel=_funnel,
        )

    def panels(self, reports: Mapping[str, Any]) -> Mapping[str, Panels]:
        if REPORT not in reports:
            return {}
        return {
            PICTURE: {
                f"caption − negative: {_title(name)}": Steps(
                    counts["edges"], {point: counts[point] for point in (EVERY, BEFORE, AFTER)}
                )
                for name, counts in reports[REPORT]["gaps"].items()
            }
        }


_REMEDIES = {
    "no-score": "see which scores {where} has, and name these in quality and refine",
    "same-meaning": "raise similarity, or set it to null",
    "low-score": "lower quantile, now {quantile:g}",
    "no-full-stop": "bring the captions into one format first, with negative-prompts or rules: paper",
    "too-short": "look at its negative captions",
    "question": "look at its negative captions",
    "no-final-punctuation": "bring the captions into one format first, with negative-prompts",
    "unbalanced": "no gap has an opposite one; lower grid, now {grid}, lower quantile, or set refine to []",
}


def _finite(name: str) -> pl.Expr:
    """A column of scores, null where one is NaN or infinite."""
    import polars as pl

    return pl.when(pl.col(name).is_finite()).then(pl.col(name))


def _place_of_kind() -> pl.Expr:
    """The place of a row's kind in the papers' tables; other kinds come after these."""
    import polars as pl

    return pl.col("kind").replace_strict({name: place for place, name in enumerate(KINDS)}, default=len(KINDS))


def _histogram(name: str, values: Mapping[str, pl.Series]) -> dict[str, list[float]]:
    reach = reach_of(name)
    edges = np.linspace(-reach, reach, BINS + 1) if reach else np.arange(-MOST_WORDS - 0.5, MOST_WORDS + 1)
    lowest, highest = (-reach, reach) if reach else (-MOST_WORDS, MOST_WORDS)
    counts = {
        point: np.histogram(series.drop_nulls().clip(lowest, highest).to_numpy(), edges)[0].tolist()
        for point, series in values.items()
    }
    return {"edges": [round(edge, 4) for edge in edges.tolist()], **counts}


def _title(axis: str) -> str:
    if axis == WORDS:
        return axis
    unit = scorer_of(axis)[1].unit
    return title_of(axis) + (f", {unit}" if unit else "")


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
