"""What is measured for a report: every model of a run, in all, by subset and by category."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from itertools import combinations, groupby
from math import comb
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq

from twinset.contracts.errors import WrongUse
from twinset.evaluation.benchmarks import BENCHMARKS
from twinset.evaluation.benchmarks.captioned_images import CaptionedImages
from twinset.evaluation.benchmarks.reader import Reader
from twinset.evaluation.blind_probes.document import Probes, probes_of
from twinset.evaluation.metrics.compare import compare, holm
from twinset.evaluation.metrics.figures import Measured
from twinset.evaluation.metrics.matching import FINER, ORDERS
from twinset.evaluation.metrics.measure import measure
from twinset.evaluation.report.mistakes import Mistake, worst_mistakes
from twinset.evaluation.report.model_answers import Asked, ModelAnswers, score_files
from twinset.evaluation.report.published import Published, published

#: Of two images and two captions with independent scores: each of two comparisons is right in half of all cases, both
#: in a quarter; all four, if the two matching pairs are the highest of four scores: in 2! 2! / 4!.
TWO_IMAGES = {"text": 25.0, "image": 25.0, "group": 100 / 6, **dict.fromkeys((*FINER, "group_match"), 50.0)}
ONE_IMAGE = {"accuracy": 50.0}
#: Of a model that chooses: four choices that do not depend on each other; one for the whole pairing.
CHOSEN, PAIRED = {"group": 100 / 16}, dict.fromkeys(("group", *ORDERS), 50.0)
RECALL, RESAMPLES = "recall@", 2000
ALL, SUBSET, CATEGORY = "all", "subset", "category"  # what a table has a row for


def chance(path: Path, asked: Asked, figures: Iterable[str]) -> dict[str, dict[str, float]]:
    """Percent by subset ("": all) and figure, where it follows from the questions alone.

    Args:
        path: of a score file of the benchmark.
        figures: names of the figures that are asked for.
    """
    names, columns = {*figures}, pq.read_schema(path).names
    coins = TWO_IMAGES | ONE_IMAGE
    if FINER[0] in columns:
        coins |= CHOSEN if "image" in names else PAIRED
    ranks = [int(name.removeprefix(RECALL)) for name in names if name.startswith(RECALL)] if asked == "query" else []
    rows = pl.read_parquet(path, columns=["subset", *(("entries", "targets") if ranks else ())])
    known: dict[str, Any] = {
        name: pl.lit(value) for name, value in coins.items() if name in names and asked in ("matching", "statement")
    }
    if ranks:
        of = rows["entries"].to_list(), rows["targets"].to_list()
        known = {f"{RECALL}{k}": pl.Series([recall(k, *pair) for pair in zip(*of, strict=True)]) for k in sorted(ranks)}
    if not known:
        return {}
    rows = rows.select("subset", **known)
    every = pl.concat([rows.with_columns(subset=pl.lit("")), rows]).group_by("subset").mean().sort("subset")
    return {row.pop("subset"): row for row in every.to_dicts()}


@cache
def recall(k: int, entries: int, targets: int) -> float:
    """Percent of random orders of a gallery with a target among the first k.

    1 - C(entries - targets, k) / C(entries, k): the first k are any k of the entries, and miss if all are wrong ones.
    """
    k = min(k, entries)
    return 100 * (1 - comb(entries - targets, k) / comb(entries, k))


@dataclass(frozen=True, slots=True)
class ModelResults:
    """What one model answered: its score file, how many examples, and its worst mistakes."""

    scored: ModelAnswers
    n: int
    mistakes: Sequence[Mistake]

    @property
    def name(self) -> str:
        """As ``--model`` was given."""
        return self.scored.about.model


@dataclass(frozen=True, slots=True)
class Part:
    """Figures of a model on all examples, or on those of a subset or category (``part``, ``label``)."""

    part: str
    label: str
    model: str
    measured: Measured


@dataclass(frozen=True, slots=True)
class BenchmarkResults:
    """What all models of a run get on a benchmark, with what there is to set beside it.

    parts: by category where these say more than subsets. figures: names in order, of all models.
    chance: percent by subset ("": all) and figure.
    differences: rows of `metrics.compare.Comparison.table`, with the names of both models, ``model`` and ``other``.
    probes: what the data give away.
    whole: examples of the release; 0 where it is not known.
    """

    name: str
    title: str
    asked: Asked
    models: Sequence[ModelResults]
    parts: Sequence[Part]
    figures: Sequence[str]
    chance: Mapping[str, Mapping[str, float]]
    published: Sequence[Published]
    differences: Sequence[Mapping[str, Any]]
    probes: Probes | None
    whole: int

    @property
    def titled(self) -> str:
        """Its title, with how many examples the models answered."""
        counts = sorted({model.n for model in self.models})
        n = " to ".join(f"{count:,}" for count in dict.fromkeys((counts[0], counts[-1])))
        return f"{self.title} (n = {n}{f' of {self.whole:,}' if self.whole > counts[0] else ''})"

    def of(self, part: str) -> list[Part]:
        """Figures of all examples, or by subset or category."""
        return [one for one in self.parts if one.part == part]

    @property
    def same_data(self) -> bool:
        """Whether all models were asked the same questions."""
        return len({model.scored.about.data_digest for model in self.models}) == 1


def measured_run(out: Path, seed: int = 0, resamples: int = RESAMPLES) -> list[BenchmarkResults]:
    """Measure all score files of a run's folder.

    Raises:
        WrongUse: there are no score files, one is broken, or those of a benchmark are of different kinds.
    """
    files = groupby(score_files(out), key=lambda one: one.about.benchmark)
    return [_benchmark(out, name, list(answers), seed, resamples) for name, answers in files]


def _benchmark(out: Path, name: str, scored: Sequence[ModelAnswers], seed: int, resamples: int) -> BenchmarkResults:
    if other := [one for one in scored if one.asked != scored[0].asked]:
        raise WrongUse(
            f"{other[0].path}: scores of another kind than {scored[0].path}, of the same benchmark; remove one"
        )
    parts = [part for one in scored for part in _parts(one.about.model, one.path, seed, resamples)]
    figures = list(dict.fromkeys(figure for one in parts for figure in one.measured.figures))
    totals = {one.model: one.measured.n for one in parts if one.part == ALL}
    rows = [row for row in published() if row.benchmark == name]
    reader = BENCHMARKS.find(name) if name in BENCHMARKS.kinds() else Reader
    return BenchmarkResults(
        name=name,
        title=scored[0].about.title,
        asked=scored[0].asked,
        models=[ModelResults(one, totals[one.about.model], worst_mistakes(one)) for one in scored],
        parts=parts,
        figures=figures,
        chance=chance(next((one for one in scored if one.scores), scored[0]).path, scored[0].asked, figures),
        published=rows if rows and all(_is_whole(one, reader) for one in scored) else [],
        differences=_differences(scored, seed, resamples),
        probes=probes_of(out, name),
        whole=sum(reader.counts.values()),
    )


def _parts(model: str, path: Path, seed: int, resamples: int) -> Iterator[Part]:
    rows = pl.read_parquet(path, columns=["subset", "category"])
    finer = ((rows["category"] != "") & (rows["category"] != rows["subset"])).any()
    by_subset = measure(path, ["subset"], seed, resamples)
    yield Part(ALL, "", model, by_subset.all)
    if len(by_subset.by) > 1:
        yield from (Part(SUBSET, label, model, one) for label, one in by_subset.by.items())
    if finer:
        by_category = measure(path, ["subset", "category"], seed, resamples).by
        yield from (Part(CATEGORY, label, model, one) for label, one in by_category.items())


def _is_whole(scored: ModelAnswers, release: type[Reader]) -> bool:
    """Whether a model answered all of some subsets of the release, so that figures of papers may stand beside."""
    asked = dict(pl.read_parquet(scored.path, columns=["subset"]).group_by("subset").len().rows())
    # Each way of retrieval is asked among all that the other asks.
    return asked == release.counts if issubclass(release, CaptionedImages) else asked.items() <= release.counts.items()


def _differences(scored: Sequence[ModelAnswers], seed: int, resamples: int) -> list[dict[str, Any]]:
    """Every model against every other; none where they answered different states of the benchmark."""
    lines = list[dict[str, Any]]()
    if len({one.about.data_digest for one in scored}) == 1:
        for a, b in combinations(scored, 2):
            table = compare(a.path, b.path, seed=seed, resamples=resamples).table
            names = {"model": a.about.model, "other": b.about.model}
            lines += [{**names, **line} for line in table.to_dicts()]
    return [{**line, "p_holm": p} for line, p in zip(lines, holm([line["p"] for line in lines]), strict=True)]


def as_json(run: Sequence[BenchmarkResults]) -> dict[str, Any]:
    """A run as ``results.json`` has it: see docs/evaluation.md, section "The report"."""
    return {"format": 3, "benchmarks": {results.name: _benchmark_json(results) for results in run}}


def _benchmark_json(results: BenchmarkResults) -> dict[str, Any]:
    models: dict[str, dict[str, Any]] = {}
    for each in results.models:
        about = each.scored.about
        models[each.name] = {
            "model_digest": about.model_digest,
            "data_digest": about.data_digest,
            "left_out": about.left_out,
            "mistakes": [asdict(mistake) for mistake in each.mistakes],
        }
    for one in results.parts:
        if one.part == ALL:
            models[one.model] |= {ALL: one.measured.as_json(), "by_subset": {}, "by_category": {}}
        else:
            models[one.model][f"by_{one.part}"][one.label] = one.measured.as_json()
    return {
        **{"title": results.title, "asked": results.asked, "same_data": results.same_data},
        **{"models": models, "chance": results.chance, "differences": results.differences},
    }
