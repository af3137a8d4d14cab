"""The flow ``train``: models on what was built; a retry, or the same parameters again, resume it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, get_args

from prefect import flow, get_run_logger
from prefect.artifacts import create_link_artifact, create_markdown_artifact

import twinset
from twinset.manifests.errors import WrongUse
from twinset.training.clip.settings import checked, settings_from

LOGGED = 20  # times in a run
Task = Literal["clip", "combiner", "detectors"]
OnProgress = Callable[[int, int, dict[str, Any]], None]


@flow(name="train", persist_result=False)
def train(data: list[str], out: str, settings: dict[str, Any] | None = None, task: Task = "clip") -> dict[str, Any]:
    """Train a model, or resume its run.

    Args:
        data: as ``twinset train TASK --data``.
        out: folder of the run.
        settings: others of the task, such as ``{"objective": "negative-texts"}``: of
            `training.clip.settings.ClipSettings`, `training.combiner.settings.CombinerSettings` or
            `training.detectors.settings.DetectorSettings`.
        task: a dual encoder of open_clip, a Combiner, or detectors of what is synthetic.

    Returns:
        What the run came to, as JSON: the sha256 of its weights, or the accuracy of detectors.

    Raises:
        WrongUse: settings, model or data are wrong, or ``out`` holds another run.
        BuildFailed: the loss is not finite, or data are broken; the same run resumes from the last checkpoint.
    """
    if task not in get_args(Task):
        raise WrongUse(f"task: {task!r} is none of {', '.join(get_args(Task))}")
    if not data:
        raise WrongUse("data: name at least one dataset that twinset built")
    found = {"clip": _clip, "combiner": _combiner, "detectors": _detectors}[task](data, out, settings or {})
    if (card := Path(out) / "README.md").is_file():
        create_markdown_artifact(card.read_text("utf-8"), key="train", description=f"The model in {out}")
    if (page := Path(out) / "report.html").is_file():
        create_link_artifact(page.resolve().as_uri(), link_text=str(page), key="train-report")
    return found


def _clip(data: list[str], out: str, settings: dict[str, Any]) -> dict[str, Any]:
    settings_from({"data": tuple(data), **settings})
    return twinset.train(data, out, on_progress=_progress(), **settings)


def _combiner(data: list[str], out: str, settings: dict[str, Any]) -> dict[str, Any]:
    from twinset.training.combiner.settings import CombinerSettings
    from twinset.training.combiner.train import train_combiner

    chosen = checked(CombinerSettings, {"data": tuple(data), **settings})
    done = train_combiner(chosen, Path(out), _progress())
    return {
        "model": done.model, "sha256": done.digest, "best_step": done.best_step, "recall@1": done.best_value,
        "resumed_at": done.resumed_at,
    }  # fmt: skip


def _detectors(data: list[str], out: str, settings: dict[str, Any]) -> dict[str, Any]:
    from twinset.training.detectors.settings import DetectorSettings
    from twinset.training.detectors.train import train_detectors

    done = train_detectors(checked(DetectorSettings, {"data": tuple(data), **settings}), Path(out))
    return {"out": str(done.folder), "accuracy": done.accuracy}


def _progress() -> OnProgress:
    """Some twenty steps of a run and all validations in the log of the flow's run."""
    log = get_run_logger()

    def on_progress(step: int, steps: int, row: dict[str, Any]) -> None:
        if step == steps or step % max(1, steps // LOGGED) == 0 or "validation" in row:
            log.info("step %d of %d: loss %.4f %s", step, steps, row["loss"], row.get("validation", ""))

    return on_progress
