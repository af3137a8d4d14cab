"""Several runs of one model, such as its seeds or the splits that it was trained on, as one row: mean ± SD."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from statistics import fmean, stdev

from twinset.contracts.errors import WrongUse
from twinset.evaluation.metrics.bootstrap import interval
from twinset.evaluation.metrics.figures import Figure, Measured
from twinset.evaluation.metrics.over_seeds import Resampled, over_seeds_by
from twinset.evaluation.report.results import RESAMPLES, BenchmarkResults, SeedResults


def with_seeds(
    run: Sequence[BenchmarkResults], seeds: Mapping[str, Sequence[str]], seed: int = 0, resamples: int = RESAMPLES
) -> list[BenchmarkResults]:
    """The results of a run with means over seeds, on each benchmark that all seeds of a model answered.

    Args:
        seeds: by the name of a model the names of its runs, in which ``*`` stands for any text.

    Raises:
        WrongUse: a name is nobody's, is another model's, or has fewer than two runs; a benchmark has only some of them,
            or they answered different states of its files.
    """
    known = list(dict.fromkeys(model.name for results in run for model in results.models))
    runs = {name: _runs(name, patterns, known) for name, patterns in seeds.items()}
    return [
        replace(results, seeds=[_means(results, name, names, seed, resamples) for name, names in runs.items()
                                if {*names} & {model.name for model in results.models}])
        for results in run
    ]  # fmt: skip


def _runs(name: str, patterns: Sequence[str], known: Sequence[str]) -> list[str]:
    asked = f"--seeds {name}"
    if name in known:
        raise WrongUse(f"{asked}: is the name of a model of this run; call the mean over seeds otherwise")
    for one in patterns:
        if not any(one == model or fnmatchcase(model, one) for model in known):
            raise WrongUse(f"{asked}: {one} is no model of this run; it has {', '.join(known)}")
    found = [model for model in known if any(one == model or fnmatchcase(model, one) for one in patterns)]
    if len(found) < 2:
        raise WrongUse(f"{asked}: {found[0]} alone has no spread; name two models or more")
    return found


def _means(results: BenchmarkResults, name: str, names: Sequence[str], seed: int, resamples: int) -> SeedResults:
    asked = f"--seeds {name}: {results.name}"
    models = [model for model in results.models if model.name in names]
    if len(models) < len(names):
        lacking = ", ".join(sorted({*names} - {model.name for model in models}))
        raise WrongUse(f"{asked}: has no scores of {lacking}; score it too, or leave it out")
    if len({model.scored.about.data_digest for model in models}) > 1:
        raise WrongUse(f"{asked}: its seeds answered different states of its files; score them again")
    paths = [model.scored.path for model in models]

    def means(each: Sequence[Mapping[str, Measured]], by: Sequence[str]) -> dict[str, Measured]:
        again = over_seeds_by(paths, by, "by " if by else "all", seed, resamples) if each[0] else {}
        return {value: _mean([one[value] for one in each], again[value]) for value in each[0]}

    return SeedResults(
        name,
        models,
        means([{"": model.all} for model in models], [])[""],
        means([model.by_subset for model in models], ["subset"]),
        means([model.by_category for model in models], ["subset", "category"]),
    )


def _mean(each: Sequence[Measured], again: Mapping[str, Resampled]) -> Measured:
    """Means of the figures that all runs have. again: their resamples, which means of scores have not."""
    figures = {}
    for name in each[0].figures:
        some = [one.figures[name] for one in each if name in one.figures]
        if len(some) == len(each):
            values, expected = [one.value for one in some], [one.expected for one in some if one.expected is not None]
            low, high = interval(again[name].again) if name in again else (None, None)
            figures[name] = Figure(
                fmean(values), fmean(expected) if len(expected) == len(some) else None, low, high, stdev(values)
            )
    ties = [one.ties for one in each if one.ties is not None]
    return Measured(each[0].n, each[0].groups, fmean(ties) if len(ties) == len(each) else None, figures)
