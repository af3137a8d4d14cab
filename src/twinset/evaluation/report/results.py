"""What is measured for a report, as one frame of results: every model of a run, in all, by subset and by category."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
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
from twinset.evaluation.benchmarks.composed_retrieval import MISSING_ENTRY
from twinset.evaluation.benchmarks.reader import Reader
from twinset.evaluation.blind_probes.document import Probes, probes_of
from twinset.evaluation.metrics.compare import compare, holm
from twinset.evaluation.metrics.figures import Figure, Measured
from twinset.evaluation.metrics.galleries import RANKS
from twinset.evaluation.metrics.matching import FINER, ORDERS
from twinset.evaluation.metrics.measure import measure
from twinset.evaluation.metrics.score_kinds import reading_of
from twinset.evaluation.report.mistakes import Mistake, worst_mistakes
from twinset.evaluation.report.model_answers import Asked, ModelAnswers, score_files
from twinset.evaluation.report.published import Published, published
from twinset.evaluation.score_files.opening import open_scores

#: Of two images and two captions with independent scores: each of two comparisons is right in half of all cases, both
#: in a quarter; all four, if the two matching pairs are the highest of four scores: in 2! 2! / 4!.
TWO_IMAGES = {"text": 25.0, "image": 25.0, "group": 100 / 6, **dict.fromkeys((*FINER, "group_match"), 50.0)}
ONE_IMAGE = {"accuracy": 50.0}
#: Of a model that chooses: four choices that do not depend on each other; one for the whole pairing.
CHOSEN, PAIRED = {"group": 100 / 16}, dict.fromkeys(("group", *ORDERS), 50.0)
RECALL, RESAMPLES = "recall@", 2000
ALL, SUBSET, CATEGORY = "all", "subset", "category"  # parts of a frame
_FIGURE = ("value", "expected", "low", "high", "sd", "rows")
_SCHEMA = {
    **dict.fromkeys(("benchmark", "part", "label", "model", "kind"), pl.String),
    **{"n": pl.Int64, "groups": pl.Int64, "ties": pl.Float64, "figure": pl.String},
    **dict.fromkeys(_FIGURE, pl.Float64),
}


def chance(answered: Mapping[Path, Iterable[str]]) -> dict[str, dict[str, float]]:
    """Percent by subset ("": all) and figure, where it follows from the questions alone; ties broken at random.

    Args:
        answered: the figures of score files of one benchmark. One that has another chance in another file is left out:
            their galleries differ, or one has scores and the other choices.
    """
    every = list[pl.DataFrame]()
    for path, asked in answered.items():
        names, coins = {*asked}, TWO_IMAGES | ONE_IMAGE
        if FINER[0] in pq.read_schema(path).names:
            coins |= CHOSEN if "image" in names else PAIRED
        known: dict[str, Any] = {name: pl.lit(value) for name, value in coins.items() if name in names}
        ranks = sorted(int(name.removeprefix(RECALL)) for name in names if name.startswith(RECALL))
        rows = _columns(path, ["subset", *(RANKS[2:] if ranks else ())])
        for k in ranks:
            known[f"{RECALL}{k}"] = pl.Series([recall(k, *sizes) for sizes in rows.select(RANKS[2:]).rows()])
        rows = rows.select("subset", **known)
        means = pl.concat([rows.with_columns(subset=pl.lit("")), rows]).group_by("subset").mean().sort("subset")
        every.append(means.unpivot(index="subset", variable_name="figure"))
    figures = pl.concat(every, how="vertical_relaxed").group_by("subset", "figure", maintain_order=True)
    agreed = figures.agg(pl.first("value"), range=pl.max("value") - pl.min("value"))
    by_subset = agreed.filter(pl.col("range") < 1e-9).group_by("subset", maintain_order=True)
    return {str(subset): dict(rows.select("figure", "value").rows()) for (subset,), rows in by_subset}


def _columns(path: Path, names: Sequence[str]) -> pl.DataFrame:
    """Columns of a score file; raises `WrongUse` where it is damaged."""
    return pl.DataFrame({name: pl.Series(column) for name, column in open_scores(path).read(names).columns.items()})


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
class BenchmarkResults:
    """What all models of a run get on a benchmark, with what there is to set beside it.

    frame: a row for each figure of a model (``kind`` ``model``; ``seed`` of one that is a run of another, whose
    ``mean`` has rows too), of all examples, by subset, and by category where these say more (``part``, ``label``).
    figures: names in order, of all models. chance: percent by subset ("": all) and figure, where it is the same for all
    models that have the figure.
    differences: rows of `metrics.compare.Comparison.table`, with the names of both models, ``model`` and ``other``.
    notes: what is not measured or not compared, and why.
    probes: what the data give away.
    seeds: models by the name of their mean. whole: examples of the release; 0 where it is not known.
    """

    name: str
    title: str
    asked: Asked
    models: Sequence[ModelResults]
    frame: pl.DataFrame
    figures: Sequence[str]
    chance: Mapping[str, Mapping[str, float]]
    published: Sequence[Published]
    differences: Sequence[Mapping[str, Any]]
    notes: Sequence[str]
    probes: Probes | None
    seeds: Mapping[str, Sequence[str]]
    whole: int

    @property
    def titled(self) -> str:
        """Its title, with how many examples the models answered."""
        counts = sorted({model.n for model in self.models})
        n = " to ".join(f"{count:,}" for count in dict.fromkeys((counts[0], counts[-1])))
        return f"{self.title} (n = {n}{f' of {self.whole:,}' if self.whole > counts[0] else ''})"

    @property
    def same_data(self) -> bool:
        """Whether all models were asked the same questions."""
        return len({model.scored.about.data_digest for model in self.models}) == 1

    def measured(self, part: str) -> Iterator[tuple[str, str, str, Measured]]:
        """Of a part of the frame: label, model, kind and its figures, models in order within a label."""
        for (label, model, kind), rows in self.frame.filter(part=part).group_by(
            "label", "model", "kind", maintain_order=True
        ):
            figures = {row[0]: Figure(*row[1:]) for row in rows.select("figure", *_FIGURE).rows() if row[0]}
            n, groups, ties = rows.select("n", "groups", "ties").row(0)
            yield str(label), str(model), str(kind), Measured(n, groups, ties, figures)


def measured_run(
    out: Path, seed: int = 0, resamples: int = RESAMPLES, seeds: Mapping[str, Sequence[str]] | None = None
) -> list[BenchmarkResults]:
    """Measure all score files of a run's folder.

    Args:
        seeds: by the name of a model the names of its runs, such as its seeds, in which ``*`` stands for any text; each
            benchmark that they answered has their mean.

    Raises:
        WrongUse: there are no score files, one is broken, or those of a benchmark are of different kinds; a name in
            ``seeds`` is nobody's or another model's, or it has fewer than two runs; a benchmark has only some of them,
            or they answered different states of its files.
    """
    scored = score_files(out)
    known = list(dict.fromkeys(file.about.model for file in scored))
    runs = dict[str, list[str]]()
    for name, globs in (seeds or {}).items():
        absent = [glob for glob in globs if not any(fnmatchcase(model, glob) or model == glob for model in known)]
        runs[name] = [model for model in known if model in globs or any(fnmatchcase(model, glob) for glob in globs)]
        if name in known or absent or len(runs[name]) < 2:
            problem = f"names two or more of {', '.join(known)} by a name of its own"
            raise WrongUse(f"--seeds {name}={','.join(globs)}: {', '.join(absent) or name} is wrong; it {problem}")
    files = groupby(scored, key=lambda file: file.about.benchmark)
    return [_benchmark(out, name, list(of_name), runs, seed, resamples) for name, of_name in files]


def _benchmark(
    out: Path, name: str, scored: Sequence[ModelAnswers], runs: Mapping[str, list[str]], seed: int, resamples: int
) -> BenchmarkResults:
    if unlike := [file for file in scored if file.asked != scored[0].asked]:
        raise WrongUse(
            f"{unlike[0].path}: scores of another kind than {scored[0].path}, of the same benchmark; remove one"
        )
    models = {file.about.model: file for file in scored}
    seeds = {mean: names for mean, names in runs.items() if {*names} & models.keys()}
    of_seeds, lines = {model for names in seeds.values() for model in names}, list[dict[str, Any]]()
    for model, file in models.items():
        lines += _lines(name, model, "seed" if model in of_seeds else "model", [file.path], seed, resamples)
    for mean, names in seeds.items():
        states = {models[model].about.data_digest if model in models else f"no scores of {model}" for model in names}
        if len(states) > 1:
            problem = f"its runs answered different states of it, or not all of them: {', '.join(sorted(states))}"
            raise WrongUse(f"--seeds {mean}: {name}: {problem}; score all of them on the same files")
        lines += _lines(name, mean, "mean", [models[model].path for model in names], seed, resamples)
    frame = pl.DataFrame(lines, _SCHEMA)
    figures = frame["figure"].drop_nulls().unique(maintain_order=True).to_list()
    totals = dict(frame.filter(part=ALL).select("model", "n").rows())
    rows = [row for row in published() if row.benchmark == name]
    reader = BENCHMARKS.find(name) if name in BENCHMARKS.kinds() else Reader
    differences, notes = _differences(scored, seed, resamples)
    notes += [f"{file.about.model}: {note}" for file in scored for note in reading_of(open_scores(file.path)).notes]
    return BenchmarkResults(
        name=name,
        title=scored[0].about.title,
        asked=scored[0].asked,
        models=[ModelResults(file, totals[model], worst_mistakes(file)) for model, file in models.items()],
        frame=frame,
        figures=figures,
        chance=chance({file.path: frame.filter(model=model)["figure"].drop_nulls() for model, file in models.items()}),
        published=rows if all(_is_whole(file, reader) for file in scored) else [],
        differences=differences,
        notes=notes,
        probes=probes_of(out, name),
        seeds=seeds,
        whole=sum(reader.counts.values()),
    )


def _lines(
    benchmark: str, model: str, kind: str, paths: Sequence[Path], seed: int, resamples: int
) -> Iterator[dict[str, Any]]:
    """The rows of a frame of one model, or of the mean of several; one without a figure where there are none."""
    rows = _columns(paths[0], ["subset", "category"])
    finer = ((rows["category"] != "") & (rows["category"] != rows["subset"])).any()
    by_subset = measure(paths, ["subset"], seed, resamples)
    by_category = measure(paths, ["subset", "category"], seed, resamples).by if finer else {}
    parts = {ALL: {"": by_subset.all}, SUBSET: by_subset.by, CATEGORY: by_category}
    for part, measured in parts.items():
        for label, of_label in measured.items():
            row: dict[str, Any] = {"benchmark": benchmark, "part": part, "label": label, "model": model, "kind": kind}
            row |= {"n": of_label.n, "groups": of_label.groups, "ties": of_label.ties}
            for name, figure in of_label.figures.items() or [(None, None)]:
                yield {**row, "figure": name, **{field: getattr(figure, field, None) for field in _FIGURE}}


def _is_whole(scored: ModelAnswers, release: type[Reader]) -> bool:
    """Whether a model answered all of some subsets of the release, among all that is ranked there; where no counts of
    it are known, whether nothing was left out and none drawn.
    """
    lost, counts = scored.about.left_out, release.counts
    if not counts:
        return not lost and scored.about.title == getattr(release, "title", "")
    asked = dict(_columns(scored.path, ["subset"]).group_by("subset").len().rows())
    # Each way of retrieval is asked among all that the other asks.
    every = asked == counts if issubclass(release, CaptionedImages) else asked.items() <= counts.items()
    return every and MISSING_ENTRY not in lost


def _differences(scored: Sequence[ModelAnswers], seed: int, resamples: int) -> tuple[list[dict[str, Any]], list[str]]:
    """Every model against every other, with notes; none where they answered different states of the benchmark."""
    lines, notes = list[dict[str, Any]](), list[str]()
    if len({answers.about.data_digest for answers in scored}) == 1:
        for a, b in combinations(scored, 2):
            comparison = compare(a.path, b.path, seed=seed, resamples=resamples)
            names = {"model": a.about.model, "other": b.about.model}
            lines += [{**names, **line} for line in comparison.table.to_dicts()]
            notes += [f"{a.about.model} and {b.about.model}: {note}" for note in comparison.notes]
    corrected = holm([line["p"] for line in lines])
    return [{**line, "p_holm": p} for line, p in zip(lines, corrected, strict=True)], notes


def as_json(run: Sequence[BenchmarkResults]) -> dict[str, Any]:
    """A run as ``results.json`` has it: see docs/evaluation.md, section "The report"."""
    return {"format": 3, "benchmarks": {results.name: _benchmark_json(results) for results in run}}


def _benchmark_json(results: BenchmarkResults) -> dict[str, Any]:
    measured: dict[str, dict[str, Any]] = {
        name: {"by_subset": {}, "by_category": {}} for name in results.frame["model"]
    }
    for part in (ALL, SUBSET, CATEGORY):
        for label, model, _, of_label in results.measured(part):
            of_part = measured[model] if part == ALL else measured[model][f"by_{part}"]
            of_part[label or ALL] = of_label.as_json()
    models = {}
    for each in results.models:
        about = each.scored.about
        facts = {"model_digest": about.model_digest, "data_digest": about.data_digest, "left_out": about.left_out}
        models[each.name] = {**facts, **measured[each.name], "mistakes": [asdict(mistake) for mistake in each.mistakes]}
    return {
        **{"title": results.title, "asked": results.asked, "same_data": results.same_data, "models": models},
        "seeds": {name: {"models": names, **measured[name]} for name, names in results.seeds.items()},
        **{"chance": results.chance, "differences": results.differences, "notes": results.notes},
    }
