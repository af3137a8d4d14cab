"""The flow ``train``: models on what was built; a retry, or the same parameters again, resume it."""

from pathlib import Path
from typing import Any

from prefect import flow, get_run_logger
from prefect.artifacts import create_link_artifact, create_markdown_artifact

import twinset
from twinset.training.tasks import Task

LOGGED = 20  # times in a run


@flow(name="train", persist_result=False)
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
    found = twinset.train(data, out, task=task, on_progress=_log, **(settings or {}))
    if (card := Path(out) / "README.md").is_file():
        create_markdown_artifact(card.read_text("utf-8"), key="train", description=f"The model in {out}")
    if (page := Path(out) / "report.html").is_file():
        create_link_artifact(page.resolve().as_uri(), link_text=str(page), key="train-report")
    return found


def _log(step: int, steps: int, row: dict[str, Any]) -> None:
    """Some twenty steps of a run and all validations in the log of the flow's run."""
    if step == steps or step % max(1, steps // LOGGED) == 0 or "validation" in row:
        get_run_logger().info("step %d of %d: loss %.4f %s", step, steps, row["loss"], row.get("validation", ""))
