"""Models on benchmarks: a file of scores for each pair of them, ``OUT/scores/BENCHMARK/MODEL.parquet``."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from twinset.contracts.canonical import digest
from twinset.contracts.errors import WrongUse
from twinset.evaluation.benchmarks.reader import NothingAsked, Reader
from twinset.evaluation.examples import Benchmark
from twinset.evaluation.features.detections import ByDetections, Detections
from twinset.evaluation.features.pairs import ByChoices, ByPairs
from twinset.evaluation.features.score_table import write_scores
from twinset.evaluation.features.similarities import ByFeatures, Similarities
from twinset.evaluation.features.store import FeatureStore, default_cache
from twinset.evaluation.report.model_answers import scores_path
from twinset.evaluation.score_files.opening import open_scores
from twinset.evaluation.scorers.kinds import check_model, note_on, open_model
from twinset.models.encoders.contract import Chooser, Composer, DualEncoder, Matcher, NotApplicable, Running, Scorer

_LOG = logging.getLogger("twinset")
OnProgress = Callable[[str, str, int], None]


@dataclass(frozen=True, slots=True)
class WrittenScores:
    """A file of scores. rows: examples in it. computed: features or scores of pairs that were not in the cache."""

    benchmark: str
    model: str
    path: Path
    rows: int
    computed: int


def run(
    benchmarks: Sequence[Benchmark],
    models: Sequence[str],
    out: Path,
    cache: Path | None = None,
    running: Running | None = None,
    on_progress: OnProgress | None = None,
    called: Mapping[str, str] | None = None,
) -> list[WrittenScores]:
    """Score benchmarks with models, one model after the other. A run that was killed goes on from its cache.

    Args:
        models: as `evaluation.scorers.kinds.open_model` takes them.
        on_progress: called with benchmark, model and the number of examples done.
        called: names of models in files and reports, where they are other than in ``models``, such as without a place.

    Returns:
        The files, by model and then by benchmark. A model that cannot answer a benchmark is left out with a warning.

    Raises:
        WrongUse: a model or a benchmark is wrong, or no model can answer any of the benchmarks.
    """
    running = running or Running()
    if not benchmarks or not models:
        raise WrongUse("--benchmark, --model: name at least one")
    shown = {model: (called or {}).get(model, model) for model in models}
    refuse_shared_files(benchmarks, [shown[model] for model in models], out)
    for model in models:
        check_model(model)
    scored: list[WrittenScores] = []
    refused: list[WrongUse] = []
    for model in models:
        scorer = open_model(model, running)
        similarities = similarities_of(scorer, cache or default_cache(), running)
        facts: dict[str, Any] = {
            **{"model": shown[model], "model_digest": scorer.digest(), "device": running.device_name()},
            **{"note": note_on(model), "prompt": scorer.words, "threshold": scorer.threshold},
        }
        facts = {name: fact for name, fact in facts.items() if fact not in ("", None)}
        for benchmark in benchmarks:
            path = scores_path(out, benchmark.name, shown[model])
            about = {**facts, "benchmark": benchmark.name, "title": benchmark.title}
            if scorer.words and benchmark.asks:
                about["prompt"] = benchmark.asks
            if isinstance(benchmark, Reader) and benchmark.limit:
                about["limit"] = benchmark.limit
            before = similarities.computed
            tell = partial(on_progress, benchmark.name, model) if on_progress else lambda done: None
            try:
                rows = write_scores(benchmark, similarities, path, about, tell)
            except (NotApplicable, NothingAsked) as error:
                refused.append(error)
                _LOG.warning("%s: %s", benchmark.name, error)
                continue
            computed = similarities.computed - before
            scored.append(WrittenScores(benchmark.name, model, path, rows, computed))
    if not scored:
        raise refused[0]
    return scored


def refuse_shared_files(benchmarks: Iterable[Benchmark], models: Sequence[str], out: Path) -> None:
    """Raise `WrongUse` where a file of scores would be that of two models or benchmarks, or is another model's."""
    taken = dict[Path, str]()
    for benchmark, name in product(benchmarks, models):
        path = scores_path(out, benchmark.name, name)
        holder = taken.get(path) or _model_in(path) or name
        if path in taken or holder != name:
            raise WrongUse(
                f"--model {name}: its scores on {benchmark.name} and those of {holder} would be one file, {path}; name "
                "each model and benchmark once, score one in another --out, or name a model by a link to its folder"
            )
        taken[path] = name


def _model_in(path: Path) -> str | None:
    """The model whose scores a file has; None where there is none, or a broken one, which is written again."""
    try:
        return open_scores(path).about.get("model")
    except WrongUse:
        return None


def similarities_of(scorer: Scorer, cache: Path, running: Running) -> Similarities:
    """The similarities that a scorer gives; raises `WrongUse` for one that does not score images with texts."""
    # A composer's features are its encoder's, which other composers share.
    encoder = scorer.encoder if isinstance(scorer, Composer) else scorer
    store = FeatureStore(cache, digest([encoder.digest(), running.runtime()]))
    if isinstance(encoder, DualEncoder):
        return ByFeatures(encoder, store, running.batch, scorer if isinstance(scorer, Composer) else None)
    if isinstance(encoder, Matcher):
        return ByPairs(encoder, store, running.batch)
    if isinstance(encoder, Chooser):
        return ByChoices(encoder, store, running.batch)
    if isinstance(encoder, Detections):
        return ByDetections(encoder, store, running.batch)
    raise WrongUse(f"--model {scorer.name}: does not score images with texts")
