"""Answers in SQLite: once each, on the disk before anything else, taken back but never lost."""

import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.generators.decisions.answers import Answer, read_answers
from twinset.review.store import AnsweredOtherwise, AnswerStore

FIRST = Answer(
    stage="s", task="s-a", binding="b", annotator="anna", answer="0", shown=("1", "0"), position=1, at="2020-01-01"
)
CHECKOUT = Path(__file__).resolve().parents[2]
ASKED = {("s", "s-a", "b"), ("s", "s-b", "b")}


@pytest.fixture
def store(tmp_path: Path) -> AnswerStore:
    return AnswerStore(tmp_path / "_review" / "answers.sqlite")


def test_a_repeated_answer_is_one_row(store: AnswerStore) -> None:
    assert store.save(FIRST)
    assert not store.save(replace(FIRST, seconds=9.0))
    assert read_answers(store.path, "s") == [FIRST]


def test_another_answer_of_the_same_person_needs_an_undo_first(store: AnswerStore) -> None:
    store.save(FIRST)
    with pytest.raises(AnsweredOtherwise, match="undo that first"):
        store.save(replace(FIRST, answer="1"))
    assert store.undo("anna", ASKED) == FIRST
    assert store.save(replace(FIRST, answer="1"))
    assert store.held()["s", "s-a", "b"]["anna"].answer == "1"


def test_all_answers_of_a_file_are_stored_or_none(store: AnswerStore) -> None:
    store.save(FIRST)
    with pytest.raises(AnsweredOtherwise):
        store.save_all([replace(FIRST, task="s-b"), replace(FIRST, answer="none")])
    assert read_answers(store.path, "s") == [FIRST]
    assert not store.held().get(("s", "s-b", "b"))
    assert store.save_all([FIRST, replace(FIRST, task="s-b")]) == 1


def test_undo_takes_the_last_answer_that_is_still_asked_and_keeps_it_in_the_file(store: AnswerStore) -> None:
    second = replace(FIRST, task="s-b")
    for one in (FIRST, second, replace(FIRST, task="s-b", annotator="ben"), replace(FIRST, binding="stale")):
        store.save(one)
    store.close()
    again = AnswerStore(store.path)  # as after a restart
    assert again.undo("anna", ASKED) == second
    assert again.undo("anna", ASKED) == FIRST
    assert again.undo("anna", ASKED) is None
    assert {(one.annotator, one.binding) for one in read_answers(store.path, "s")} == {("ben", "b"), ("anna", "stale")}
    with sqlite3.connect(store.path) as connection:
        assert connection.execute("SELECT task, answer FROM undone").fetchall() == [("s-b", "0"), ("s-a", "0")]


def test_answers_that_settle_are_not_undone(store: AnswerStore) -> None:
    store.save(replace(FIRST, adjudicated=True))
    assert store.undo("anna", ASKED) is None
    store.replace(replace(FIRST, answer="1", adjudicated=True))
    assert store.held()["s", "s-a", "b"]["anna"].answer == "1"


def test_what_another_process_writes_is_seen(store: AnswerStore) -> None:
    assert not store.held().get(("s", "s-a", "b"))
    other = AnswerStore(store.path)
    other.save(FIRST)
    assert store.held()["s", "s-a", "b"] == {"anna": FIRST}
    other.undo("anna", ASKED)
    assert not store.held().get(("s", "s-a", "b"))


def test_an_answer_is_on_the_disk_when_saving_returns(store: AnswerStore) -> None:
    settings = {
        name: store._connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")
    }
    assert settings == {"journal_mode": "wal", "synchronous": 2}


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "answers.sqlite"
    path.write_bytes(b"not a database, but long enough to be looked at as one" * 40)
    with pytest.raises(WrongUse, match=r"answers\.sqlite: not a file of answers"):
        AnswerStore(path)


def test_nothing_is_saved_into_a_file_that_was_taken_away(store: AnswerStore) -> None:
    store.save(FIRST)
    away = store.path.with_name("away.sqlite")
    store.path.rename(away)
    for act in (lambda: store.save(replace(FIRST, task="s-b")), lambda: store.undo("anna", ASKED)):
        with pytest.raises(BuildFailed, match="was moved, removed or replaced while it was open; nothing was saved"):
            act()
    away.rename(store.path)
    assert store.save(replace(FIRST, task="s-b"))


#: Leases and answers tasks in turn, and writes the number of each when the call has returned.
LEASES = """
import sys
from pathlib import Path
from twinset.generators.decisions.answers import Answer
from twinset.review.store import AnswerStore
store = AnswerStore(Path(sys.argv[1]))
for number in range(int(sys.argv[2]), 100_000):
    store.lease([("s", f"s-{number}", "b"), ("s", f"s-{number}-next", "b")], "anna", 2e9, 1e9)
    print("leased", number, flush=True)
    store.save(Answer(stage="s", task=f"s-{number}", binding="b", annotator="anna", answer="0", at="2020-01-01"))
    print("saved", number, flush=True)
"""


def test_a_kill_loses_no_lease_and_no_answer(tmp_path: Path) -> None:
    path, first = tmp_path / "answers.sqlite", 0
    for lines in (1, 4, 13, 30):
        command = [sys.executable, "-c", LEASES, str(path), str(first)]
        with subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            told = [child.stdout.readline() for _ in range(lines)]
            child.kill()
            told += child.stdout.readlines()
        done = [(what, int(number)) for what, number in (line.split() for line in told if line.endswith("\n"))]
        store = AnswerStore(path)
        for what, number in done:
            task, following = ("s", f"s-{number}", "b"), ("s", f"s-{number}-next", "b")
            assert store.leases()[following] == {"anna": 2e9}
            answered = "anna" in store.held().get(task, {})
            # A lease goes in the transaction that brings its answer.
            assert answered != ("anna" in store.leases().get(task, {})) and (answered or what == "leased")
        store.close()
        first = done[-1][1] + 2
    assert first > 20
