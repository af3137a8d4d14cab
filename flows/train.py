"""The flow ``train``: a dual encoder on the twins; a retry, or the same parameters again, resume it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prefect import flow, get_run_logger
from prefect.artifacts import create_link_artifact, create_markdown_artifact

import twinset
from manifests.errors import WrongUse
from training.clip.settings import settings_from

LOGGED = 20  # times in a run


@flow(name="train", persist_result=False)
def train(data: list[str], out: str, settings: dict[str, Any] | None = None) -> dict[str, Any]:
    """Train a dual encoder of open_clip, or resume its run.

    Args:
        data: as ``twinset train clip --data``.
        out: folder of the run.
        settings: others of `training.clip.settings.ClipSettings`, such as ``{"objective": "negative-texts"}``.

    Returns:
        What `twinset.train` returns.

    Raises:
        WrongUse: settings, model or data are wrong, or ``out`` holds another run.
        BuildFailed: the loss is not finite, or data are broken; the same run resumes from the last checkpoint.
    """
    given = {"data": tuple(data), **(settings or {})}
    if not data:
        raise WrongUse("data: name at least one dataset that twinset built")
    settings_from(given)
    log = get_run_logger()

    def on_progress(step: int, steps: int, row: dict[str, Any]) -> None:
        if step == steps or step % max(1, steps // LOGGED) == 0 or "validation" in row:
            log.info("step %d of %d: loss %.4f %s", step, steps, row["loss"], row.get("validation", ""))

    found = twinset.train(data, out, on_progress=on_progress, **(settings or {}))
    card = Path(out) / "README.md"
    create_markdown_artifact(card.read_text("utf-8"), key="train", description=f"The model in {out}")
    create_link_artifact(Path(found["report"]).resolve().as_uri(), link_text=found["report"], key="train-report")
    return found
