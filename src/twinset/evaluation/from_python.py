"""Evaluation for notebooks, as `twinset` offers it: `evaluate`, `scores` and `compare`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from twinset.contracts.canonical import names_in
from twinset.contracts.errors import WrongUse
from twinset.evaluation.benchmarks.built_dataset import open_benchmarks
from twinset.evaluation.examples import Benchmark
from twinset.evaluation.metrics.compare import compare as compared
from twinset.evaluation.metrics.measure import measure
from twinset.evaluation.run import OnProgress, WrittenScores, run
from twinset.evaluation.score_files.opening import open_scores
from twinset.evaluation.scorers.kinds import with_prompts
from twinset.models.encoders.contract import Running
from twinset.shards.storage.whole_file import local_folder_of


def evaluate(
    benchmarks: Mapping[str, str | Path] | Iterable[tuple[str, str | Path]],
    models: str | Sequence[str],
    out: str | Path,
    *,
    subsets: str | Sequence[str] = (),
    prompts: str | Sequence[str] = (),
    seeds: Mapping[str, str | Sequence[str]] | None = None,
    limit: int | None = None,
    seed: int = 0,
    cache: str | Path | None = None,
    device: Literal["cpu", "gpu"] = "cpu",
    batch: int = 32,
    threads: int = 0,
    on_progress: OnProgress | None = None,
) -> dict[str, Any]:
    """Score benchmarks with models and write the report, as ``twinset eval run``; a killed run goes on from its cache.

    Args:
        benchmarks: names of `evaluation.benchmarks.BENCHMARKS`, each with its folder: a dict, or pairs.
        models: as ``twinset eval run --model`` takes them.
        out: folder; scores go to ``scores/BENCHMARK/MODEL.parquet`` below it, beside ``report.html`` and
            ``results.json``.
        subsets: of the benchmarks that are read; all when empty.
        prompts: names or YAML files, with each of which multimodal language models are asked; their own when empty.
        seeds: by a name of yours the models that are seeds of one; the report has their mean too.
        limit: examples of each subset, drawn by ``seed``; None: all.
        cache: folder of features; ``~/.cache/twinset/features`` by default.
        batch: images, texts or pairs of a pass.
        threads: torch's; 0: one a core.
        on_progress: called with benchmark, model and the number of examples done.

    Returns:
        What ``twinset eval run --json`` prints: ``{"scores": [{"benchmark", "model", "path", …}], "report": PATH}``.

    Raises:
        WrongUse: a model or a benchmark is wrong, or nothing of one can be scored.
    """
    if isinstance(benchmarks, str):
        raise WrongUse(f"benchmarks {benchmarks!r}: name the folder too, as in {{'sugarcrepe': 'data/sugarcrepe'}}")
    places = benchmarks.items() if isinstance(benchmarks, Mapping) else benchmarks
    out, cached, running = local_folder_of(out), Path(cache) if cache else None, Running(device, batch, threads)
    opened = [benchmark for name, folder in places for benchmark in open_benchmarks(name, folder, names_in(subsets))]
    if limit is not None:
        for benchmark in opened:
            benchmark.draw(limit, seed)
    asked = with_prompts(names_in(models), names_in(prompts))
    runs = {name: names_in(models) for name, models in (seeds or {}).items()}
    return _reported(run(opened, asked, out, cached, running, on_progress), opened, out, runs)


def put_scores(
    file: Path, model: str, out: Path, folders: Mapping[str, str], questions: Path | None, threshold: float | None
) -> dict[str, Any]:
    """Put scores of other code into a run, and write its report, as ``twinset eval scores FILE --out RUN``.

    folders: of benchmarks by name; with ``questions`` of those that lie elsewhere now, else of the one. questions:
    folder of the questions whose pairs ``file`` scores; None: it has a row an example. Returns what `evaluate` does.
    """
    from twinset.evaluation.questions.answered import score_answers
    from twinset.evaluation.questions.own_table import take_scores

    if questions is not None:
        written, opened = score_answers(file, questions, model, out, folders, threshold)
        return _reported(written, opened, out)
    opened = [benchmark for name, folder in folders.items() for benchmark in open_benchmarks(name, folder)]
    if len(opened) > 1:
        parts = ", ".join(benchmark.name for benchmark in opened)
        raise WrongUse(f"{file}: one table is about one kind of question, and this dataset asks {parts}; use questions")
    return _reported([take_scores(file, opened[0], model, out, threshold)], opened, out)


def _reported(
    written: Sequence[WrittenScores],
    opened: Sequence[Benchmark],
    out: Path,
    seeds: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, Any]:
    from twinset.evaluation.report.page import write_report  # it draws

    scored = []
    for file in written:
        about, measured = open_scores(file.path).about, measure(file.path, ["subset"]).as_json()
        facts = {name: about.get(name, {}) for name in ("left_out", "unanswered")}
        facts |= {"cut_texts": about.get("cut_texts", 0), "figures": measured["all"], "by_subset": measured["by"]}
        scored.append({**asdict(file), "path": str(file.path), **facts})
    page = write_report(out, {benchmark.name: benchmark for benchmark in opened}, seeds=seeds)[0]
    return {"scores": scored, "report": str(page)}


def scores(file: str | Path, by: str | Iterable[str] = (), **options: Any) -> dict[str, Any]:
    """Measure a Parquet or CSV file of scores of any model, as ``twinset eval scores --json`` prints it; docs/scores.md
    lists the columns. by, options (group, threshold, seed, resamples) and errors: as of `metrics.measure.measure`.
    """
    return measure(file, names_in(by), **options).as_json()


def compare(
    a: str | Path,
    b: str | Path,
    by: str | Iterable[str] = (),
    key: str | Sequence[str] | None = ("key",),
    **options: Any,
) -> dict[str, Any]:
    """Compare two files of scores row by row, as ``twinset eval compare --json`` prints it: A minus B, with intervals
    and McNemar's test. by, key, options (group, seed, resamples) and errors: as of `metrics.compare.compare`.
    """
    return compared(a, b, names_in(by), key=key and names_in(key), **options).as_json()
