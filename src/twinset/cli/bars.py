"""Progress of a build on stderr: bars on a terminal, and lines in a log.

Bars show rate and time left of a stage, or what runs while nothing is counted.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from twinset.stages.build import Progress

MINUTE = 60.0  # seconds between two lines of a stage in a log


@contextlib.contextmanager
def bars() -> Iterator[Progress]:
    """Bars on stderr where it is a terminal, else lines."""
    if not sys.stderr.isatty():
        yield Lines()
        return
    shown = Bars()
    with shown.progress:
        yield shown


class Lines:
    """A line where a stage begins to make shards, where it has ended, and a minute at most between them."""

    def __init__(self) -> None:
        self._counts: dict[str, tuple[int, int]] = {}  # done, total
        self._samples: dict[str, str] = {}
        self._began: dict[str, float] = {}
        self._said: dict[str, float] = {}
        self._lock = threading.Lock()

    def begin(self, stage: str, total: int, done: int) -> None:
        with self._lock:
            self._counts[stage] = done, total
            self._began.setdefault(stage, time.monotonic())
            self._say(f"{stage}: making {total - done:,} of {total:,} shards", stage)

    def advance(self, stage: str) -> None:
        with self._lock:
            done, total = self._counts[stage]
            self._counts[stage] = done + 1, total
            if done + 1 < total:
                self._say_where(stage)

    def samples(self, stage: str, made: int, planned: int) -> None:
        """As `stages.build.Progress.samples`."""
        with self._lock:
            self._samples[stage] = f", {made:,} of {planned:,} samples"
            if made < planned:
                self._say_where(stage)

    def _say_where(self, stage: str) -> None:
        if time.monotonic() - self._said[stage] >= MINUTE:
            done, total = self._counts[stage]
            shards = f"{done:,} of {total:,} shards{self._samples.get(stage, '')}"
            self._say(f"{stage}: {shards} after {self._seconds(stage)}", stage)

    def phase(self, stage: str, doing: str) -> None:
        """As `stages.build.Progress.phase`; a stage without a shard to make says nothing."""
        with self._lock:
            if not doing and stage in self._began:
                self._say(f"{stage}: done in {self._seconds(stage)}", stage)
                del self._began[stage]

    def _seconds(self, stage: str) -> str:
        return f"{time.monotonic() - self._began[stage]:,.0f} s"

    def _say(self, line: str, stage: str) -> None:
        print(line, file=sys.stderr, flush=True)
        self._said[stage] = time.monotonic()


class Bars:
    """One bar a stage; counts all samples, those of earlier runs too."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TimeRemainingColumn

        columns = ("{task.description}", BarColumn(), "{task.fields[shown]}", TimeRemainingColumn())
        self.progress = Progress(*columns, console=Console(stderr=True))
        self._began: dict[str, tuple[float, int]] = {}
        self._samples: dict[str, tuple[int, int]] = {}
        self._done: dict[str, int] = {}
        self._total: dict[str, int] = {}
        self._tasks: dict[str, int] = {}
        self._lock = threading.Lock()

    def begin(self, stage: str, total: int, done: int) -> None:
        with self._lock:
            self._total[stage], self._done[stage] = total, done
            self._update(stage)

    def advance(self, stage: str) -> None:
        with self._lock:
            self._done[stage] += 1
            self._update(stage)

    def samples(self, stage: str, made: int, planned: int) -> None:
        """As `stages.build.Progress.samples`."""
        with self._lock:
            if stage not in self._samples:
                self._began[stage] = time.monotonic(), made
            self._samples[stage] = made, planned
            self._update(stage, total=planned, completed=made)

    def phase(self, stage: str, doing: str) -> None:
        with self._lock:
            if doing:
                self._update(stage, shown=doing)
            elif stage in self._total:
                self._update(stage)
            elif stage in self._tasks:
                self.progress.remove_task(self._tasks.pop(stage))  # type: ignore[arg-type]

    def _update(self, stage: str, shown: str = "", **values: int) -> None:
        if stage not in self._tasks:
            self._tasks[stage] = self.progress.add_task(stage, total=None, shown="")
        self.progress.update(self._tasks[stage], shown=shown or self._counted(stage), **values)  # type: ignore[arg-type]

    def _counted(self, stage: str) -> str:
        shards = f"{self._done.get(stage, 0):,} of {self._total.get(stage, 0):,} shards"
        if stage not in self._samples:
            return shards
        (began, before), (made, planned) = self._began[stage], self._samples[stage]
        rate = f", {(made - before) / max(time.monotonic() - began, 1e-6):.2f}/s" if made > before else ""
        return f"{made:,} of {planned:,} samples, {shards}{rate}"
