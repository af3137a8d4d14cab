"""The answers of the page in SQLite: each is on the disk before the page is told so, once, however often it is sent."""

import os
import sqlite3
import threading
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.generators.decisions.answers import COLUMNS, INSERT, Answer, create_tables, from_row, to_row
from twinset.shards.storage.sqlite_file import connect, of_the_disk, transaction

Asked = tuple[str, str, str]  # stage, task, binding

_KEY = "stage = ? AND task = ? AND binding = ? AND annotator = ?"
_ALL = ", ".join(COLUMNS)


class AnsweredOtherwise(Exception):
    """The annotator gave another answer to the task before: only undo changes an answer."""


def utc_now() -> str:
    """The time in UTC, ISO 8601, to the microsecond."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


class AnswerStore:
    """The file of answers and leases, which other processes may write to at any time.

    Raises:
        WrongUse: the file is not one of answers.
        BuildFailed: of all methods: it cannot be read or written now.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.RLock()
        with self._explained():
            self._connection = connect(path, "name another file of answers, on a disk that can be written")
            try:
                create_tables(self._connection)
                self.answers()
                self._file = path.stat()
            except BaseException:
                self._connection.close()
                raise

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    def answers(self) -> dict[Asked, dict[str, Answer]]:
        """All answers by task and annotator."""
        answers: defaultdict[Asked, dict[str, Answer]] = defaultdict(dict)
        with self._lock, self._explained():
            for row in self._connection.execute(f"SELECT {_ALL} FROM answers"):
                answer = _answer(row)
                answers[answer.stage, answer.task, answer.binding][answer.annotator] = answer
        return dict(answers)

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
        new = 0
        with self._transaction():
            for answer in answers:
                key = [answer.stage, answer.task, answer.binding, answer.annotator]
                if self._connection.execute(INSERT, [*to_row(answer).values()]).rowcount:
                    self._connection.execute(f"DELETE FROM leases WHERE {_KEY}", key)
                    new += 1
                    continue
                row = self._connection.execute(f"SELECT answer, reason FROM answers WHERE {_KEY}", key).fetchone()
                if row != (answer.answer, answer.reason):
                    raise AnsweredOtherwise(
                        f"{answer.annotator} answered {answer.task} with {row[0]} before; undo that first"
                    )
        return new

    def undo(self, annotator: str, asked: Container[Asked]) -> Answer | None:
        """Take back the last answer of an annotator to one of the tasks that are asked; None where there is none.

        It moves to the table ``undone``.
        """
        with self._transaction():
            query = f"SELECT {_ALL} FROM answers WHERE annotator = ? ORDER BY rowid DESC"
            for row in self._connection.execute(query, [annotator]).fetchall():
                answer = _answer(row)
                key = answer.stage, answer.task, answer.binding
                if key in asked:
                    self._connection.execute(
                        f"INSERT INTO undone ({_ALL}, undone_at) SELECT {_ALL}, ? FROM answers WHERE {_KEY}",
                        [utc_now(), *key, annotator],
                    )
                    self._connection.execute(f"DELETE FROM answers WHERE {_KEY}", [*key, annotator])
                    return answer
        return None

    def lease(self, annotator: str, until: Mapping[Asked, float]) -> None:
        """Keep tasks for an annotator, also over a restart. until: when each lease ends, seconds since 1970."""
        with self._transaction():
            rows = [(*asked, annotator, end) for asked, end in until.items()]
            self._connection.executemany("INSERT OR REPLACE INTO leases VALUES (?, ?, ?, ?, ?)", rows)

    def leases(self, now: float) -> dict[Asked, dict[str, float]]:
        """When the leases that hold still end, by task and annotator. now: seconds since 1970."""
        leases: defaultdict[Asked, dict[str, float]] = defaultdict(dict)
        with self._lock, self._explained():
            query = "SELECT * FROM leases WHERE typeof(until) = 'real' AND until > ?"
            for stage, task, binding, annotator, until in self._connection.execute(query, [now]):
                leases[stage, task, binding][annotator] = until
        return dict(leases)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """What is written in the block is on the disk when it ends, or nothing of it."""
        with self._lock, self._explained():
            # SQLite would go on writing into a file that no name leads to.
            if not self.path.exists() or not os.path.samestat(self._file, self.path.stat()):
                raise BuildFailed(
                    f"{self.path}: was moved, removed or replaced while it was open; nothing was saved, put it back, "
                    "or start twinset review again"
                )
            with transaction(self._connection):
                yield

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.DatabaseError, ValueError) as error:
            if of_the_disk(error):  # or a lock
                raise BuildFailed(
                    f"{self.path}: {error}; what was not confirmed is not saved, free the disk or the file and retry"
                ) from error
            raise WrongUse(f"{self.path}: not a file of answers ({error}); move it away or name another") from error


@lru_cache(1 << 16)  # every request reads all answers
def _answer(row: tuple[object, ...]) -> Answer:
    return from_row(dict(zip(COLUMNS, row, strict=True)))
