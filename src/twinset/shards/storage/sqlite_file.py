"""SQLite files that threads and processes share: opened, written in transactions, and what is said where one fails."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from twinset.contracts.errors import BuildFailed

WAIT_SECONDS = 60.0  # for another process that writes
_SHOWN = 200  # characters of an error


def connect(path: Path, remedy: str) -> sqlite3.Connection:
    """The file, for all threads, made with its folder if absent; callers begin transactions. remedy: for its errors."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        error.add_note(remedy)
        raise
    return sqlite3.connect(path, timeout=WAIT_SECONDS, isolation_level=None, check_same_thread=False)


@contextmanager
def transaction(database: sqlite3.Connection) -> Iterator[None]:
    """A transaction, committed at the end and rolled back by any error."""
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
        database.execute("COMMIT")
    except BaseException:
        if database.in_transaction:  # a full disk can end it
            database.execute("ROLLBACK")
        raise


def of_the_disk(error: Exception) -> bool:
    """Whether an error tells of the disk, the folder or a lock, and not of what the file holds."""
    # An error without a code of SQLite's own is of Python's, such as of text that is not UTF-8.
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    return isinstance(error, sqlite3.OperationalError) and code != sqlite3.SQLITE_ERROR


@contextmanager
def explained(path: Path, what: str, remedy: str) -> Iterator[None]:
    """Raise `BuildFailed` for errors of SQLite. what: the file holds; remedy: where its content is at fault."""
    try:
        yield
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # the latter of SQLite's own message on damage
        reason = str(error)[:_SHOWN]
        if of_the_disk(error):
            remedy = "see that it can be written and that its disk has room, and run the same command again"
            raise BuildFailed(f"{path}: {reason}; {remedy}") from error
        raise BuildFailed(f"{path}: not a file of {what} ({reason}); {remedy}") from error
