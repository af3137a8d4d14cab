"""Answers as files: they come back as they were, and a file with a wrong row changes nothing.

Tasks for Label Studio, and what people did there.
"""

import csv
import json
import xml.etree.ElementTree as ET
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.review.asked import SHAPES, candidate, painted_desk, stage_of
from tests.review.exchange.conftest import desk_of, exported, imported, stored
from twinset.contracts.errors import WrongUse
from twinset.generators.decisions.answers import Answer
from twinset.review.access import Refused
from twinset.review.desk import ReviewDesk
from twinset.review.exchange.forms import FORMS
from twinset.review.exchange.importing import Imported
from twinset.review.store import AnswerStore


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("form", FORMS)
def test_answers_come_back_as_they_were(
    tmp_path: Path, answered: Callable[[str], ReviewDesk], shape: str, form: str
) -> None:
    before = answered(shape)
    path = tmp_path / f"answers{FORMS[form].suffix}"
    exported(before, path, form)
    after = desk_of(tmp_path / "other", shape)
    blank = int(form == "prolific")  # a row for the task that nobody answered
    assert imported(after, path) == Imported(7, 0, 0, blank)
    assert stored(after) == stored(before)
    assert imported(after, path) == Imported(0, 7, 0, blank)


@pytest.mark.parametrize("form", FORMS)
def test_an_answer_of_a_strangers_file_is_exported_and_no_formula(tmp_path: Path, form: str) -> None:
    desk, path = desk_of(tmp_path, "best-image"), tmp_path / f"answers{FORMS[form].suffix}"
    task = desk.tasks.now().tasks[0]
    asked = {"stage": task.stage, "task": task.candidate.key, "binding": task.binding}
    desk.store.save(Answer(**asked, annotator="eve", answer="=cmd|' /C calc'!A0", reason="@SUM(1)"))
    exported(desk, path, form)
    if form == "prolific":
        with path.open(encoding="utf-8", newline="") as stream:
            row = next(csv.DictReader(stream))
        assert (row["answer"], row["reason"], row["position"]) == ("'=cmd|' /C calc'!A0", "'@SUM(1)", "-1")


def test_an_answer_that_comes_in_during_an_import_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = desk_of(tmp_path, "keep-pair")
    task = desk.tasks.now().tasks[0]
    path = tmp_path / "given.csv"
    path.write_text(f"task_id,answer\n{task.candidate.key},drop\n")
    save_all = AnswerStore.save_all

    def meanwhile(store: AnswerStore, answers: Any) -> int:
        monkeypatch.undo()
        desk.answer("anna", task.id, "o0", "", 1.0)
        return save_all(store, answers)

    monkeypatch.setattr(AnswerStore, "save_all", meanwhile)
    with pytest.raises(WrongUse, match=r"given\.csv: anna answered .* with keep before; .* nothing was imported"):
        imported(desk, path, "anna")


def test_a_short_csv_is_enough(tmp_path: Path) -> None:
    desk = desk_of(tmp_path, "keep-pair")
    keys = [task.candidate.key for task in desk.tasks.now().tasks]
    path = tmp_path / "decisions.csv"
    lines = [
        "task_id,answer,reason,status",
        f"{keys[0]},keep,,APPROVED",
        f"{keys[1]},drop,bad-image,",
        f"{keys[2]},keep,,RETURNED",
    ]
    path.write_text("\n".join(lines), "utf-8")
    assert imported(desk, path, "anna") == Imported(2, 0, 0)
    found = {one.task: (one.answer, one.reason, one.annotator) for one in stored(desk)}
    assert found == {keys[0]: ("keep", "", "anna"), keys[1]: ("drop", "bad-image", "anna")}


def test_an_exported_csv_lists_what_nobody_answered_and_can_be_filled_in(tmp_path: Path) -> None:
    desk, path = desk_of(tmp_path, "keep-pair"), tmp_path / "tasks.csv"
    exported(desk, path, "prolific")
    rows = list(csv.DictReader(path.open(encoding="utf-8", newline="")))
    tasks = desk.tasks.now().tasks
    assert [(row["task_id"], row["binding"], row["answer"]) for row in rows] == [
        (task.candidate.key, task.binding, "") for task in tasks
    ]
    assert [(row["subject"], json.loads(row["texts"])) for row in rows] == [
        (task.candidate.subject, [*task.candidate.texts]) for task in tasks
    ]
    rows[2] |= {"answer": "drop", "reason": "fits-both"}
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, [*rows[0]])
        writer.writeheader()
        writer.writerows(rows)
    assert imported(desk, path, "anna") == Imported(1, 0, 0, unanswered=5)
    assert [(one.task, one.answer, one.reason) for one in stored(desk)] == [
        (tasks[2].candidate.key, "drop", "fits-both")
    ]


