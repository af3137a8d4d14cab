"""Evaluation for notebooks, as `twinset` offers it: `evaluate`, `scores` and `compare`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from twinset.contracts.canonical import names_in
from twinset.contracts.errors import WrongUse
from twinset.evaluation.benchmarks.limited import limited
from twinset.evaluation.dataset_parts import open_benchmarks
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
    """Score benchmarks with models and write the report, or resume it; what was encoded stays in the cache.

    Args:
        benchmarks: names of `evaluation.benchmarks.BENCHMARKS`, each with its folder: a dict, or pairs.
        models: as ``twinset eval run --model`` takes them.
        out: folder; scores go to ``scores/BENCHMARK/MODEL.parquet`` below it, beside ``report.html`` and
            ``results.json``.
        subsets: of the benchmarks that are read; all when empty.
        prompts: names or YAML files, with each of which multimodal language models are asked; their own when empty.
        seeds: by a name of yours the models that are seeds of one; the report has their mean too.
        limit: examples of each subset, drawn by ``seed`` in proportion to its categories; None: all.
        cache: folder of features; ``~/.cache/twinset/features`` by default.
        batch: images, texts or pairs of a pass.
        threads: torch's; 0: one a core.
        on_progress: called with benchmark, model and the number of examples done.

    Returns:
        ``{"scores": [{"benchmark", "model", "path", "rows", "computed", "left_out", "unanswered", "cut_texts",
        "figures", "by_subset"}], "report": PATH}``.

    Raises:
        WrongUse: a model or a benchmark is wrong, or nothing of one can be scored.
    """
    if isinstance(benchmarks, str):
        raise WrongUse(f"benchmarks {benchmarks!r}: name the folder too, as in {{'sugarcrepe': 'data/sugarcrepe'}}")
    places = benchmarks.items() if isinstance(benchmarks, Mapping) else benchmarks
    out, cached, running = local_folder_of(out), Path(cache) if cache else None, Running(device, batch, threads)
    whole = [one for name, folder in places for one in open_benchmarks(name, folder, names_in(subsets))]
    opened = limited(whole, limit, seed)
    asked = with_prompts(names_in(models), names_in(prompts))
    runs = {name: names_in(models) for name, models in (seeds or {}).items()}
    return _reported(run(opened, asked, out, cached, running, on_progress), opened, out, runs)


def put_scores(
    file: Path, model: str, out: Path, folders: Mapping[str, str], questions: Path | None, threshold: float | None
) -> dict[str, Any]:
    """Put scores of other code into a run, and write its report, as ``twinset eval scores FILE --out RUN``; returns
    what `evaluate` does.

    Args:
        folders: of benchmarks by name; with ``questions`` of those that lie elsewhere now, else of the one.
        questions: folder of the questions whose pairs ``file`` scores; None: it has a row an example.
    """
    from twinset.evaluation.questions.answered import score_answers
    from twinset.evaluation.questions.own_table import take_scores

    if questions is not None:
        written, opened = score_answers(file, questions, model, out, folders, threshold)
        return _reported(written, opened, out)
    opened = [one for name, folder in folders.items() for one in open_benchmarks(name, folder)]
    if len(opened) > 1:
        parts = ", ".join(one.name for one in opened)
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
        about = {"left_out": {}, "unanswered": {}, "cut_texts": 0, **open_scores(file.path).about}
        facts = {name: about[name] for name in ("left_out", "unanswered", "cut_texts")}
        measured = measure(file.path, ["subset"]).as_json()
        figures = {"figures": measured["all"], "by_subset": measured["by"]}
        scored.append({**asdict(file), "path": str(file.path), **facts, **figures})
    page = write_report(out, {one.name: one for one in opened}, seeds=seeds)[0]
    return {"scores": scored, "report": str(page)}


def scores(
    file: str | Path,
    by: str | Iterable[str] = (),
    *,
    group: str | None = None,
    threshold: float | None = None,
    seed: int = 0,
    resamples: int = 2000,
) -> dict[str, Any]:
    """Measure a Parquet or CSV file of scores of any model; docs/scores.md lists the columns.

    Args:
        by: columns; the figures are also given for the rows of each value.
        group: column whose rows are resampled together; None: ``group`` where there is one, else each row alone.
        threshold: score above which image and caption are said to match, for VALSE's figures.
        seed, resamples: of the bootstrap; 0 resamples for no intervals.

    Returns:
        What ``twinset eval scores --json`` prints.

    Raises:
        WrongUse: the file cannot be read, lacks a column, a row has no score, or two rows have one key; names the row
            and the remedy.
    """
    return measure(file, names_in(by), seed, resamples, group=group, threshold=threshold).as_json()


def compare(
    a: str | Path,
    b: str | Path,
    by: str | Iterable[str] = (),
    *,
    key: str | Sequence[str] | None = ("key",),
    group: str | None = None,
    seed: int = 0,
    resamples: int = 2000,
) -> dict[str, Any]:
    """Compare two files of scores row by row: A minus B, with intervals and McNemar's test.

    Args:
        by, group, seed, resamples: as `scores`; columns of ``a``.
        key: columns that identify a row in both; None: their rows are in the same order.

    Returns:
        What ``twinset eval compare --json`` prints.

    Raises:
        WrongUse: a key twice in a file, no key in common, or files of different kinds.
    """
    return compared(a, b, names_in(by), seed, resamples, key=key and names_in(key), group=group).as_json()
