"""What a build shows in Prefect: progress and log lines; then counts, cards and contact sheets."""

import base64
import io
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast
from uuid import UUID

import httpx
from prefect import get_run_logger
from prefect.artifacts import (
    create_image_artifact,
    create_markdown_artifact,
    create_progress_artifact,
    create_table_artifact,
    update_progress_artifact,
)
from prefect.exceptions import MissingContextError
from prefect.runtime import flow_run

from twinset.contracts.errors import in_words
from twinset.shards.media.decode import open_image
from twinset.shards.storage import layout
from twinset.stages.job import Job
from twinset.stages.status import state_of

ARTIFACT_PIXELS = (1000, 1600)  # a picture in an artifact is a row in Prefect's database
ARTIFACT_SECONDS = 5.0  # an update is a call to the server


@contextmanager
def cosmetic() -> Iterator[None]:
    """For what only shows in Prefect: where its server does not answer, the work goes on without it."""
    try:
        yield
    except httpx.HTTPError as error:
        get_run_logger().warning("not shown in Prefect: %s", in_words(error))


class ProgressArtifact:
    """A progress artifact of the present flow run, updated at most every few seconds."""

    def __init__(self, key: str, total: int, done: int) -> None:
        self._total, self._done, self._last = max(total, 1), done, time.monotonic()
        self._id: UUID | None = None
        with cosmetic():
            self._id = cast(
                UUID, create_progress_artifact(self._share(), key=key, description=f"{key}: {total} shards")
            )

    def advance(self) -> None:
        """One more shard is done."""
        self._done += 1
        if self._done == self._total or time.monotonic() - self._last > ARTIFACT_SECONDS:
            self._last = time.monotonic()
            if self._id is not None:
                with cosmetic():
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

    def samples(self, stage: str, made: int, planned: int) -> None:
        """As `stages.build.Progress.samples`; shown by shards alone."""

    def phase(self, stage: str, doing: str) -> None:
        """As `stages.build.Progress.phase`."""
        if doing:
            try:
                get_run_logger().info("%s: %s", stage, doing)
            except MissingContextError:
                return  # in a thread of the engine's own, which belongs to no run


def describe_build(job: Job) -> None:
    """A table of counts, named as the flow is, and for each subset its card and contact sheet."""
    table, store = [], job.store
    for name in job.recipe.subsets:
        counts = state_of(store, name).counts()
        row = {"subset": name, "planned": counts["planned"], "kept": counts["kept"]}
        table.append({**row, **counts["rejected"], "shards": counts["shards"]})
        if store.size(path := layout.meta(name, "look.png")):
            picture = base64.b64encode(_small(store.read(path))).decode()
            create_image_artifact(f"data:image/jpeg;base64,{picture}", key=f"{name}-look")
        card = store.read(f"{name}/README.md").decode("utf-8", "replace")
        create_markdown_artifact(card, key=f"{name}-card", description=f"What {store.root}/{name} holds")
    create_table_artifact(table, key=flow_run.flow_name or "build", description=f"What {store.root} holds")


def _small(sheet: bytes) -> bytes:
    small, stream = open_image(sheet, ("PNG",)).convert("RGB"), io.BytesIO()
    small.thumbnail(ARTIFACT_PIXELS)
    small.save(stream, "JPEG", quality=80)
    return stream.getvalue()
