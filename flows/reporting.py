"""How a running build tells people where it is: progress bars on a terminal, artifacts in Prefect."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Protocol, cast
from uuid import UUID

from prefect.artifacts import create_progress_artifact, update_progress_artifact
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

ARTIFACT_SECONDS = 5.0  # an update is a call to the server


class Reporter(Protocol):
    """Told of shards as they are done."""

    def begin(self, subset: str, total: int, done: int) -> None: ...
    def advance(self, subset: str) -> None: ...


class Silent:
    """Nobody is looking."""

    def begin(self, subset: str, total: int, done: int) -> None:
        return

    def advance(self, subset: str) -> None:
        return


class Bars:
    """One progress bar a subset on stderr, with rate and time left; counts all shards, those of earlier runs too."""

    def __init__(self) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("shards"),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        self._tasks: dict[str, tuple[TaskID, float, int]] = {}

    def begin(self, subset: str, total: int, done: int) -> None:
        if subset not in self._tasks:
            task = self._progress.add_task(subset, total=total, completed=done, rate="")
            self._tasks[subset] = task, time.monotonic(), done
        else:
            self._progress.update(self._tasks[subset][0], total=total, completed=done)

    def advance(self, subset: str) -> None:
        task, began, before = self._tasks[subset]
        self._progress.advance(task)
        made = self._progress.tasks[self._progress.task_ids.index(task)].completed - before
        self._progress.update(task, rate=f"{made / max(time.monotonic() - began, 1e-6):.2f}/s")

    def __enter__(self) -> Bars:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()


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


class StageProgress:
    """Tells of a stage's shards wherever people look, when it is called with the numbers of done and of all shards."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._artifact: ProgressArtifact | None = None

    def __call__(self, done: int, total: int) -> None:
        if self._artifact is None:
            self._artifact = ProgressArtifact(self._name, total, done)
            reporter().begin(self._name, total, done)
        else:
            self._artifact.advance()
            reporter().advance(self._name)


_reporter: Reporter = Silent()


def report_to(reporter: Reporter) -> None:
    """Have this process's builds reported to ``reporter``."""
    global _reporter
    _reporter = reporter


def reporter() -> Reporter:
    """Who is told of progress in this process."""
    return _reporter
