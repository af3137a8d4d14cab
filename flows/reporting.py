"""How a running build reports to Prefect: progress artifacts and log lines."""

from __future__ import annotations

import time
from typing import cast
from uuid import UUID

from prefect import get_run_logger
from prefect.artifacts import create_progress_artifact, update_progress_artifact
from prefect.exceptions import MissingContextError

ARTIFACT_SECONDS = 5.0  # an update is a call to the server


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
    """Phases of a build as log lines of its run; shards have progress artifacts of their own (`stages.progress`)."""

    def begin(self, stage: str, total: int, done: int) -> None:
        """As `stages.progress.Progress.begin`."""
        if done:
            self.phase(stage, f"{done} of {total} shards are done")

    def advance(self, stage: str) -> None:
        """As `stages.progress.Progress.advance`; the run that makes the shard counts it."""

    def phase(self, stage: str, doing: str) -> None:
        """As `stages.progress.Progress.phase`."""
        if doing:
            try:
                get_run_logger().info("%s: %s", stage, doing)
            except MissingContextError:
                return  # in a thread of the engine's own, which belongs to no run
