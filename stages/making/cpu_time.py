"""How much CPU time a shard takes, threads of libraries included."""

from __future__ import annotations

import multiprocessing
import threading
import time
from types import TracebackType
from typing import ClassVar, Self


class CpuTime:
    """CPU time of the shard that a thread makes while this is entered.

    It is that of the thread, and an equal share of what else the process takes meanwhile, mostly in threads of
    libraries, with the other shards that it makes. A child's first shard is charged with its start: the interpreter,
    libraries, models.

    core_seconds: up to the last look. first: whether the process makes its first shard of the stage.
    """

    _lock: ClassVar = threading.Lock()
    _at_work: ClassVar[set[CpuTime]] = set()
    _stages: ClassVar[set[str]] = set()
    _looked: ClassVar[float | None] = None  # CPU time of the process when shards were last charged

    def __init__(self, stage: str) -> None:
        self._stage, self.core_seconds, self.first = stage, 0.0, False

    def __enter__(self) -> Self:
        with self._lock:
            self.first = self._stage not in self._stages
            self._stages.add(self._stage)
            if CpuTime._looked is None and multiprocessing.parent_process() is not None:
                self.core_seconds = time.process_time()
            self._clock = time.pthread_getcpuclockid(threading.get_ident())
            self._seen = time.clock_gettime(self._clock)
            self._charge()
            self._at_work.add(self)
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        with self._lock:
            self._charge()
            self._at_work.discard(self)

    def so_far(self) -> float:
        """``core_seconds`` up to now."""
        with self._lock:
            self._charge()
        return self.core_seconds

    @classmethod
    def _charge(cls) -> None:
        """Charge the shards at work with what was taken since the last look; their threads are all alive."""
        now = time.process_time()
        rest = now - (cls._looked or 0.0)
        for one in cls._at_work:
            own = time.clock_gettime(one._clock)
            one.core_seconds += own - one._seen
            rest -= own - one._seen
            one._seen = own
        for one in cls._at_work:
            one.core_seconds += max(rest, 0.0) / len(cls._at_work)
        cls._looked = now
