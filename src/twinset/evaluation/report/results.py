"""What is measured for a report: every score file of a run, in all, by subset and by category, and models compared."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations, groupby
from math import comb
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

from twinset.contracts.errors import WrongUse
from twinset.evaluation.benchmarks import BENCHMARKS
from twinset.evaluation.benchmarks.captioned_images import CaptionedImages
from twinset.evaluation.benchmarks.reader import Reader
from twinset.evaluation.blind_probes.document import Probes, probes_of
from twinset.evaluation.metrics.compare import Compared, compare, holm
from twinset.evaluation.metrics.figures import Measured
from twinset.evaluation.metrics.matching import FINER, ORDERS
from twinset.evaluation.metrics.measure import measure
from twinset.evaluation.report.mistakes import Mistake, worst_mistakes
from twinset.evaluation.report.model_answers import Asked, ModelAnswers, score_files
from twinset.evaluation.report.published import Published, published

#: Of two images and two captions with independent scores: each of two comparisons is right in half of all cases, both
#: in a quarter; all four, if the two matching pairs are the highest of four scores: in 2! 2! / 4!.
TWO_IMAGES = {
    **dict.fromkeys(("text", "image"), 25.0),
    "group": 100 / 6,
    **dict.fromkeys(("ipos2t", "ineg2t", "tpos2i", "tneg2i", "group_match"), 50.0),
}
ONE_IMAGE = {"accuracy": 50.0}
#: Of a model that chooses: four choices that do not depend on each other; one for the whole pairing.
CHOSEN, PAIRED = {"group": 100 / 16}, dict.fromkeys(("group", *ORDERS), 50.0)
RECALL = "recall@"


def chance(path: Path, asked: Asked, figures: Iterable[str]) -> dict[str, dict[str, float]]:
    """Percent by subset ("": all) and figure, where it follows from the questions alone.

    Args:
        path: of a score file of the benchmark.
        figures: names of the figures that are asked for.
    """
    if asked in ("matching", "statement"):
        coins = TWO_IMAGES | ONE_IMAGE
        if FINER[0] in pq.read_schema(path).names:
            coins |= CHOSEN if "image" in set(figures) else PAIRED
        known = {name: value for name, value in coins.items() if name in set(figures)}
        return {subset: known for subset in ("", *_parts(path)[0])} if known else {}
    ranks = [int(name.removeprefix(RECALL)) for name in figures if name.startswith(RECALL)]
    return _recalls(path, ranks) if asked == "query" and ranks else {}


def recall(k: int, entries: int, targets: int) -> float:
    """Percent of random orders of a gallery with a target among the first k.

    1 - C(entries - targets, k) / C(entries, k): the first k are any k of the entries, and miss if all are wrong ones.
    """
    k = min(k, entries)
    return 100 * (1 - comb(entries - targets, k) / comb(entries, k))


def _recalls(path: Path, ranks: list[int]) -> dict[str, dict[str, float]]:
    columns = ["subset", "entries", "targets"]
    kinds = pq.read_table(path, columns=columns, partitioning=None).group_by(columns).aggregate([([], "count_all")])
    rows = list(zip(*(kinds.column(name).to_pylist() for name in (*columns, "count_all")), strict=True))
    found: dict[str, dict[str, float]] = {}
    for subset in ("", *sorted({row[0] for row in rows})):
        here = [row[1:] for row in rows if subset in ("", row[0])]
        total = sum(count for *_, count in here)
        found[subset] = {f"{RECALL}{k}": sum(count * recall(k, *of) for *of, count in here) / total for k in ranks}
    return found


RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class ModelResults:
    """What one model gets.

    by_subset: empty where there is one. by_category: by "SUBSET / CATEGORY"; empty where categories say no more.
    """

    scored: ModelAnswers
    all: Measured
    by_subset: Mapping[str, Measured]
    by_category: Mapping[str, Measured]
    mistakes: Sequence[Mistake]

    @property
    def name(self) -> str:
        """As ``--model`` was given."""
        return self.scored.about.model


@dataclass(frozen=True, slots=True)
class SeedResults:
    """What several runs of one model get, such as its seeds: means, each with its standard deviation and interval.

    by_subset, by_category: as of `ModelResults`.
    """

    name: str
    runs: Sequence[ModelResults]
    all: Measured
    by_subset: Mapping[str, Measured]
    by_category: Mapping[str, Measured]


@dataclass(frozen=True, slots=True)
class Difference:
    """One figure of two models on the same examples. figure.p_holm: corrected for all differences of the benchmark."""

    a: str
    b: str
    figure: Compared


@dataclass(frozen=True, slots=True)
class BenchmarkResults:
    """What all models of a run get on a benchmark, with what there is to set beside it.

    figures: names in order, of all models. chance: percent by subset ("": all) and figure.
    differences: of two models each, on the examples that both answered.
    probes: what the data give away, where it was probed.
    seeds: models that several of ``models`` are runs of. whole: examples of the release; 0 where it is not known.
    """

    name: str
    title: str
    asked: Asked
    models: Sequence[ModelResults]
    figures: Sequence[str]
    chance: Mapping[str, Mapping[str, float]]
    published: Sequence[Published]
    differences: Sequence[Difference] = ()
    probes: Probes | None = None
    seeds: Sequence[SeedResults] = ()
    whole: int = 0

    @property
    def titled(self) -> str:
        """Its title, with how many examples the models answered."""
        counts = sorted({model.all.n for model in self.models})
        n = " to ".join(f"{count:,}" for count in dict.fromkeys((counts[0], counts[-1])))
        return f"{self.title} (n = {n}{f' of {self.whole:,}' if self.whole > counts[0] else ''})"

    @property
    def same_data(self) -> bool:
        """Whether all models were asked the same questions."""
        return len({model.scored.about.data_digest for model in self.models}) == 1


def measured_run(out: Path, seed: int = 0, resamples: int = RESAMPLES) -> list[BenchmarkResults]:
    """Measure all score files of a run's folder; raises `WrongUse` where there are none or one is broken."""
    files = groupby(score_files(out), key=lambda one: one.about.benchmark)
    return [_benchmark(out, name, list(scored), seed, resamples) for name, scored in files]


