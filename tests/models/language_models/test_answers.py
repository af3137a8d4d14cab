"""Answers on disk: threads, processes, torn files."""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from twinset.contracts.errors import BuildFailed
from twinset.models.language_models.answers import FILE, REFUSED, Answer, Answers
from twinset.shards.metering import Tally

CHECKOUT = Path(__file__).resolve().parents[3]
WRITER = """
import sys
from pathlib import Path
from twinset.models.language_models.answers import Answers
from twinset.models.language_models.answers import Answer
answers, name = Answers(Path(sys.argv[1])), sys.argv[2]
for number in range(int(sys.argv[3])):
    answers.keep(f"{name}{number}", "m", "{}", Answer(name * 100, "stop", 1, 2))
    print(number, flush=True)
"""


def writer(folder: Path, name: str, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(folder), name, str(count)]
    return subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE, text=True)


def test_the_first_answer_stays_and_all_are_counted(tmp_path: Path) -> None:
    answers = Answers(tmp_path / "new" / "folder")
    answers.keep("a", "m", "{}", Answer("first", "stop", 1, 2))
    answers.keep("a", "m", "{}", Answer("second", "stop", 3, 4))
    again = Answers(tmp_path / "new" / "folder")
    assert again.find(["a", "b"]) == {"a": Answer("first", "stop", 1, 2)}
    assert (again.spent("m"), again.spent("other")) == (Tally(2, 4, 6), Tally(0, 0, 0))
    assert again.answered("m", "{}") and not again.answered("m", "[]")


def test_a_refusal_that_an_older_version_kept_gives_way_to_an_answer(tmp_path: Path) -> None:
    answers = Answers(tmp_path)
    with sqlite3.connect(tmp_path / FILE) as database:
        database.execute("INSERT INTO answers VALUES ('a', 'm', '400: no', ?, 0, 0)", (REFUSED,))
    assert answers.find(["a"]) == {}
    answers.keep("a", "m", "{}", Answer("yes", "stop", 1, 2))
    assert answers.find(["a"]) == {"a": Answer("yes", "stop", 1, 2)} and answers.spent("m") == Tally(1, 1, 2)


def test_threads_and_processes_write_side_by_side(tmp_path: Path) -> None:
    others = [writer(tmp_path, name, 20) for name in ("p", "q")]
    answers = Answers(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: answers.keep(f"t{n}", "m", "{}", Answer("text", "stop", 1, 2)), range(200)))
    for one in others:
        one.communicate()
        assert one.returncode == 0
    assert answers.spent("m") == Tally(240, 240, 480)
    assert len(answers.find([f"{name}{n}" for name in "pqt" for n in range(200)])) == 240


def test_what_was_kept_survives_a_kill_and_a_torn_end_does_not_count(tmp_path: Path) -> None:
    process = writer(tmp_path, "p", 100_000)
    assert process.stdout is not None
    told = [process.stdout.readline() for _ in range(10)]
    os.kill(process.pid, signal.SIGKILL)
    told += process.stdout.readlines()
    process.wait()
    answers = Answers(tmp_path)
    found = answers.find([f"p{n}" for n in range(len(told) + 5)])
    # One more can be kept than was told.
    assert len(told) <= len(found) <= len(told) + 1
    assert answers.spent("m").answers == len(found)


def test_a_transaction_that_another_process_left_half_written_is_rolled_back(tmp_path: Path) -> None:
    Answers(tmp_path).keep("a", "m", "{}", Answer("first", "stop", 1, 2))
    code = """
import os, sqlite3, sys
base = sqlite3.connect(sys.argv[1], isolation_level=None)
base.execute("PRAGMA cache_size = 1")
base.execute("PRAGMA cache_spill = 1")
base.execute("BEGIN IMMEDIATE")
for n in range(500):
    base.execute("INSERT INTO answers VALUES (?, 'm', ?, 'stop', 1, 2)", (f"torn{n}", "x" * 5000))
os.kill(os.getpid(), 9)
"""
    before = (tmp_path / FILE).stat().st_size
    subprocess.run([sys.executable, "-c", code, str(tmp_path / FILE)], check=False)
    assert (tmp_path / FILE).stat().st_size > before, "pages of the transaction are in the file"
    answers = Answers(tmp_path)
    assert answers.find(["a", "torn0", "torn499"]) == {"a": Answer("first", "stop", 1, 2)}


def test_threads_share_the_syncs_of_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers, batches, begun, go = Answers(tmp_path), [], threading.Event(), threading.Event()
    write = answers._write

    def slow(batch: list) -> None:  # type: ignore[type-arg]
        batches.append(len(batch))
        begun.set()
        go.wait()
        write(batch)

    monkeypatch.setattr(answers, "_write", slow)
    with ThreadPoolExecutor(9) as pool:
        first = pool.submit(answers.keep, "a", "m", "{}", Answer("x"))
        begun.wait()
        others = [pool.submit(answers.keep, str(n), "m", "{}", Answer("x")) for n in range(8)]
        while len(answers._waiting) < 8:
            pass
        go.set()
        for one in (first, *others):
            one.result()
    assert batches == [1, 8]


def test_a_file_of_something_else_is_named(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"hello, this is not a database at all" * 100)
    with pytest.raises(BuildFailed, match=r"answers\.sqlite: not a file of answers .*move it away"):
        Answers(tmp_path)


@pytest.mark.parametrize("changed", ["DROP TABLE tally; CREATE TABLE tally (a)", "UPDATE answers SET text = x'ff'"])
def test_a_file_that_is_damaged_is_not_taken_for_a_full_disk(tmp_path: Path, changed: str) -> None:
    answers = Answers(tmp_path)
    answers.keep("a", "m", "{}", Answer("first"))
    with sqlite3.connect(tmp_path / FILE) as database:
        database.executescript(changed.replace("x'ff'", "CAST(x'ff' AS TEXT)"))
    with pytest.raises(BuildFailed, match=r"answers\.sqlite: not a file of answers .*\.recover, or move it away"):
        answers.find(["a"])
        answers.keep("b", "m", "{}", Answer("second"))


def test_numbers_that_are_damaged_count_as_none(tmp_path: Path) -> None:
    """A column of SQLite may hold any type; the text that was paid for is still there."""
    answers = Answers(tmp_path)
    answers.keep("a", "m", "{}", Answer("text", "stop", 3, 4))
    answers.close()
    with sqlite3.connect(tmp_path / FILE) as database:
        database.execute("UPDATE answers SET prompt_tokens = 'many'")
    assert Answers(tmp_path).find(["a"]) == {"a": Answer("text", "stop", 0, 4)}
