"""Answers on disk: threads, processes, damage. `tests/end_to_end/test_paid_answers.py` kills those who write them."""

import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from twinset.contracts.errors import BuildFailed
from twinset.models.language_models.answers import FILE, Answer, Answers
from twinset.shards.metering import Tally

CHECKOUT = Path(__file__).resolve().parents[3]
WRITER = """
import sys
from pathlib import Path
from twinset.models.language_models.answers import Answer, Answers
answers = Answers(Path(sys.argv[1]))
for number in range(20):
    answers.keep(f"{sys.argv[2]}{number}", "m", Answer("text", "stop", 1, 2))
"""


def test_threads_and_processes_write_side_by_side_the_first_stays_and_all_are_counted(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    command = [sys.executable, "-c", WRITER, str(folder)]
    processes = [subprocess.Popen([*command, name], cwd=CHECKOUT) for name in ("p", "q")]
    answers = Answers(folder)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: answers.keep(f"t{n}", "m", Answer("text", "stop", 1, 2)), range(100)))
    assert [process.wait() for process in processes] == [0, 0]
    answers.keep("t1", "m", Answer("second", "stop", 3, 4))
    again = Answers(folder)
    assert (again.spent("m"), again.spent("other")) == (Tally(141, 143, 284), Tally(0, 0, 0))
    found = again.find([f"{name}{n}" for name in "pqt" for n in range(100)])
    assert len(found) == 140 and set(found.values()) == {Answer("text", "stop", 1, 2)}


def test_a_damaged_file_is_named_and_numbers_that_are_none_count_as_none(tmp_path: Path) -> None:
    answers = Answers(tmp_path)
    answers.keep("a", "m", Answer("text", "stop", 3, 4))
    with sqlite3.connect(tmp_path / FILE) as database:
        database.execute("UPDATE answers SET prompt_tokens = 'many'")
    assert answers.find(["a"]) == {"a": Answer("text", "stop", 0, 4)}
    with sqlite3.connect(tmp_path / FILE) as database:
        database.executescript("DROP TABLE tally; CREATE TABLE tally (a)")
    with pytest.raises(BuildFailed, match=r"answers\.sqlite: not a file of answers .*\.recover, or move it away"):
        answers.spent("m")
