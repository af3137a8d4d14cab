"""What a run logs step by step: ``history.jsonl``, cut back to the checkpoint when a run resumes."""

from __future__ import annotations

import fcntl
import json
import os
import time
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from twinset.manifests.errors import WrongUse

Row = dict[str, Any]
#: Seconds: workers of a process that was just killed hold its lock until they notice.
PATIENCE = 5.0


class History:
    """The rows of a run, one a step; ``step`` of a row is the number of steps taken, its own included.

    As a context manager it opens and locks the file: a second process that trains into the same folder is refused. Of
    several processes that share a run, only the first one writes.
    """

    def __init__(self, out: Path, writes: bool = True) -> None:
        self._path, self._writes = out / "history.jsonl", writes
        self.rows: list[Row] = []
        self._stream: BinaryIO | None = None

    def __enter__(self) -> History:
        if not self._writes:
            return self
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._stream = self._path.open("a+b")
        end = time.monotonic() + PATIENCE
        while True:
            try:
                fcntl.flock(self._stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return self
            except OSError as error:
                if time.monotonic() > end:
                    self._stream.close()
                    raise WrongUse(
                        f"{self._path.parent}: another process trains into it; wait for it, or name another --out"
                    ) from error
                time.sleep(0.1)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._stream is not None:
            self._stream.close()

    def cut(self, step: int) -> None:
        """Read the rows up to a step and remove those after it; a row that a kill cut short is removed too."""
        self.rows, end = [], 0
        held = self._path.read_bytes() if self._path.exists() else b""  # a process that does not write reads it too
        for line in held.splitlines(keepends=True):
            try:
                row = json.loads(line)
                if not line.endswith(b"\n") or row["step"] > step:
                    break
            except (ValueError, LookupError, TypeError, RecursionError):
                break
            self.rows.append(row)
            end += len(line)
        if self._stream is not None:
            self._stream.truncate(end)

    def add(self, row: Row) -> None:
        """Append a row."""
        self.rows.append(row)
        if self._stream is not None:
            try:
                self._stream.write(json.dumps(row, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
                self._stream.flush()
            except OSError as error:
                error.add_note(f"{self._path}: free some room and run the same command again, which resumes")
                raise

    def sync(self) -> None:
        """Fsync the rows, before a checkpoint is written that relies on them."""
        if self._stream is not None:
            os.fsync(self._stream.fileno())
