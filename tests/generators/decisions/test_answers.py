"""The file of answers: what is written is read, from SQLite and from Parquet."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.generators.decisions.tasks import answer, insert, task
from twinset.contracts.errors import WrongUse
from twinset.generators.decisions.answers import COLUMNS, read_answers, schema, table_of, to_row
from twinset.review.store import AnswerStore

ONE = task()
GIVEN = [
    answer(ONE, "a", "2", shown=("2", "0", "none"), position=0, seconds=3.5, at="2020-01-01T00:00:00Z"),
    answer(ONE, "b", "none", adjudicated=True, reason="ünknown"),
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
        with pytest.raises(WrongUse, match=r"\.sqlite: answers of version 99, newer"):
            schema(connection)
    with pytest.raises(WrongUse, match=r"\.sqlite: answers of version 99, newer"):
        read_answers(tmp_path / "later.sqlite", "people")


def test_a_database_of_something_else_is_neither_read_nor_written(tmp_path: Path) -> None:
    path = tmp_path / "answers.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE bookmarks (address)")
    before = path.read_bytes()
    for use in (lambda: read_answers(path, "people"), lambda: AnswerStore(path)):
        with pytest.raises(WrongUse, match=r"answers\.sqlite: not a file of answers"):
            use()
    assert path.read_bytes() == before


def test_an_answer_that_is_repeated_in_parquet_is_refused_at_once(tmp_path: Path) -> None:
    """Half a megabyte of two million answers took 6 GB."""
    pq.write_table(table_of([GIVEN[0]] * 2), tmp_path / "answers.parquet")
    with pytest.raises(WrongUse, match=r"answers\.parquet: not a file of answers \(two answers of 'a' to "):
        read_answers(tmp_path / "answers.parquet", "people")


@pytest.mark.parametrize(
    "wrong",
    [
        {"annotator": "<script>"},
        {"annotator": "a\n"},
        {"annotator": None},
        {"answer": b"2"},
        pytest.param({"reason": "x" * 10_000_000}, id="10 MB"),
        {"reason": "\x1b[2J"},
        pytest.param({"shown": "[" * 300_000}, id="deep"),
        {"position": 2**31},
        {"seconds": float("inf")},
        {"at": "=cmd|' /C calc'!A0"},
        {"adjudicated": "no"},
    ],
)
def test_a_row_that_is_no_answer_is_named(wrong: dict[str, Any], tmp_path: Path) -> None:
    row, [name] = {**to_row(GIVEN[0]), **wrong}, wrong
    pq.write_table(pa.Table.from_pylist([row]), tmp_path / "answers.parquet")
    with pytest.raises(WrongUse, match=rf"answers\.parquet: not a file of answers \({name} is|holds a value of 10,000"):
        read_answers(tmp_path / "answers.parquet", "people")
    if wrong != {"annotator": None}:
        with closing(opened(tmp_path / "answers.sqlite")) as connection:
            connection.execute(f"INSERT INTO answers VALUES ({', '.join('?' * len(row))})", [*row.values()])
            connection.commit()
        with pytest.raises(WrongUse, match=rf"answers\.sqlite: not a file of answers \({name} is"):
            AnswerStore(tmp_path / "answers.sqlite")


def test_answers_in_a_folder_that_cannot_be_written_to_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "answers.sqlite"
    with closing(opened(path)) as connection:
        insert(connection, GIVEN)
    before = tmp_path.stat().st_mtime_ns
    monkeypatch.setattr("os.access", lambda place, mode: Path(place) != tmp_path)
    assert read_answers(path, "people") == GIVEN
    assert tmp_path.stat().st_mtime_ns == before, "SQLite made files in it"
