"""Answers of people, and the SQLite file that holds them; a Parquet file of the same columns can stand in for it.

The page (`review`) writes the file, one committed row an answer; generators read it.
"""

import json
import re
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import pyarrow as pa
from pydantic import Field, Json, TypeAdapter, ValidationError

from twinset.contracts.errors import WrongUse
from twinset.generators.record_fields import problems_of
from twinset.shards.storage.parquet_reader import batches
from twinset.shards.storage.sqlite_file import of_the_disk

FILE = "_review/answers.sqlite"  # below OUT
EXPORTED = ".parquet"  # how the name of a file ends to which no answers are added
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")  # of an annotator
_VERSION = 4  # raised with the columns


#: Text of files that come from elsewhere, as it goes into reports, cards and spreadsheets: printable.
ShortText = Annotated[str, Field(max_length=500, pattern=r"\A\P{C}*\z")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one annotator said to one task.

    stage, task: name of the decision stage and key of the task. binding: of the task when it was asked
    (`generators.decisions.question.TaskCandidate.binding`). answer: value of the option taken; reason: why, where the
    question asks for one. shown: values of the options in the order in which they were shown; position: of the one
    taken, from 0, -1 where it is not known. seconds: from showing to answering. at: time in UTC, ISO 8601.
    """

    stage: ShortText
    task: ShortText
    binding: ShortText
    annotator: Annotated[str, Field(pattern=rf"\A{NAME.pattern}\z")]
    answer: ShortText
    reason: ShortText = ""
    shown: Json[tuple[str, ...]] = ()
    position: Annotated[int, Field(ge=-1, lt=2**31)] = -1
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    at: Annotated[str, Field(max_length=40, pattern=r"\A[-+.:0-9TZ]*\z")] = ""


_ANSWER = TypeAdapter(Answer)

#: Columns of the file and of exports, in this order; ``shown`` is a JSON list.
_NUMBERS = {"position": pa.int32(), "seconds": pa.float64()}
SCHEMA = pa.schema([(field.name, _NUMBERS.get(field.name, pa.string())) for field in fields(Answer)])
COLUMNS: tuple[str, ...] = tuple(SCHEMA.names)

_SQL = Path(__file__).with_name("answers.sql").read_text("utf-8")
_FROM_3 = (
    "BEGIN; ALTER TABLE answers DROP COLUMN adjudicated; ALTER TABLE undone DROP COLUMN adjudicated; "
    "PRAGMA user_version=4; COMMIT"
)
#: Inserts an answer (`to_row`'s values); the same primary key again changes nothing.
INSERT = (
    f"INSERT INTO answers ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))}) "
    "ON CONFLICT (stage, task, binding, annotator) DO NOTHING"
)


def create_tables(connection: sqlite3.Connection) -> None:
    """Make the tables where they are absent, and have every commit reach the disk before it returns.

    An answer that is taken back moves from ``answers`` to ``undone``: nothing is lost. ``leases`` says until when (s
    since 1970, UTC) a task is kept for an annotator who was shown it. A file of version 3 loses its column
    ``adjudicated``: what the admin said to a tie is one more answer.

    Raises:
        WrongUse: the file is that of a later version.
        sqlite3.DatabaseError: it is one of something else; then it is left as it is.
    """
    tables = _tables(connection)
    if tables and "answers" not in tables:
        raise sqlite3.DatabaseError(f"it holds {', '.join(sorted(tables))[:40]} and no answers")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    if tables and connection.execute("PRAGMA user_version").fetchone()[0] == 3:
        connection.executescript(_FROM_3)
    connection.executescript(_SQL)
    connection.execute(f"PRAGMA user_version={_VERSION}")


def _tables(connection: sqlite3.Connection) -> set[str]:
    """Names of the tables; raises `WrongUse` where the file is that of a later version."""
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > _VERSION:
        place = connection.execute("PRAGMA database_list").fetchone()[2]
        raise WrongUse(f"{place}: answers of version {version}, newer than this twinset's {_VERSION}; upgrade twinset")
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def to_row(answer: Answer) -> dict[str, Any]:
    """Values by column."""
    return {**asdict(answer), "shown": json.dumps(list(answer.shown), ensure_ascii=False)}


def from_row(row: Mapping[str, Any]) -> Answer:
    """The answer of a row of the file or of an export; raises ValueError when it is not one."""
    try:
        return _ANSWER.validate_python(row)
    except ValidationError as error:
        raise ValueError(problems_of(error)) from error


def table_of(answers: Iterable[Answer]) -> pa.Table:
    """Answers as a table, for exports."""
    return pa.Table.from_pylist([*map(to_row, answers)], SCHEMA)


def read_answers(place: Path, stage: str) -> list[Answer]:
    """Answers to the tasks of a stage, in the order of task, binding and annotator; none where the file is absent.

    Args:
        place: the page's SQLite file, or a ``.parquet`` file that was exported from one.

    Raises:
        WrongUse: the file is neither of these, or damaged.
    """
    answers: dict[tuple[str, str, str], Answer] = {}
    try:
        rows = _from_parquet(place, stage) if place.suffix == EXPORTED else _from_sqlite(place, stage)
        for answer in map(from_row, rows):
            # A few bytes of Parquet repeat a row without end.
            key = answer.task, answer.binding, answer.annotator
            if answers.setdefault(key, answer) is not answer:
                raise ValueError(f"two answers of {answer.annotator!r} to {answer.task[:40]!r}")
    except (OSError, sqlite3.Error, pa.ArrowException, KeyError, ValueError) as error:
        if isinstance(error, OSError) or of_the_disk(error):
            remedy = "see that its disk has room and its folder can be written, or name a Parquet file exported from it"
            raise WrongUse(f"{place}: cannot be read ({error}); {remedy}") from error
        raise WrongUse(f"{place}: not a file of answers ({error}); export it again, or name another") from error
    return [answers[key] for key in sorted(answers)]


def _from_sqlite(place: Path, stage: str) -> Iterable[Mapping[str, Any]]:
    if not place.exists():
        return []
    with closing(sqlite3.connect(f"file:{quote(str(place))}?mode=ro", uri=True, timeout=30)) as connection:
        if not _tables(connection):  # the page has just made the file
            return []
        rows = connection.execute(f"SELECT {', '.join(COLUMNS)} FROM answers WHERE stage = ?", [stage])
        return [dict(zip(COLUMNS, row, strict=True)) for row in rows]


def _from_parquet(place: Path, stage: str) -> Iterable[Mapping[str, Any]]:
    return (row for batch in batches(place, COLUMNS) for row in batch.to_pylist() if row["stage"] == stage)
