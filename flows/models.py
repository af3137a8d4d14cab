"""The flows of models: ``evaluate``, a task for each model and benchmark, and ``train``."""

from itertools import product
from pathlib import Path
from typing import Any, Literal

from prefect import flow, get_run_logger, task
from prefect.artifacts import create_link_artifact, create_markdown_artifact

import twinset
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.flows.artifacts import cosmetic, told
from twinset.flows.build_shards import RETRIED
from twinset.models.encoders.contract import NotApplicable
from twinset.training.tasks import TaskName


@task(name="score", task_run_name="{model} on {benchmark}", **RETRIED)
@told
def score(model: str, benchmark: str, out: str, asked: dict[str, Any]) -> None:
    """Score a benchmark with a model and write the report; a retry goes on from what is in the cache."""
    name, _, folder = benchmark.partition("=")
    if not folder:
        raise WrongUse(f"benchmarks: {name}: write NAME=DIR")
    twinset.evaluate({name: folder}, model, out, **asked)


@flow(name="evaluate", flow_run_name="models in {out}", persist_result=False)
@told
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

    What fails takes nothing else down; the run fails at the end, and running it again resumes.

    Args:
        benchmarks: ``NAME=DIR`` each, as ``twinset eval run --benchmark``.
        models: as ``twinset eval run --model``.
        out: folder of the run.
        subsets: of the benchmarks that are read; all by default.
        cache: folder of features.
        device, batch, threads, limit, seed: as ``twinset eval run``.
    """
    asked = {"subsets": subsets or (), "limit": limit, "seed": seed, "cache": cache}
    asked |= {"device": device, "batch": batch, "threads": threads}
    failures, scored = [], 0
    for model, benchmark in product(models, benchmarks):
        state = score(model, benchmark, out, asked, return_state=True)
        scored += state.is_completed()
        if state.is_failed():
            failures.append(f"{model} on {benchmark}: {state.message}")
            if isinstance(state.result(raise_on_failure=False), NotApplicable):
                get_run_logger().warning("left out, %s", failures.pop())
    _show("evaluate", out)
    if failures or not scored:
        raise BuildFailed("\n".join(failures) or "no model can answer any of the benchmarks; the log says why")
    return str(Path(out, "report.html"))


@flow(name="train", flow_run_name="{task} in {out}", persist_result=False)
@told
def train(data: list[str], out: str, settings: dict[str, Any] | None = None, task: TaskName = "clip") -> dict[str, Any]:
    """Train a model, or resume its run.

    Args:
        data: as ``twinset train TASK --data``.
        out: folder of the run.
        settings, task: as `twinset.train`, such as ``{"objective": "negative-texts"}``.
    """
    summary = twinset.train(data, out, task=task, on_progress=_log, **(settings or {}))
    _show("train", out)
    return summary


def _log(step: int, steps: int, row: dict[str, Any]) -> None:
    """Some twenty steps of a run and all validations in the log of the flow's run."""
    if step == steps or step % max(1, steps // 20) == 0 or "validation" in row:
        get_run_logger().info("step %d of %d: loss %.4f %s", step, steps, row["loss"], row.get("validation", ""))


def _show(key: str, out: str) -> None:
    """A card and a link to the report as artifacts of the run, where they are there."""
    card, page = Path(out, "README.md"), Path(out, "report.html")
    with cosmetic():
        if card.is_file():
            create_markdown_artifact(card.read_text("utf-8"), key=key, description=f"What {out} holds")
        if page.is_file():
            create_link_artifact(page.resolve().as_uri(), link_text=str(page), key=f"{key}-report")
