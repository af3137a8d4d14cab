"""The flows of models: ``evaluate``, a task for each model and benchmark, then the report; and ``train``,
which a retry, or the same parameters again, resume.
"""

from pathlib import Path
from typing import Any, Literal

from prefect import flow, get_run_logger, task
from prefect.artifacts import create_link_artifact, create_markdown_artifact

import twinset
from twinset.contracts.errors import BuildFailed, WrongUse, in_words
from twinset.evaluation.benchmarks import BENCHMARKS
from twinset.evaluation.benchmarks.limited import limited
from twinset.evaluation.dataset_parts import open_benchmarks
from twinset.evaluation.report.page import write_report
from twinset.evaluation.report.result_tables import benchmark_tables
from twinset.evaluation.report.results import measured_run
from twinset.evaluation.report.tables import as_markdown
from twinset.evaluation.run import run
from twinset.flows.artifacts import cosmetic
from twinset.flows.build_shards import RETRIED
from twinset.flows.login import warn_without_login
from twinset.models.encoders.contract import NotApplicable, Running
from twinset.training.tasks import Task


@task(name="score", task_run_name="{model} on {benchmark}", **RETRIED)
def score_task(
    benchmark: str,
    place: str,
    model: str,
    out: str,
    subsets: list[str],
    cache: str | None,
    running: dict[str, Any],
    limit: int | None = None,
    seed: int = 0,
) -> str:
    """Score one benchmark with one model; a retry goes on from what is in the cache. Returns the score file.

    Args:
        benchmark: name of one that `open_benchmarks` finds in ``place``, which is ``NAME=DIR``.
    """
    name, _, folder = place.partition("=")
    whole = next(one for one in open_benchmarks(name, folder, subsets) if one.name == benchmark)
    (reader,) = limited([whole], limit, seed)
    return str(run([reader], [model], Path(out), Path(cache) if cache else None, Running(**running))[0].path)


@flow(name="evaluate", flow_run_name="models in {out}", persist_result=False)
def evaluate(
    benchmarks: list[str],
    models: list[str],
    out: str,
    subsets: list[str] | None = None,
    cache: str | None = None,
    device: Literal["cpu", "gpu"] = "cpu",
    batch: int = 32,
    threads: int = 0,
    limit: int | None = None,
    seed: int = 0,
) -> str:
    """Score benchmarks with models, one after the other, and write the report.

    One that fails takes no other down; the run fails at the end, and running it again resumes.

    Args:
        benchmarks: ``NAME=DIR`` each, as ``twinset eval run --benchmark``.
        models: as ``twinset eval run --model``.
        out: folder of the run.
        subsets: of the benchmarks that are read; all by default.
        cache: folder of features.
        device, batch, threads, limit, seed: as ``twinset eval run``.

    Returns:
        Path of ``report.html``.

    Raises:
        WrongUse: before any work, a benchmark or its folder is wrong.
        BuildFailed: some scores could not be had, after all that could be were.
    """
    warn_without_login()
    named = [one.partition("=")[::2] for one in benchmarks]
    if bare := [name for name, folder in named if not folder]:
        raise WrongUse(f"benchmarks: {', '.join(bare)}: write NAME=DIR")
    if not named or not models:
        raise WrongUse(f"benchmarks, models: name at least one of each; benchmarks are {', '.join(BENCHMARKS.kinds())}")
    opened = [
        (place, one)
        for place, (name, folder) in zip(benchmarks, named, strict=True)
        for one in limited(open_benchmarks(name, folder, subsets or []), limit, seed)
    ]
    running = {"device": device, "batch": batch, "threads": threads}
    scored, failures = 0, []
    for model in models:
        for place, name in [(place, one.name) for place, one in opened]:
            state = score_task(name, place, model, out, subsets or [], cache, running, limit, seed, return_state=True)
            if state.is_completed():
                scored += 1
                continue
            error = state.result(raise_on_failure=False)
            if isinstance(error, NotApplicable):
                get_run_logger().warning("%s: left out, %s", name, error)
            else:
                failures.append(
                    f"{model} on {name}: {in_words(error) if isinstance(error, Exception) else state.message}"
                )
    if scored:
        page = write_report(Path(out), {one.name: one for _, one in opened})[0]
        with cosmetic():
            _show(Path(out), page)
    if failures or not scored:
        raise BuildFailed("\n".join(failures) or "no model can answer any of the benchmarks; the log says why")
    return str(page)


def _show(out: Path, page: Path) -> None:
    """The first table of each benchmark as an artifact, and a link to the page."""
    tables = [benchmark_tables(results)[0] for results in measured_run(out, resamples=0)]
    text = "\n".join(f"## {as_markdown(table)}" for table in tables)
    create_markdown_artifact(text, key="evaluate", description=f"What {out} holds")
    create_link_artifact(page.resolve().as_uri(), link_text=str(page), key="evaluate-report")


LOGGED = 20  # times in a run


TRAIN_NAME = "{task} in {out}"


@flow(name="train", flow_run_name=TRAIN_NAME, persist_result=False)
def train(data: list[str], out: str, settings: dict[str, Any] | None = None, task: Task = "clip") -> dict[str, Any]:
    """Train a model, or resume its run.

    Args:
        data: as ``twinset train TASK --data``.
        out: folder of the run.
        settings, task: as `twinset.train`, such as ``{"objective": "negative-texts"}``.

    Returns:
        As `twinset.train`.

    Raises:
        WrongUse: settings, model or data are wrong, or ``out`` holds another run.
        BuildFailed: the loss is not finite, or data are broken; the same run resumes from the last checkpoint.
    """
    warn_without_login()
    found = twinset.train(data, out, task=task, on_progress=_log, **(settings or {}))
    with cosmetic():
        if (card := Path(out) / "README.md").is_file():
            create_markdown_artifact(card.read_text("utf-8"), key="train", description=f"The model in {out}")
        if (page := Path(out) / "report.html").is_file():
            create_link_artifact(page.resolve().as_uri(), link_text=str(page), key="train-report")
    return found


def _log(step: int, steps: int, row: dict[str, Any]) -> None:
    """Some twenty steps of a run and all validations in the log of the flow's run."""
    if step == steps or step % max(1, steps // LOGGED) == 0 or "validation" in row:
        get_run_logger().info("step %d of %d: loss %.4f %s", step, steps, row["loss"], row.get("validation", ""))
