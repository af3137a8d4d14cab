"""The file of answers: what is written is read, from SQLite and from Parquet."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from generators.decisions.answers import COLUMNS, insert, read_answers, schema, table_of
from manifests.errors import WrongUse
from tests.generators.decisions.tasks import answer, task

ONE = task()
GIVEN = [
    answer(ONE, "a", "2", shown=("2", "0", "none"), position=0, seconds=3.5, at="2020-01-01T00:00:00Z"),
    answer(ONE, "b", "none", simulated=True, adjudicated=True, reason="ünknown"),
]


def opened(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path)
    schema(connection)
    return connection


@pytest.mark.parametrize("form", ["sqlite", "parquet"])
def test_what_is_written_is_read(form: str, tmp_path: Path) -> None:
    path = tmp_path / "answers with ? and #"
    other = answer(ONE, "c", "1", stage="other")
    if form == "parquet":
        pq.write_table(table_of([*reversed(GIVEN), other]), path)
    else:
        with closing(opened(path)) as connection:
            insert(connection, [*reversed(GIVEN), other])
    assert read_answers(path, "people") == GIVEN
    assert read_answers(path, "other") == [other]


def test_the_same_answer_again_changes_nothing(tmp_path: Path) -> None:
    with closing(opened(tmp_path / "answers.sqlite")) as connection:
        insert(connection, GIVEN)
        insert(connection, [answer(ONE, "a", "3"), answer(ONE, "c", "0")])
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
        found = read_answers(tmp_path / "answers.sqlite", "people")  # while the page has it open
    assert [(one.annotator, one.answer) for one in found] == [("a", "2"), ("b", "none"), ("c", "0")]
    assert [name for name in COLUMNS if not hasattr(found[0], name)] == []


def test_an_absent_file_has_no_answers_and_a_strange_one_is_named(tmp_path: Path) -> None:
    assert read_answers(tmp_path / "absent.sqlite", "people") == []
    strange = tmp_path / "answers.csv"
    for content in (b"task,answer\n", b"PAR1", b"SQLite format 3\0 and no more"):
        strange.write_bytes(content)
        with pytest.raises(WrongUse, match=r"answers\.csv: n"):
            read_answers(strange, "people")
    with closing(opened(tmp_path / "later.sqlite")) as connection:
        connection.execute("PRAGMA user_version=99")
        with pytest.raises(WrongUse, match="newer"):
            schema(connection)