def _benchmark(out: Path, name: str, scored: Sequence[ModelAnswers], seed: int, resamples: int) -> BenchmarkResults:
    if other := [one for one in scored if one.asked != scored[0].asked]:
        raise WrongUse(
            f"{other[0].path}: scores of another kind than {scored[0].path}, of the same benchmark; remove one"
        )
    models = [_model(one, seed, resamples) for one in scored]
    measured = [one for model in models for one in (model.all, *model.by_subset.values())]
    figures = list(dict.fromkeys(figure for one in measured for figure in one.figures))
    rows = [row for row in published() if row.benchmark == name]
    reader = BENCHMARKS.find(name) if name in BENCHMARKS.kinds() else Reader
    return BenchmarkResults(
        name=name,
        title=scored[0].about.title,
        asked=scored[0].asked,
        models=models,
        figures=figures,
        chance=chance(next((one for one in scored if one.scores), scored[0]).path, scored[0].asked, figures),
        published=rows if rows and all(_is_whole(model, reader) for model in models) else [],
        whole=sum(reader.counts.values()),
        differences=_differences(scored, seed, resamples),
        probes=probes_of(out, scored[0].folder),
    )


def _is_whole(model: ModelResults, release: type[Reader]) -> bool:
    """Whether a model answered all of some subsets of the release, so that figures of papers may stand beside."""
    only = _parts(model.scored.path)[0][0]
    asked = {name: measured.n for name, measured in model.by_subset.items()} or {only: model.all.n}
    # Each way of retrieval is asked among all that the other asks.
    return asked == release.counts if issubclass(release, CaptionedImages) else asked.items() <= release.counts.items()


def _differences(scored: Sequence[ModelAnswers], seed: int, resamples: int) -> list[Difference]:
    """Every model against every other; none where they answered different states of the benchmark."""
    if len({one.about.data_digest for one in scored}) > 1:
        return []
    found = [
        Difference(a.about.model, b.about.model, line)
        for a, b in combinations(scored, 2)
        for line in compare(a.path, b.path, seed=seed, resamples=resamples).table
    ]
    corrected = holm([one.figure.p for one in found])
    return [Difference(one.a, one.b, replace(one.figure, p_holm=p)) for one, p in zip(found, corrected, strict=True)]


def _model(scored: ModelAnswers, seed: int, resamples: int) -> ModelResults:
    subsets, finer = _parts(scored.path)
    by_subset = measure(scored.path, ["subset"], seed, resamples)
    by_category = measure(scored.path, ["subset", "category"], seed, resamples).by if finer else {}
    several = by_subset.by if len(subsets) > 1 else {}
    return ModelResults(scored, by_subset.all, several, by_category, worst_mistakes(scored))


def _parts(path: Path) -> tuple[list[str], bool]:
    """The subsets of a score file, and whether its categories say more than these."""
    subset, category = pq.read_table(path, columns=["subset", "category"], partitioning=None).columns
    finer = pc.any(pc.and_(pc.not_equal(category, ""), pc.not_equal(category, subset))).as_py()
    return sorted(subset.unique().to_pylist()), bool(finer)


def as_json(run: Sequence[BenchmarkResults]) -> dict[str, Any]:
    """A run as ``results.json`` has it: see docs/evaluation.md, section "The report".

    All but ``cost`` is the same for the same score files.
    """
    return {
        "format": 1,
        "benchmarks": {results.name: _benchmark_json(results) for results in run},
        "cost": {results.name: {model.name: model.scored.cost for model in results.models} for results in run},
    }


def _benchmark_json(results: BenchmarkResults) -> dict[str, Any]:
    return {
        "title": results.title,
        "asked": results.asked,
        "same_data": results.same_data,
        "models": {model.name: _model_json(model) for model in results.models},
        "chance": {subset: dict(figures) for subset, figures in results.chance.items()},
        "published": [
            {"name": row.name, "kind": row.kind, "source": row.source, "figures": row.figures}
            for row in results.published
        ],
        "differences": [_difference_json(one) for one in results.differences],
        "probes": results.probes and results.probes.model_dump(),
        **({"seeds": {one.name: _seeds_json(one) for one in results.seeds}} if results.seeds else {}),
    }


def _seeds_json(seeds: SeedResults) -> dict[str, Any]:
    return {"models": [one.name for one in seeds.runs], **_measured_json(seeds)}


def _measured_json(model: ModelResults | SeedResults) -> dict[str, Any]:
    return {
        "all": model.all.as_json(),
        "by_subset": {name: measured.as_json() for name, measured in model.by_subset.items()},
        "by_category": {name: measured.as_json() for name, measured in model.by_category.items()},
    }


def _model_json(model: ModelResults) -> dict[str, Any]:
    about = model.scored.about
    return {
        "model_digest": about.model_digest,
        "data_digest": about.data_digest,
        "left_out": dict(sorted(about.left_out.items())),
        **_measured_json(model),
        "mistakes": [
            {"key": one.key, "subset": one.subset, "category": one.category, "by": one.by, **one.scores}
            for one in model.mistakes
        ],
    }


def _difference_json(one: Difference) -> dict[str, Any]:
    line = asdict(one.figure)
    values = {"a": line.pop("a"), "b": line.pop("b")}
    return {"a": one.a, "b": one.b, **line, "values": values}
