"""Answers as files, with a row an answer: Parquet, and CSV for spreadsheets. An import takes all rows or none."""

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from twinset.contracts.errors import WrongUse
from twinset.generators.decisions.answers import COLUMNS, Answer, from_row, table_of, to_row
from twinset.generators.markdown import no_formula
from twinset.review.access import check_annotator
from twinset.review.desk import ReviewDesk
from twinset.review.store import AnsweredOtherwise, Asked, utc_now
from twinset.review.tasks import ReviewTask
from twinset.shards.storage.parquet_reader import batches
from twinset.shards.storage.whole_file import whole_file

SUFFIXES = (".parquet", ".csv")
REQUIRED = {"task", "answer"}  # columns
SHOWN = ("subject", "texts")  # of the task, for who reads the file; ignored when it is read back
NAMED = 20  # problems that are named

Row = Mapping[str, Any]  # values by column of `Answer`; columns may be absent


@dataclass(frozen=True, slots=True)
class Imported:
    """new: answers that were stored; known: those that were there; others: rows of other stages, left out; unanswered:
    rows without an answer, left out."""

    new: int
    known: int
    others: int
    unanswered: int


def write_answers(path: Path, desk: ReviewDesk) -> tuple[int, int]:
    """Write the answers to what is asked now into a file, which is there whole or not at all; returns the numbers of
    tasks and answers.

    CSV also has a row for each task that lacks an answer, to be filled in. Raises `WrongUse`: the path has another
    suffix than those of `SUFFIXES`.
    """
    stages = desk.tasks.now().stages.values()
    answered = [pair for stage in stages for pair in zip(stage.tasks, desk.answers_to(stage), strict=True)]
    answers = [answer for _, given in answered for answer in given]
    suffix = _suffix_of(path)
    with whole_file(path) as unfinished:
        if suffix == ".parquet":
            pq.write_table(table_of(answers), unfinished, compression="zstd")
        else:
            with unfinished.open("w", encoding="utf-8", newline="") as stream:
                writer = csv.DictWriter(stream, [*COLUMNS, *SHOWN], restval="")
                writer.writeheader()
                for row in _csv_rows(answered):
                    writer.writerow({name: no_formula(value) for name, value in row.items()})
    return len(answered), len(answers)


def _csv_rows(answered: Iterable[tuple[ReviewTask, list[Answer]]]) -> Iterator[dict[str, Any]]:
    for task, answers in answered:
        shown = {"subject": task.candidate.subject, "texts": json.dumps(task.candidate.texts, ensure_ascii=False)}
        unanswered = dict(zip(("stage", "task", "binding"), task.asked, strict=True))
        rows = [to_row(answer) for answer in answers] + [unanswered] * bool(task.missing(answers))
        yield from (row | shown for row in rows)


def import_answers(path: Path, desk: ReviewDesk, annotator: str | None = None) -> Imported:
    """Store the answers of a file to the tasks of the stage that the desk has.

    A row without a binding is taken to be about what the task shows now. Rows that name another stage are left out.

    Args:
        annotator: who gave the answers of rows that name nobody.

    Raises:
        WrongUse: the file cannot be read, or some row is not an answer to a task; nothing is stored.
    """
    if annotator is not None:
        check_annotator("--annotator", annotator)
    (stage,) = desk.tasks.now().stages.values()
    tasks, before, now = {task.candidate.key: task for task in stage.tasks}, desk.store.answers(), utc_now()
    answers: dict[tuple[Asked, str], Answer] = {}
    problems: list[str] = []
    other_stages = unanswered = 0
    for place, row in _rows(path):
        if not row.get("answer"):
            unanswered += 1
            problems += [f"{place}: a reason and no answer"] if row.get("reason") else []
            continue
        if row.get("stage", stage.name) != stage.name:
            other_stages += 1
            continue
        try:
            answer, task = _checked({"at": now, **row, "annotator": row.get("annotator") or annotator}, tasks)
            if (task.asked, answer.annotator) in answers:
                raise ValueError(f"{answer.annotator} answers {answer.task} twice in the file")
            stored = before.get(task.asked, {}).get(answer.annotator, answer)
            if (stored.answer, stored.reason) != (answer.answer, answer.reason):
                raise ValueError(f"{answer.annotator} answered {answer.task} with {stored.answer} before; undo that")
            answers[task.asked, answer.annotator] = answer
        except ValueError as error:
            problems.append(f"{place}: {error}")
    if problems:
        more = [f"and {len(problems) - NAMED:,} more"] if len(problems) > NAMED else []
        head = f"{path}: nothing was imported; correct or remove these rows, {len(problems):,} in all:"
        raise WrongUse("\n".join([head, *problems[:NAMED], *more]))
    try:
        new = desk.store.save_all(answers.values())
    except AnsweredOtherwise as error:  # since the rows were checked
        raise WrongUse(f"{path}: {error}; nothing was imported. Correct that row, and import again") from error
    return Imported(new, len(answers) - new, other_stages, unanswered)


