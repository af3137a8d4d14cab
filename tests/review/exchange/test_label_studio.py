"""Tasks for Label Studio, and what people did there."""

import json
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.review.exchange.conftest import desk_of, exported, imported, stored
from twinset.review.desk import ReviewDesk


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
            assert (tmp_path / place).read_bytes().startswith(b"\x89PNG")
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

    tasks[0]["annotations"] = [annotation("2", 7), annotation("None of them", {"email": "eve@example.org"})]
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