def test_every_row_is_checked_and_nothing_is_half_imported(tmp_path: Path) -> None:
    desk = desk_of(tmp_path, "keep-pair")
    first, second, third = desk.tasks.now().tasks[:3]
    desk.answer("anna", third.id, "o0", "", 1.0)
    rows = [
        {"task_id": first.candidate.key, "answer": "keep", "participant_id": "ben"},
        {"task_id": first.candidate.key, "answer": "drop", "participant_id": "ben"},
        {"task_id": third.candidate.key, "answer": "drop", "participant_id": "anna"},
        {"task_id": second.candidate.key, "answer": "perhaps", "participant_id": "ben"},
        {"task_id": second.candidate.key, "answer": "keep", "participant_id": "ben", "reason": "other"},
        {"task_id": second.candidate.key, "answer": "keep", "participant_id": "ben", "binding": "0" * 64},
        {"task_id": second.candidate.key, "answer": "keep", "participant_id": "b n"},
        {"task_id": second.candidate.key, "answer": "keep", "participant_id": "ben", "time_taken": "nan"},
        {"task_id": "elsewhere", "answer": "keep", "participant_id": "ben", "stage": "other"},
        *({"task_id": f"s-{n}", "answer": "keep", "participant_id": "ben"} for n in range(30)),
    ]
    path = tmp_path / "decisions.csv"
    with path.open("w", newline="", encoding="utf-8") as stream:
        columns = ("task_id", "answer", "participant_id", "reason", "binding", "time_taken", "stage")
        writer = csv.DictWriter(stream, columns)
        writer.writeheader()
        writer.writerows(rows)
    with pytest.raises(WrongUse) as refused:
        imported(desk, path)
    counted, *named = str(refused.value).splitlines()
    assert counted.startswith(
        f"{path}: 1 answered otherwise, 1 duplicate, 1 no annotator, 1 not an answer, 1 stale binding, "
    )
    assert "1 unknown answer, 1 unknown reason, 30 unknown task; nothing was imported" in counted
    assert len(named) == 21
    assert named[0].startswith("line 3: duplicate: ben answers")
    assert named[-1] == "and 17 more"
    assert [one.task for one in stored(desk)] == [third.candidate.key]


