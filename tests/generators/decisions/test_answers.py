"""The file of answers: what is written is read, from SQLite and from Parquet."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.generators.decisions.tasks import answer, insert, task
from twinset.contracts.errors import WrongUse
from twinset.generators.decisions.answers import COLUMNS, create_tables, read_answers, table_of, to_row
from twinset.review.store import AnswerStore

ONE = task()
GIVEN = [
    answer(ONE, "a", "2", shown=("2", "0", "none"), position=0, seconds=3.5, at="2020-01-01T00:00:00Z"),
    answer(ONE, "b", "none", reason="ünknown"),
]


def opened(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path)
    create_tables(connection)
    return connection


@pytest.mark.parametrize("form", ["sqlite", "parquet"])
def test_what_is_written_is_read(form: str, tmp_path: Path) -> None:
    path = tmp_path / f"answers with ? and #.{form}"
    elsewhere = answer(ONE, "c", "1", stage="other")
    if form == "parquet":
        pq.write_table(table_of([*reversed(GIVEN), elsewhere]), path)
    else:
        with closing(opened(path)) as connection:
            insert(connection, [*reversed(GIVEN), elsewhere])
            insert(connection, [answer(ONE, "a", "3")])  # the same answer again changes nothing
            assert read_answers(path, "people") == GIVEN, "while the page has it open"
    assert read_answers(path, "people") == GIVEN
    assert read_answers(path, "other") == [elsewhere]
    assert read_answers(tmp_path / "absent.sqlite", "people") == []


def test_a_file_of_before_goes_on_without_its_column(tmp_path: Path) -> None:
    path = tmp_path / "answers.sqlite"
    with closing(opened(path)) as connection:
        for table in ("answers", "undone"):
            connection.execute(f"ALTER TABLE {table} ADD COLUMN adjudicated INTEGER NOT NULL DEFAULT 0")
        insert(connection, GIVEN)
        connection.execute("PRAGMA user_version=3")
        connection.commit()
    assert read_answers(path, "people") == GIVEN
    AnswerStore(path).close()
    assert read_answers(path, "people") == GIVEN


def test_a_file_of_something_else_is_named_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "answers.sqlite"
    # Half a megabyte of one answer two million times took 6 GB.
    pq.write_table(table_of([GIVEN[0]] * 2), tmp_path / "twice.parquet")
    (tmp_path / "a.sqlite").write_bytes(b"task,answer\n")
    (tmp_path / "c.parquet").write_bytes(b"PAR1")
    for name in ("a.sqlite", "c.parquet", "twice.parquet"):
        with pytest.raises(WrongUse, match=rf"{name}: not a file of answers"):
            read_answers(tmp_path / name, "people")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE bookmarks (address)")
    before = path.read_bytes()
    with pytest.raises(WrongUse, match=r"answers\.sqlite: not a file of answers"):
        AnswerStore(path)
    assert path.read_bytes() == before
    with closing(opened(tmp_path / "later.sqlite")) as connection:
        connection.execute("PRAGMA user_version=99")
    with pytest.raises(WrongUse, match=r"\.sqlite: answers of version 99, newer"):
        read_answers(tmp_path / "later.sqlite", "people")


@pytest.mark.parametrize(
    ("name", "value"),
    [("annotator", "<script>"), ("reason", "\x1b[2J"), ("shown", "[" * 300_000), ("position", 2**31)],
    ids=["annotator", "reason", "deep", "position"],
)
def test_a_row_that_is_no_answer_is_named(name: str, value: Any, tmp_path: Path) -> None:
    row = {**to_row(GIVEN[0]), name: value}
    with closing(opened(tmp_path / "answers.sqlite")) as connection:
        connection.execute(f"INSERT INTO answers VALUES ({', '.join('?' * len(COLUMNS))})", [*row.values()])
        connection.commit()
    for use in (lambda place: read_answers(place, "people"), AnswerStore):
        with pytest.raises(WrongUse, match=rf"answers\.sqlite: not a file of answers \({name}: "):
            use(tmp_path / "answers.sqlite")
