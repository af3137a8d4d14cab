"""Answers as files: they come back as they were, and a file with a wrong row changes nothing."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from tests.review.asked import SHAPES, candidate, painted_desk, stage_of
from twinset.contracts.errors import WrongUse
from twinset.generators.decisions.answers import Answer, read_answers
from twinset.review.desk import ReviewDesk
from twinset.review.exchange import SUFFIXES, Imported, import_answers, write_answers


def desk_of(out: Path, shape: str, **changes: Any) -> ReviewDesk:
    """A desk of six tasks."""
    return painted_desk(out, [stage_of("s", [candidate("s", shape, n, **changes) for n in range(6)], out)])


def stored(desk: ReviewDesk) -> list[Answer]:
    return read_answers(desk.store.path, "s")


def written(path: Path, *rows: dict[str, str]) -> Path:
    """Rows as a CSV file with the columns of all."""
    with path.open("w", encoding="utf-8-sig", newline="") as stream:
        writer = csv.DictWriter(stream, [*dict.fromkeys(name for row in rows for name in row)])
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_answers_come_back_as_they_were(tmp_path: Path, shape: str, suffix: str) -> None:
    before, after, path = desk_of(tmp_path, shape), desk_of(tmp_path / "other", shape), tmp_path / f"answers{suffix}"
    for number, task in enumerate(before.tasks.now().tasks[:5]):
        option = ("o0", "x0" if task.question.layout(task.candidate).extra else "o1")[number % 2]
        before.answer("anna", task.id, option, "bad-image" if (shape, option) == ("keep-pair", "x0") else "", 1.5)
        before.answer("ben", task.id, "o0", "", 2.0)
    assert write_answers(path, before) == (6, 10)
    blank = int(suffix == ".csv")  # a row for the task that nobody answered
    assert import_answers(path, after) == Imported(10, 0, 0, blank)
    assert stored(after) == stored(before)
    assert import_answers(path, after) == Imported(0, 10, 0, blank)


def test_a_csv_lists_what_nobody_answered_and_can_be_filled_in(tmp_path: Path) -> None:
    desk, path = desk_of(tmp_path, "keep-pair"), tmp_path / "tasks.csv"
    stage, task, _ = desk.tasks.now().tasks[0].asked
    earlier = Answer(stage=stage, task=task, binding="0" * 64, annotator="ben", answer="keep")  # of another image
    desk.store.save(earlier)
    assert write_answers(path, desk) == (6, 0)
    rows, tasks = list(csv.DictReader(path.open(encoding="utf-8", newline=""))), desk.tasks.now().tasks
    assert [(row["task"], row["binding"], row["answer"]) for row in rows] == [(*task.asked[1:], "") for task in tasks]
    assert [json.loads(row["texts"]) for row in rows] == [[*task.candidate.texts] for task in tasks]
    rows[2] |= {"answer": "drop", "reason": "fits-both"}
    rows[3] |= {"answer": "keep", "stage": "other"}
    assert import_answers(written(path, *rows), desk, "anna") == Imported(1, 0, 1, unanswered=4)
    filled = (tasks[2].asked[1], "drop", "fits-both")
    assert [(one.task, one.answer, one.reason) for one in stored(desk) if one != earlier] == [filled]


def test_an_untrusted_answer_is_exported_as_no_formula(tmp_path: Path) -> None:
    desk, path = desk_of(tmp_path, "best-image"), tmp_path / "answers.csv"
    stage, task, binding = desk.tasks.now().tasks[0].asked
    desk.store.save(Answer(stage=stage, task=task, binding=binding, annotator="eve", answer="=A1", reason="@SUM(1)"))
    write_answers(path, desk)
    row = next(csv.DictReader(path.open(encoding="utf-8", newline="")))
    assert (row["answer"], row["reason"], row["position"]) == ("'=A1", "'@SUM(1)", "-1")


def test_every_row_is_checked_and_nothing_is_half_imported(tmp_path: Path) -> None:
    desk = desk_of(tmp_path, "keep-pair")
    first, second, third = (task.candidate.key for task in desk.tasks.now().tasks[:3])
    desk.answer("anna", desk.tasks.now().tasks[2].id, "o0", "", 1.0)
    wrong = {
        "twice in the file": {"task": first, "answer": "drop"},
        "before; undo that": {"task": third, "answer": "drop", "annotator": "anna"},
        "is not one of keep, drop": {"answer": "perhaps"},
        "is not a reason of": {"reason": "other"},
        "showed something else": {"binding": "0" * 64},
        "annotator: ": {"annotator": "b n"},
        "no annotator": {"annotator": ""},
        "seconds: ": {"seconds": "nan"},
        "position: ": {"position": str(2**31)},
        "shown: ": {"shown": "[" * 5000},
        "shown holds something else": {"shown": '["maybe"]'},
        "at: ": {"at": "=cmd|' /C calc'!A0"},
    }
    rows = [{"task": second, "answer": "keep", "annotator": "ben", **changes} for changes in wrong.values()]
    unknown = [{"task": f"s-{n}", "answer": "keep", "annotator": "ben"} for n in range(30)]
    path = written(tmp_path / "a.csv", {"task": first, "answer": "keep", "annotator": "ben"}, *rows, *unknown)
    with pytest.raises(WrongUse) as refused:
        import_answers(path, desk)
    head, *problems = str(refused.value).splitlines()
    assert head == f"{path}: 42 rows are wrong, nothing was imported; correct or remove them:"
    for number, (reason, problem) in enumerate(zip(wrong, problems, strict=False), 3):
        assert problem.startswith(f"line {number}: ") and reason in problem
    assert len(problems) == 21 and problems[-1] == "and 22 more"
    assert [answer.task for answer in stored(desk)] == [third]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.parquet", b"no", "cannot be read"),
        ("a.csv", b"task,answer,answer\nx,keep,drop\n", "two columns have one name"),
        ("a.csv", b"key,answer\n", "no column 'task'"),
        ("a.csv", b"task,answer\n\xff,keep\n", "cannot be read"),
        ("a.txt", b"", "its form is not known"),
    ],
)
def test_a_file_of_another_form_is_refused(tmp_path: Path, name: str, content: bytes, words: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(WrongUse, match=words):
        import_answers(tmp_path / name, desk_of(tmp_path, "match"))
