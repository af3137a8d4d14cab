"""Which scored negative captions are kept, by the authors' code or by their paper, refined in the end.

Both sets of rules end in adversarial refinement (`balanced`), pooled over kinds. Before it:

* published (BiVLC's code): similarity below 0.999; then each scorer's quantile of the kind, all of which must be
  reached; then pooled over kinds a full stop at the very end, more than ten characters, the first of equal prompts.
* paper (BiVLC, section 5.2): step 1 takes "the top 35 percentile, according to the combined score of both models",
  here the mean, of each kind; step 2 removes "duplicate negative captions, captions in the form of questions, and
  generations that do not end with a final punctuation mark". It has no step of similarity and no least length.

Equal captions pass the same tests, so whether duplicates are removed before or after these makes no difference.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field, field_validator, model_validator

from twinset.contracts.canonical import canonical_json
from twinset.contracts.errors import WrongUse
from twinset.contracts.parts import EXAMPLES
from twinset.contracts.source import SourceSettings, StageName
from twinset.generators.caption_scores.scorers.scorer import scorer_of
from twinset.generators.caption_scores.source import CaptionScores
from twinset.generators.markdown import table
from twinset.generators.mixing import mixed
from twinset.generators.negative_captions.kinds import KINDS, columns_of, scored_schema
from twinset.generators.negative_captions.prompts import SUFFIX
from twinset.generators.papers import BIVLC
from twinset.generators.reasons import reasons_beside
from twinset.generators.text_pairs import named_once
from twinset.generators.words_alone.guesses import gaps, kind_of_row, scores_among, title_of
from twinset.shards.contracts import TableStage

if TYPE_CHECKING:
    import polars as pl

REPORT, PICTURE = "selection.json", "gaps.png"
#: Points at which gaps are measured.
EVERY, BEFORE, AFTER = "all", "before refinement", "selected"

HASHED = 16  # characters of a key that are a hash
COARSE = 10  # bins of a gap where the gap of another score is exactly zero, as SugarCrepe's code has it
BINS = 100  # of a histogram of gaps
LEAST_CHARACTERS = 10  # a negative caption must have more (BiVLC as released)

#: What the paper says differently: "the top 35 percentile", and nothing of similarity (BiVLC, section 5.2, step 1).
_OF_THE_PAPER = {"quantile": 0.65, "similarity": None}


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

    version = 3
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
    def _known(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in named_once(names):
            kind, scorer = scorer_of(name)
            if scorer.of_pairs:
                raise ValueError(f"{name} of {kind} is one number of both captions; name a score of each")
        return names

    def misfit(self, earlier: SourceSettings) -> str:
        given = earlier.scores_given if isinstance(earlier, CaptionScores) else None
        for setting, score in self.scores_needed():
            if given is not None and score not in given:
                return (
                    f"source.{setting} needs the score {score}, and {self.scores} has only {', '.join(given)}. Name a "
                    f"scorer of kind {scorer_of(score)[0]} in that stage, or other scores here"
                )
        return ""

    def scores_needed(self) -> list[tuple[str, str]]:
        """Settings, each with a score that it needs."""
        needed = [("quality", score) for score in self.quality] + [("refine", axis) for axis in self.refine]
        return needed + ([] if self.similarity is None else [("similarity", "similarity")])

    @cached_property
    def row_schema(self) -> pa.Schema:  # type: ignore[override]  # with the scores that the rules need
        """As the earlier table, with a prompt each."""
        numbers = columns_of(score for _, score in self.scores_needed())
        return pa.schema([*scored_schema(numbers), pa.field("prompt", pa.string(), nullable=False)])

    @cached_property
    def report(self) -> dict[str, Any]:
        """What `transform` counts: steps with what is kept by kind, gaps before and after."""
        return {}

    def report_files(self) -> Mapping[str, bytes]:
        return {REPORT: canonical_json(self.report) + b"\n"}

    def transform(self, *tables: pl.LazyFrame) -> pl.LazyFrame:
        """Selected rows in the order of the earlier table. Raises `WrongUse` when nothing is left."""
        import polars as pl

        there = tables[0].collect_schema().names()
        numbers = [field.name for field in self.row_schema if field.type == pa.float64()]
        finite = (pl.when(pl.col(name).is_finite()).then(pl.col(name)).alias(name) for name in numbers if name in there)
        absent = (pl.lit(None, pl.Float64).alias(name) for name in numbers if name not in there)
        prompt = pl.col("negative_caption").str.replace_all(".", "", literal=True)
        scored = tables[0].with_row_index("row").with_columns(*finite, *absent, prompt=prompt)
        measured = gaps("caption", "negative_caption", scores_among([*there, *numbers]))
        rows = (
            scored.with_columns(kind=kind_of_row())
            .select(
                *("row", "key", "identity", "kind", "prompt", *numbers),
                text="negative_caption",
                # Of equal captions the first stays; kinds come in the order of the papers' tables, others after these.
                order=_place_of_kind().cast(pl.UInt64) * 2**32 + pl.col("row"),
                **{f"gap {name}": gap for name, gap in measured.items()},
            )
            .collect()
        )
        if not rows.height:
            raise WrongUse(f"{self.earlier().where}: has no rows to select from; name other negative captions")
        points, funnel, left = {EVERY: rows, BEFORE: rows}, [("", rows)], rows
        steps = list(self._steps())
        for reason, test in steps:
            passed = left.select(test).to_series().fill_null(False)
            lost, left = left.filter(~passed), left.filter(passed)
            if not left.height:
                raise WrongUse(
                    f"{self.stage.name}: of the {lost.height:,} negative captions of {self.earlier().where} that came "
                    f"so far, every one is left out as {reason} ({self.reasons[reason]}); loosen quality, quantile, "
                    "similarity, refine or grid, or name other negative captions"
                )
            for identity in lost["identity"].head(EXAMPLES // len(steps)):
                self.excluded.add(reason, f"{self.scores} {identity}")
            self.excluded[reason] = lost.height
            funnel.append((reason, left.select("kind")))
            if reason != "unbalanced":
                points[BEFORE] = left
        self._count({**points, AFTER: left}, funnel)
        return (
            scored.join(left.select("row").lazy(), on="row", how="semi", maintain_order="left")
            .with_columns(pl.col("prompt") + self.suffix)
            .select(pl.exclude("group"))
        )

    def _steps(self) -> Iterator[tuple[str, pl.Expr]]:
        """Steps in order: the reason, and which of the rows that are left it keeps."""
        import polars as pl

        text = pl.col("text")
        quality = [pl.col(f"{score}_negative") for score in self.quality]
        asked = [*quality, *(pl.col(f"gap {axis}") for axis in self.refine)]
        asked += [pl.col("similarity")] if self.similarity is not None else []
        yield "no-score", pl.all_horizontal(number.is_not_null() for number in asked)
        if self.similarity is not None:
            yield "same-meaning", pl.col("similarity") < self.similarity
        combined = [pl.mean_horizontal(quality)] if self.rules == "paper" else quality
        bounds = (score.quantile(self.quantile, "linear").over("kind") for score in combined)
        yield "low-score", pl.all_horizontal(score >= least for score, least in zip(combined, bounds, strict=True))
        if self.rules == "published":
            yield "no-full-stop", text.str.ends_with(".")
            yield "too-short", text.str.len_chars() > LEAST_CHARACTERS
        else:
            yield "question", ~text.str.strip_chars_end().str.ends_with("?")
            yield "no-final-punctuation", text.str.contains(r"[.!]\s*$")
        same = "prompt" if self.rules == "published" else "text"
        yield "repeated", pl.col("order") == pl.col("order").min().over(same)
        if self.refine:
            seed, stage = self.stage.seed, self.stage.name
            ranks = pl.col("key").map_batches(lambda keys: ranks_of(seed, stage, keys), pl.UInt64)
            yield "unbalanced", balanced([f"gap {axis}" for axis in self.refine], self.grid, ranks)

    def _count(self, points: Mapping[str, pl.DataFrame], funnel: Sequence[tuple[str, pl.DataFrame]]) -> None:
        """Fill `report`."""
        rows = points[EVERY]
        kinds = rows.unique("kind").sort(_place_of_kind(), "kind")["kind"].to_list()
        counts = [(reason, dict(left.group_by("kind").len().iter_rows())) for reason, left in funnel]
        names = [name for name in rows.columns if name.startswith("gap ") and rows[name].count()]
        self.report.clear()
        self.report |= {
            "rules": self.rules,
            "kinds": kinds,
            "steps": [
                {"reason": reason, "kept": {kind: count.get(kind, 0) for kind in kinds}} for reason, count in counts
            ],
            "gaps": {
                axis: _histogram({point: left[name] for point, left in points.items()})
                for name in names
                if (axis := name.removeprefix("gap ")) != "characters"
            },
        }

    @staticmethod
    def funnel(steps: Sequence[Mapping[str, Any]], kinds: Sequence[str]) -> str:
        """A Markdown table of what each step takes away, of all kinds and of each."""
        kept = [[sum(step["kept"].values()), *(step["kept"][kind] for kind in kinds)] for step in steps]
        rows = [("scored", *(f"{count:,}" for count in kept[0]))]
        for step, before, after in zip(steps[1:], kept, kept[1:], strict=False):
            rows.append((step["reason"], *(f"−{first - last:,}" for first, last in zip(before, after, strict=True))))
        rows.append(("selected", *(f"{count:,}" for count in kept[-1])))
        return table(("", "all", *(kind.replace("_", " ") for kind in kinds)), rows)

    @staticmethod
    def titles(scores: Sequence[str]) -> list[str]:
        """Of scores, as cards name them."""
        return [title_of(score) for score in scores]

    def panels(self, reports: Mapping[str, Any]) -> Mapping[str, Any]:
        if REPORT not in reports:
            return {}
        return {
            PICTURE: {
                f"caption − negative: {title_of(name)}": (
                    counts["edges"],
                    {point: counts[point] for point in (EVERY, BEFORE, AFTER)},
                )
                for name, counts in reports[REPORT]["gaps"].items()
            }
        }


def _place_of_kind() -> pl.Expr:
    """The place of a row's kind in the papers' tables; other kinds come after these."""
    import polars as pl

    return pl.col("kind").replace_strict({name: place for place, name in enumerate(KINDS)}, default=len(KINDS))


def balanced(gaps: Sequence[str], grid: int, rank: pl.Expr) -> pl.Expr:
    """Adversarial refinement (SugarCrepe, section 3.3): as many gaps on one side as on the other, cell by cell.

    The gap of a pair is the score of its caption less that of its negative. A grid lies over the gaps in one or several
    scores. A cell and its opposite, which has all signs reversed, keep equally many pairs, the larger one those of
    smallest rank; cell 0 keeps all. What a model without the image learns from the scores is then right of half.

    Args:
        gaps: columns of finite gaps.
        grid: bins on each side of zero.
        rank: a random number a pair.
    """
    import polars as pl

    cells = cells_of(gaps, grid)
    # A cell and its opposite are one cell and two sides: the sign of the first bin that is not 0.
    side = pl.coalesce(*(pl.when(cell != 0).then(cell.sign()) for cell in cells), pl.lit(0))
    cell_pair = [(cell * side).alias(f"cell{axis}") for axis, cell in enumerate(cells)]
    single_cell = [*cell_pair, side.alias("side")]
    own, pair = pl.len().over(single_cell), pl.len().over(cell_pair)
    return (side == 0) | (rank.rank("ordinal").over(single_cell) <= pl.min_horizontal(own, pair - own))


def cells_of(gaps: Sequence[str], grid: int) -> list[pl.Expr]:
    """The cell of every pair: a signed bin of each gap.

    A gap g is in bin floor(|g| n) + 1, at most n, with its sign; a gap of 0 is in bin 0. n is ``grid``, but `COARSE`
    where another gap is 0.
    """
    import polars as pl

    bins = pl.when(pl.any_horizontal(pl.col(gaps) == 0)).then(min(COARSE, grid)).otherwise(grid)
    # A gap of exactly 1 would be in bin n + 1: a KeyError in the released code.
    sizes = (pl.min_horizontal((pl.col(gap).abs() * bins).floor() + 1, bins) for gap in gaps)
    return [(pl.col(gap).sign() * size).cast(pl.Int64) for gap, size in zip(gaps, sizes, strict=True)]


def ranks_of(seed: int, stage: str, keys: pl.Series) -> pl.Series:
    """A random number for each key, which does not depend on the others.

    keys: of `contracts.canonical.sample_key`: their last 16 characters are a hash already.
    """
    import polars as pl

    hashed = hashlib.blake2b(canonical_json(["refinement", seed, stage]), digest_size=8).digest()
    secret = np.uint64(int.from_bytes(hashed, "big"))
    ends: NDArray[Any] = np.array([key[-HASHED:].rjust(HASHED) for key in keys], f"S{HASHED}")
    first, second = ends.view("<u8").reshape(-1, 2).T
    return pl.Series(mixed(first + mixed(second + secret)))


def _histogram(values: Mapping[str, pl.Series]) -> dict[str, list[float]]:
    edges = np.linspace(-1, 1, BINS + 1).round(4)
    clipped = {point: series.drop_nulls().clip(-1, 1) for point, series in values.items()}
    counts = {point: np.histogram(series, edges)[0].tolist() for point, series in clipped.items()}
    return {"edges": edges.tolist(), **counts}
