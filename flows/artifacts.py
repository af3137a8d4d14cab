"""What a build shows in Prefect: progress and log lines; then counts, contact sheets, funnels, words of triplets."""

import base64
import io
import time
from collections.abc import Mapping, Sequence
from itertools import pairwise, zip_longest
from typing import Any, cast
from uuid import UUID

from prefect import get_run_logger
from prefect.artifacts import (
    create_image_artifact,
    create_progress_artifact,
    create_table_artifact,
    update_progress_artifact,
)
from prefect.exceptions import MissingContextError
from prefect.runtime import flow_run

from twinset.generators.triplets.report import MiningReport
from twinset.manifests.receipt import parsed
from twinset.shards.media.decode import open_image
from twinset.shards.storage import layout
from twinset.stages.job import Job
from twinset.stages.status import StageState, state_of

ARTIFACT_PIXELS = (1000, 1600)  # a picture in an artifact is a row in Prefect's database
ARTIFACT_SECONDS = 5.0  # an update is a call to the server
BAR = 40  # characters of the longest bar


class ProgressArtifact:
    """A progress artifact of the present flow run, updated at most every few seconds."""

    def __init__(self, key: str, total: int, done: int) -> None:
        self._total, self._done, self._last = max(total, 1), done, time.monotonic()
        self._id = cast(UUID, create_progress_artifact(self._share(), key=key, description=f"{key}: {total} shards"))

    def advance(self) -> None:
        """One more shard is done."""
        self._done += 1
        if self._done == self._total or time.monotonic() - self._last > ARTIFACT_SECONDS:
            self._last = time.monotonic()
            update_progress_artifact(self._id, self._share())

    def _share(self) -> float:
        return 100.0 * self._done / self._total


class Artifacts:
    """Phases of a build as log lines of its run; shards have artifacts of their own (`stages.build.Progress`)."""

    def begin(self, stage: str, total: int, done: int) -> None:
        """As `stages.build.Progress.begin`."""
        if done:
            self.phase(stage, f"{done} of {total} shards are done")

    def advance(self, stage: str) -> None:
        """As `stages.build.Progress.advance`; the run that makes the shard counts it."""

    def phase(self, stage: str, doing: str) -> None:
        """As `stages.build.Progress.phase`."""
        if doing:
            try:
                get_run_logger().info("%s: %s", stage, doing)
            except MissingContextError:
                return  # in a thread of the engine's own, which belongs to no run


def describe_build(job: Job) -> None:
    """A table of counts, named as the flow is, and for each subset its funnel and contact sheet.

    For triplets also the most frequent words and a histogram of concreteness.
    """
    table, store = [], job.store
    for name in job.recipe.subsets:
        state = state_of(store, name)
        counts = state.counts()
        row = {"subset": name, "planned": counts["planned"], "kept": counts["kept"]}
        table.append({**row, **counts["rejected"], "shards": counts["shards"]})
        if store.size(path := layout.meta(name, "look.png")):
            picture = base64.b64encode(_small(store.read(path))).decode()
            create_image_artifact(f"data:image/jpeg;base64,{picture}", key=f"{name}-look")
        path = layout.meta(name, "mining.json")
        report = parsed(MiningReport, store.read(path)) if store.size(path) is not None else None
        shown = [("funnel", _funnel(state, report), f"What is left of {name} at each step")]
        if report is not None:
            rules = f"{report.rules} rules, concreteness above {report.threshold:g}"
            shown.append(("words", _words(report), f"Most frequent words ({rules})"))
            shown.append(("concreteness", _histogram(report), f"Mean concreteness ({rules})"))
        for what, rows, description in shown:
            create_table_artifact(rows, key=f"{name}-{what}", description=description)
    create_table_artifact(table, key=flow_run.flow_name or "build", description=f"What {store.root} holds")


def _funnel(state: StageState, report: MiningReport | None) -> list[dict[str, Any]]:
    """Steps in order: of mining where there was any, what the plan left out, then what the shards rejected."""
    counts = state.counts()
    steps: list[tuple[str, int]] = [*report.funnel.items()] if report is not None else []
    steps += [(f"left out by the plan: {reason}", count) for reason, count in state.stage.excluded.items()]
    steps += [("planned", counts["planned"])]
    steps += [(f"rejected: {reason}", count) for reason, count in counts["rejected"].items()]
    return [{"step": step, "count": count} for step, count in [*steps, ("kept", counts["kept"])]]


def _words(report: MiningReport) -> list[dict[str, Any]]:
    columns: Sequence[Mapping[str, int]] = (report.subjects, report.predicates, report.objects)
    listed = zip_longest(*([f"{word} ({count:,})" for word, count in words.items()] for words in columns), fillvalue="")
    return [dict(zip(("subject", "predicate", "object of the target"), row, strict=True)) for row in listed]


def _histogram(report: MiningReport) -> list[dict[str, Any]]:
    most = max(report.histogram, default=0) or 1
    return [
        {"concreteness": f"{low:.2f}-{high:.2f}", "triplets": count, "": "█" * round(BAR * count / most)}
        for (low, high), count in zip(pairwise(report.edges), report.histogram, strict=True)
    ]


def _small(sheet: bytes) -> bytes:
    small, stream = open_image(sheet, ("PNG",)).convert("RGB"), io.BytesIO()
    small.thumbnail(ARTIFACT_PIXELS)
    small.save(stream, "JPEG", quality=80)
    return stream.getvalue()
