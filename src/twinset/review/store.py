"""The answers of the page in SQLite: each is on the disk before the page is told so, once, however often it is sent."""

import os
import sqlite3
import threading
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.generators.decisions.answers import COLUMNS, INSERT, Answer, create_tables, from_row, to_row
from twinset.shards.storage.sqlite_file import connect, transaction

Asked = tuple[str, str, str]  # stage, task, binding
Leases = Mapping[Asked, Mapping[str, float]]  # until when (s since 1970), by task and annotator

_KEY = "stage = ? AND task = ? AND binding = ? AND annotator = ?"
_ALL = ", ".join(COLUMNS)


class AnsweredOtherwise(Exception):
    """The annotator answered the task before, and otherwise: only undo changes an answer."""


def utc_now() -> str:
    """The time in UTC, ISO 8601, to the microsecond."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


class AnswerStore:
    """The file of answers, and what it holds in memory.

    Other processes may write to the file at any time: what is in memory follows. Raises `WrongUse`: the file is not one
    of answers.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._held: dict[Asked, dict[str, Answer]] = {}
        self._leases: dict[Asked, dict[str, float]] = {}
        self._version = -1
        with self._explained():
            self._connection = connect(path, "name another file of answers, on a disk that can be written")
            try:
                create_tables(self._connection)
                self._follow()
                self._file = path.stat()
            except BaseException:
                self._connection.close()
                raise

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    def save(self, answer: Answer) -> bool:
        """Commit an answer; when this returns it is on the disk.

        Returns:
            Whether it is new: False where the same answer was there.

        Raises:
            AnsweredOtherwise: the annotator gave another answer to this task.
        """
        return self.save_all([answer]) == 1

    def save_all(self, answers: Iterable[Answer]) -> int:
        """Commit answers all together or, with an error, none; returns how many are new. Raises as `save`."""
        new: list[Answer] = []
        with self._transaction():
            for one in answers:
                key = [one.stage, one.task, one.binding, one.annotator]
                if self._connection.execute(INSERT, [*to_row(one).values()]).rowcount:
                    self._connection.execute(f"DELETE FROM leases WHERE {_KEY}", key)
                    new.append(one)
                    continue
                row = self._connection.execute(f"SELECT answer, reason FROM answers WHERE {_KEY}", key).fetchone()
                if tuple(row) != (one.answer, one.reason):
                    raise AnsweredOtherwise(
                        f"{one.annotator} answered {one.task} with {row[0]} before; undo that first"
                    )
        with self._lock:
            for one in new:
                self._hold(one)
                self._leases.get((one.stage, one.task, one.binding), {}).pop(one.annotator, None)
        return len(new)

    def undo(self, annotator: str, asked: Container[Asked]) -> Answer | None:
        """Take back the last answer of an annotator to one of the tasks that are asked; None where there is none."""
        taken = None
        with self._transaction():
            rows = self._connection.execute(
                f"SELECT {_ALL} FROM answers WHERE annotator = ? ORDER BY rowid DESC", [annotator]
            )
            for row in rows:
                found = _answer(row)
                if (found.stage, found.task, found.binding) in asked:
                    taken = found
                    break
            rows.close()
            if taken is not None:
                self._take_back(taken)
        if taken is not None:
            with self._lock:
                self._held.get((taken.stage, taken.task, taken.binding), {}).pop(annotator, None)
        return taken

    def held(self) -> Mapping[Asked, Mapping[str, Answer]]:
        """All answers by task and annotator: a live view, to look tasks up in, not to go through."""
        with self._lock:
            self._follow()
            return self._held

    def last_of(self, annotator: str, stage: str, most: int) -> list[Answer]:
        """The last answers of an annotator to the tasks of a stage, the latest first."""
        with self._lock, self._explained():
            rows = self._connection.execute(
                f"SELECT {_ALL} FROM answers WHERE annotator = ? AND stage = ? ORDER BY rowid DESC LIMIT ?",
                [annotator, stage, most],
            )
            return [_answer(row) for row in rows]

    def lease(self, tasks: Iterable[Asked], annotator: str, until: float, now: float) -> None:
        """Keep tasks for an annotator, also over a restart; leases that are over are forgotten.

        Args:
            until, now: seconds since 1970.
        """
        rows = [(*asked, annotator, until) for asked in tasks]
        # A power failure may lose a lease, so that none waits for the disk; a killed server loses none.
        with self._transaction(durable=False):
            self._connection.execute("DELETE FROM leases WHERE until <= ?", [now])
            self._connection.executemany("INSERT OR REPLACE INTO leases VALUES (?, ?, ?, ?, ?)", rows)
        with self._lock:
            for stage, task, binding, *_ in rows:
                self._leases.setdefault((stage, task, binding), {})[annotator] = until

    def leases(self) -> Leases:
        """All leases, also those that are over: a live view, as `held`."""
        with self._lock:
            self._follow()
            return self._leases

    def _take_back(self, answer: Answer) -> None:
        key = [answer.stage, answer.task, answer.binding, answer.annotator]
        self._connection.execute(
            f"INSERT INTO undone ({_ALL}, undone_at) SELECT {_ALL}, ? FROM answers WHERE {_KEY}", [utc_now(), *key]
        )
        self._connection.execute(f"DELETE FROM answers WHERE {_KEY}", key)

    def _hold(self, answer: Answer) -> None:
        self._held.setdefault((answer.stage, answer.task, answer.binding), {})[answer.annotator] = answer

    def _follow(self) -> None:
        """Read the file again where another process has written to it; SQLite says so without a look at the rows."""
        with self._explained():
            version = self._connection.execute("PRAGMA data_version").fetchone()[0]
            if version == self._version:
                return
            self._version, self._held, self._leases = version, {}, {}
            for row in self._connection.execute(f"SELECT {_ALL} FROM answers"):
                self._hold(_answer(row))
            for stage, task, binding, annotator, until in self._connection.execute("SELECT * FROM leases"):
                if not isinstance(until, float):
                    raise ValueError(f"until of a lease is {str(until)[:40]!r}, not a number")
                self._leases.setdefault((stage, task, binding), {})[annotator] = until

    @contextmanager
    def _transaction(self, durable: bool = True) -> Iterator[None]:
        """durable: whether what is committed is on the disk when this ends."""
        with self._lock, self._explained():
            self._still_there()
            self._connection.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
            with transaction(self._connection):
                yield

    def _still_there(self) -> None:
        """Raise `BuildFailed` when the file was removed or replaced: SQLite would write into what no name leads to."""
        try:
            same = os.path.samestat(self._file, self.path.stat())
        except FileNotFoundError:
            same = False
        if not same:
            raise BuildFailed(
                f"{self.path}: was moved, removed or replaced while it was open; nothing was saved, put it back, or "
                "start twinset review again"
            )

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:  # a full disk, a lock
            raise BuildFailed(
                f"{self.path}: {error}; nothing was saved, free the disk or the file and retry"
            ) from error
        except (sqlite3.DatabaseError, ValueError) as error:
            raise WrongUse(f"{self.path}: not a file of answers ({error}); move it away or name another") from error


def _answer(row: Iterable[object]) -> Answer:
    return from_row(dict(zip(COLUMNS, row, strict=True)))
