"""Answers of people, and the SQLite file that holds them; a Parquet file of the same columns can stand in for it.

The page (`review`) writes the file, one committed row an answer; generators read it.
"""

import dataclasses
import json
import math
import os
import re
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from twinset.contracts.errors import WrongUse
from twinset.shards.storage.parquet_reader import batches

FILE = "_review/answers.sqlite"  # below OUT
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")  # of an annotator
LONGEST_TEXT = 500  # characters of a key, an answer or a reason
_VERSION = 3  # raised with the columns
_MAGIC = {b"SQLite format 3\0": "sqlite", b"PAR1": "parquet"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one annotator said to one task.

    stage, task: name of the decision stage and key of the task. binding: of the task when it was asked
    (`generators.decisions.question.TaskCandidate.binding`). answer: value of the option taken; reason: why, where the
    question asks for one. shown: values of the options in the order in which they were shown; position: of the one
    taken, from 0, -1 where it is not known. seconds: from showing to answering. at: time in UTC, ISO 8601.
    adjudicated: it settles the disagreement of others, and alone counts.
    """

    stage: str
    task: str
    binding: str
    annotator: str
    answer: str
    reason: str = ""
    shown: tuple[str, ...] = ()
    position: int = -1
    seconds: float = 0.0
    at: str = ""
    adjudicated: bool = False


#: Columns of the file and of exports, in this order; ``shown`` is a JSON list.
SCHEMA = pa.schema(
    [
        *(pa.field(name, pa.string()) for name in ("stage", "task", "binding", "annotator", "answer", "reason")),
        pa.field("shown", pa.string()),
        pa.field("position", pa.int32()),
        pa.field("seconds", pa.float64()),
        pa.field("at", pa.string()),
        pa.field("adjudicated", pa.bool_()),
    ]
)
COLUMNS: tuple[str, ...] = tuple(SCHEMA.names)

_SQL = Path(__file__).with_name("answers.sql").read_text("utf-8")
_KEY = ("stage", "task", "binding", "annotator")
_TEXTS = (*_KEY, "answer", "reason")
#: Inserts an answer (`to_row`'s values); the same primary key again changes nothing.
INSERT = (
    f"INSERT INTO answers ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))}) "
    "ON CONFLICT (stage, task, binding, annotator) DO NOTHING"
)


def schema(connection: sqlite3.Connection) -> None:
    """Make the tables where they are absent, and have every commit reach the disk before it returns.

    An answer that is taken back moves from ``answers`` to ``undone``: nothing is lost. ``leases`` says until when (s
    since 1970, UTC) a task is kept for an annotator who was shown it.

    Raises:
        WrongUse: the file is that of a later version.
        sqlite3.DatabaseError: it is one of something else; then it is left as it is.
    """
    _check_version(connection)
    tables = _tables(connection)
    if tables and "answers" not in tables:
        raise sqlite3.DatabaseError(f"it holds {', '.join(sorted(tables))[:40]} and no answers")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.executescript(_SQL)
    connection.execute(f"PRAGMA user_version={_VERSION}")


def _tables(connection: sqlite3.Connection) -> set[str]:
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def _check_version(connection: sqlite3.Connection) -> None:
    """Raise `WrongUse` where the file is that of a later version."""
    found = connection.execute("PRAGMA user_version").fetchone()[0]
    if found > _VERSION:
        place = connection.execute("PRAGMA database_list").fetchone()[2]
        raise WrongUse(f"{place}: answers of version {found}, newer than this twinset's {_VERSION}; upgrade twinset")


def to_row(answer: Answer) -> dict[str, Any]:
    """Values by column."""
    return {**dataclasses.asdict(answer), "shown": json.dumps(list(answer.shown), ensure_ascii=False)}


def from_row(row: dict[str, Any]) -> Answer:
    """The answer of a row of the file or of an export; raises ValueError when it is not one.

    Files come from elsewhere, and what they say goes into reports, cards and spreadsheets: nothing is taken on trust.
    """
    for name in _TEXTS:
        if not isinstance(row[name], str) or len(row[name]) > LONGEST_TEXT or not row[name].isprintable():
            raise ValueError(f"{name} is {str(row[name])[:40]!r}, not a short text")
    if not NAME.fullmatch(row["annotator"]):
        raise ValueError(f"annotator is {row['annotator'][:70]!r}, not a name")
    if not is_time(row["at"]):
        raise ValueError(f"at is {str(row['at'])[:40]!r}, not a time in ISO 8601")
    if not is_position(row["position"]):
        raise ValueError(f"position is {str(row['position'])[:40]!r}, not a number from -1")
    if not isinstance(row["seconds"], int | float) or not math.isfinite(row["seconds"]):
        raise ValueError(f"seconds is {str(row['seconds'])[:40]!r}, not a number")
    if row["adjudicated"] not in (0, 1):
        raise ValueError(f"adjudicated is {str(row['adjudicated'])[:40]!r}, not 0 or 1")
    try:
        shown = json.loads(row["shown"] or "[]")
    except (TypeError, RecursionError) as error:
        raise ValueError("shown is not JSON") from error
    if not isinstance(shown, list):
        raise ValueError(f"shown is {row['shown'][:40]!r}, not a JSON list")
    return Answer(**{**row, "adjudicated": bool(row["adjudicated"]), "shown": tuple(map(str, shown))})


def is_time(value: object) -> bool:
    """Whether a text is a time in ISO 8601, or empty."""
    try:
        return value == "" or (isinstance(value, str) and bool(datetime.fromisoformat(value)))
    except ValueError:
        return False


def is_position(value: object) -> bool:
    """Whether a number can be that of a shown option, or -1."""
    return isinstance(value, int) and -1 <= value < 2**31


def table_of(answers: Iterable[Answer]) -> pa.Table:
    """Answers as a table, for exports."""
    return pa.Table.from_pylist([to_row(one) for one in answers], SCHEMA)


def form_of(place: Path) -> str | None:
    """``sqlite`` or ``parquet``; None where the file is absent or empty. Raises `WrongUse` where it is neither."""
    try:
        with place.open("rb") as stream:
            begin = stream.read(16)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise WrongUse(f"{place}: cannot be read ({error.strerror}); name a file of answers") from error
    form = next((form for magic, form in _MAGIC.items() if begin.startswith(magic)), None)
    if form is None and begin:
        raise WrongUse(f"{place}: neither the review page's SQLite file nor a Parquet file of answers; name one")
    return form


def read_answers(place: Path, stage: str) -> list[Answer]:
    """Answers to the tasks of a stage, in the order of task, binding and annotator; none where the file is absent.

    Args:
        place: the page's SQLite file, or a Parquet file that was exported from one.

    Raises:
        WrongUse: the file is neither of these, or damaged.
    """
    form = form_of(place)
    try:
        rows = [] if form is None else _from_sqlite(place, stage) if form == "sqlite" else _from_parquet(place, stage)
        return sorted(map(from_row, rows), key=lambda one: (one.task, one.binding, one.annotator))
    except (sqlite3.Error, pa.ArrowException, KeyError, TypeError, ValueError) as error:
        raise WrongUse(f"{place}: not a file of answers ({error}); export it again, or name another") from error


def _from_sqlite(place: Path, stage: str) -> list[dict[str, Any]]:
    # In a folder that cannot be written to, SQLite cannot make the index of a write-ahead log that is not there either.
    fixed = not os.access(place.parent, os.W_OK) and not place.with_name(f"{place.name}-wal").exists()
    how = "immutable=1" if fixed else "mode=ro"
    with closing(sqlite3.connect(f"file:{quote(str(place))}?{how}", uri=True, timeout=30)) as connection:
        _check_version(connection)
        if not _tables(connection):  # the page has just made the file
            return []
        connection.row_factory = sqlite3.Row
        found = connection.execute(f"SELECT {', '.join(COLUMNS)} FROM answers WHERE stage = ?", [stage])
        return [dict(row) for row in found]


def _from_parquet(place: Path, stage: str) -> list[dict[str, Any]]:
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in (row for batch in batches(place, COLUMNS) for row in batch.to_pylist() if row["stage"] == stage):
        key = tuple(row[name] for name in _KEY)
        if found.setdefault(key, row) is not row:  # a few bytes of Parquet repeat it without end
            raise ValueError(f"two answers of {str(row['annotator'])[:40]!r} to {str(row['task'])[:40]!r}")
    return [*found.values()]