@pytest.mark.parametrize(
    ("column", "value", "kind"),
    [
        ("position", "1e300", "not an answer"),
        ("position", str(2**31), "not an answer"),
        ("shown", "[" * 5000, "not an answer"),
        ("completed_at", "=cmd|' /C calc'!A0", "not an answer"),
    ],
)
def test_a_value_that_no_answer_has_is_named(tmp_path: Path, column: str, value: str, kind: str) -> None:
    desk = desk_of(tmp_path, "keep-pair")
    path, key = tmp_path / "decisions.csv", desk.tasks.now().tasks[0].candidate.key
    with path.open("w", newline="", encoding="utf-8-sig") as stream:
        csv.writer(stream).writerows([["task_id", "answer", column], [key, "keep", value]])
    with pytest.raises(WrongUse, match=f"line 2: {kind}: {key}"):
        imported(desk, path, "anna")
    assert stored(desk) == []


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.parquet", b"no", "not Parquet"),
        ("a.json", b"{", "not JSON"),
        ("a.json", b'[{"id": 1}]', "no data and annotations"),
        ("a.json", b'[{"data": {}, "annotations": [{"result": [{"from_name": []}]}]}]', "task 1: an annotation is not"),
        ("a.csv", b"task_id,answer,answer\nx,keep,drop\n", "two columns have one name"),
        ("a.csv", b"key,answer\n", "no column 'task_id'"),
        ("a.csv", b"task_id,answer\n\xff,keep\n", "not CSV in UTF-8"),
        ("a.txt", b"", "its form is not known"),
    ],
)
def test_a_file_of_another_form_is_refused(tmp_path: Path, name: str, content: bytes, words: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(WrongUse, match=words):
        imported(desk_of(tmp_path, "match"), tmp_path / name)


@pytest.mark.skipif(find_spec("twinset_extras") is None, reason="twinset-extras, which asks so, is not installed")
def test_an_order_of_images_comes_back_from_files_that_can_hold_one(tmp_path: Path) -> None:
    tasks = [candidate("s", "best-image", n, question="rank-images") for n in range(3)]
    desk, again = (painted_desk(tmp_path / name, [stage_of("s", tasks, tmp_path / name)]) for name in ("one", "other"))
    for task, option in zip(desk.tasks.now().tasks, ("o2 o0", "o1", "o3 o2 o1 o0"), strict=True):
        desk.answer("anna", task.id, option, "", 2.0)
    for option in ("o2 o2", "o0 o4", "o0 ", "", "2"):
        with pytest.raises(Refused, match="no option"):
            desk.answer("ben", desk.tasks.now().tasks[0].id, option, "", 2.0)
    for form, name in (("prolific", "a.csv"), ("parquet", "a.parquet")):
        exported(desk, tmp_path / name, form)
        assert imported(again, tmp_path / name) == Imported(*((3, 0, 0) if form == "prolific" else (0, 3, 0)))
    assert stored(again) == stored(desk)
    with pytest.raises(WrongUse, match="Label Studio's choices have no order"):
        exported(desk, tmp_path / "a.json", "label-studio")
    assert not (tmp_path / "a.json").exists()


def test_label_studio_shows_no_value_and_names_every_image(
    tmp_path: Path, answered: Callable[[str], ReviewDesk]
) -> None:
    exported(answered("fits-caption"), tmp_path / "tasks.json", "label-studio")
    tasks = json.loads((tmp_path / "tasks.json").read_text("utf-8"))
    orders = {json.dumps(task["data"]["twinset"]["choices"]) for task in tasks}
    assert orders == {
        '{"1": "photo", "2": "generated", "Both": "both"}',
        '{"1": "generated", "2": "photo", "Both": "both"}',
    }
    for task in tasks:
        for name in ("option1", "option2"):
            place = task["data"][name].removeprefix("/data/local-files/?d=")
            assert (tmp_path / place).read_bytes().startswith(b"\xff\xd8")
    view = ET.fromstring((tmp_path / "tasks.xml").read_text("utf-8"))
    assert [one.get("value") for one in view.iter("Choice")] == ["1", "2", "Both"]
    shown = {one.get("value") for tag in ("Image", "Text") for one in view.iter(tag)}
    assert shown == {"$title", "$text0", "$option1", "$option2"}
    assert {name.removeprefix("$") for name in shown} <= tasks[0]["data"].keys()


def test_annotations_that_were_made_in_label_studio_are_read(tmp_path: Path) -> None:
    desk = desk_of(tmp_path, "best-image")
    exported(desk, tmp_path / "tasks.json", "label-studio")
    tasks = json.loads((tmp_path / "tasks.json").read_text("utf-8"))

    def annotation(choice: str, by: Any, **more: Any) -> dict[str, Any]:
        result = {"from_name": "answer", "to_name": "title", "type": "choices", "value": {"choices": [choice]}}
        return {"result": [result], "completed_by": by, "lead_time": 4.25, "created_at": "2030-01-01", **more}

    tasks[0]["annotations"] = [annotation("2", 7), annotation("None", {"email": "eve@example.org"})]
    tasks[1]["annotations"] = [annotation("1", 7, was_cancelled=True)]
    (tmp_path / "tasks.json").write_text(json.dumps(tasks), "utf-8")
    assert imported(desk, tmp_path / "tasks.json").new == 2
    first, second = stored(desk)
    order = [value for choice, value in tasks[0]["data"]["twinset"]["choices"].items() if choice.isdigit()]
    assert (first.annotator, first.answer, first.position, first.seconds) == ("eve@example.org", "none", -1, 4.25)
    assert (second.annotator, second.answer, second.position, list(second.shown)) == (
        "label-studio-7",
        order[1],
        1,
        order,
    )


def test_an_annotation_that_was_changed_in_label_studio_is_whose_it_is_there(
    tmp_path: Path, answered: Callable[[str], ReviewDesk]
) -> None:
    before = answered("best-image")
    exported(before, tmp_path / "tasks.json", "label-studio")
    tasks = json.loads((tmp_path / "tasks.json").read_text("utf-8"))
    untouched, changed, copied = (tasks[number]["annotations"][0] for number in range(3))
    choices = tasks[1]["data"]["twinset"]["choices"]
    now = next(place for place in "1234" if [place] != changed["result"][0]["value"]["choices"])
    changed["result"][0]["value"]["choices"] = [now]
    for one in (untouched, changed, copied):
        one |= {"completed_by": {"id": 7, "email": "eve@example.org"}, "updated_at": "2031-01-01"}
    tasks[2]["annotations"].append({**copied, "parent_annotation": 3})
    (tmp_path / "tasks.json").write_text(json.dumps(tasks[:3]), "utf-8")
    after = desk_of(tmp_path / "other", "best-image")
    assert imported(after, tmp_path / "tasks.json").new == 4
    by_task = {(one.task, one.annotator): one for one in stored(after)}
    names = [task["data"]["twinset"]["task"] for task in tasks]
    assert by_task[names[0], "anna"] == next(one for one in stored(before) if one.task == names[0])
    assert (names[1], "anna") not in by_task
    found = by_task[names[1], "eve@example.org"]
    assert (found.answer, found.position, found.at) == (choices[now], int(now) - 1, "2031-01-01")
    assert {(names[2], "anna"), (names[2], "eve@example.org")} <= by_task.keys()