def _checked(row: Row, tasks: Mapping[str, ReviewTask]) -> tuple[Answer, ReviewTask]:
    """The answer of a row, and its task; raises ValueError where it is not one."""
    task = tasks.get(str(row.get("task")))
    if task is None:
        raise ValueError(f"the stage asks nothing called {str(row.get('task'))[:100]!r}")
    if not row.get("annotator"):
        raise ValueError(f"{task.candidate.key}: no annotator; name who answered with --annotator")
    if row.get("binding", task.binding) != task.binding:
        raise ValueError(f"{task.candidate.key}: showed something else when it was answered; ask again")
    try:
        asked = dict(zip(("stage", "task", "binding"), task.asked, strict=True))
        answer = from_row({"shown": "[]", **row, **asked})
    except ValueError as error:
        raise ValueError(f"{task.candidate.key}: {error}") from error
    question, options = task.question, task.question.layout(task.candidate).values
    if not question.takes(task.candidate, answer.answer):
        raise ValueError(f"{answer.task}: {answer.answer[:40]!r} is not one of {', '.join(options)}")
    if not {*answer.shown} <= {*options}:
        raise ValueError(f"{answer.task}: shown holds something else than {', '.join(options)}")
    if answer.reason and (answer.answer not in question.drops or answer.reason not in question.reasons):
        raise ValueError(f"{answer.task}: {answer.reason[:40]!r} is not a reason of {answer.answer!r}")
    return answer, task


def _rows(path: Path) -> Iterator[tuple[str, Row]]:
    """The rows of a file, each behind its place; raises `WrongUse` where it cannot be read."""
    suffix = _suffix_of(path)
    try:
        if suffix == ".csv":
            yield from _rows_of_csv(path)
            return
        names = pq.read_schema(path).names
        if missing := {*COLUMNS} - {*names}:
            raise WrongUse(f"{path}: no column {min(missing)!r}; name a file that twinset review exported")
        rows = (row for batch in batches(path, COLUMNS) for row in batch.to_pylist())
        yield from ((f"row {number}", row) for number, row in enumerate(rows, 1))
    except (OSError, csv.Error, UnicodeDecodeError, pa.ArrowException) as error:
        raise WrongUse(f"{path}: cannot be read ({error}); export it again, CSV as UTF-8") from error


def _rows_of_csv(path: Path) -> Iterator[tuple[str, Row]]:
    with path.open(encoding="utf-8-sig", newline="") as stream:
        reader = csv.DictReader(stream, strict=True)
        names = reader.fieldnames or []
        if missing := REQUIRED - {*names}:
            named = f"the first line names columns, {' and '.join(sorted(REQUIRED))} at least, with commas between them"
            raise WrongUse(f"{path}: no column {min(missing)!r}; {named}")
        if len({*names}) < len(names):
            raise WrongUse(f"{path}: two columns have one name; keep the one that is meant")
        for row in reader:
            yield f"line {reader.line_num}", {name: row[name] for name in COLUMNS if row.get(name)}


def _suffix_of(path: Path) -> str:
    if path.suffix.lower() not in SUFFIXES:
        raise WrongUse(f"{path}: its form is not known; name a file that ends in {' or '.join(SUFFIXES)}")
    return path.suffix.lower()
