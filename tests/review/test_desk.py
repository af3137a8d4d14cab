"""What waits for decisions is told once they are in: once, later when it fails, and without delaying anybody."""

import threading
from pathlib import Path

import pytest

from tests.review.asked import Painted, Planned, candidate, painted_desk, stage_of
from twinset.review.access import Refused
from twinset.review.desk import ReviewDesk


def answer(desk: ReviewDesk, annotator: str, count: int) -> None:
    for task in desk.next(annotator, count):
        desk.answer(annotator, task["id"], "o0", "", 2.0)


def test_a_stage_is_told_of_once_it_has_enough_and_again_only_where_that_failed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[str] = []

    def on_enough(stage: str) -> None:
        heard.append(stage)
        if len(heard) == 1:
            raise OSError("no server")

    stages = [
        stage_of(name, [candidate(name, "keep-pair", n) for n in range(10)], tmp_path, Painted(enough=0.3))
        for name in ("first", "second")
    ]
    desk = painted_desk(tmp_path, stages, on_enough=on_enough)
    answer(desk, "anna", 2)
    desk.announce()
    assert heard == []
    answer(desk, "anna", 1)
    for _ in range(3):
        desk.announce(["first"])
    assert heard == ["first", "first"]
    assert "first: enough decisions are in, but what waits for them was not told: no server" in caplog.text


def test_nobody_waits_for_what_is_told(tmp_path: Path) -> None:
    began, goes_on, heard = threading.Event(), threading.Event(), list[str]()

    def on_enough(stage: str) -> None:
        heard.append(stage)
        began.set()
        assert goes_on.wait()

    stages = [stage_of(name, [candidate(name, "match", 0)], tmp_path) for name in ("first", "second")]
    desk = painted_desk(tmp_path, stages, on_enough=on_enough)
    answer(desk, "anna", 1)
    slow = threading.Thread(target=desk.announce, args=[["first"]])
    slow.start()
    assert began.wait()
    answer(desk, "anna", 1)
    desk.announce(["second"])  # returns while the first is still being told
    assert heard == ["first"]
    goes_on.set()
    slow.join()
    assert heard == ["first", "second"]


def test_four_people_at_once_answer_every_task_as_often_as_it_needs(tmp_path: Path) -> None:
    asked = [candidate("s", "best-image", n) for n in range(48)]
    stage = stage_of("s", asked, tmp_path, Painted(overlap=0.25))
    desk = painted_desk(tmp_path, [stage])
    started = threading.Barrier(4)

    def work(name: str) -> None:
        started.wait()
        while tasks := desk.next(name, 3):
            for task in tasks:
                desk.answer(name, task["id"], "o0", "", 1.0)

    people = [threading.Thread(target=work, args=[f"person-{n}"]) for n in range(4)]
    for one in people:
        one.start()
    for one in people:
        one.join()
    for name in ("person-0", "person-1", "person-2", "person-3"):
        answer(desk, name, 99)  # what was leased to somebody who had stopped
    assert {task.id: len(desk.answers_to(task)) for task in stage.tasks} == {
        task.id: task.needed for task in stage.tasks
    }
    assert len({task.needed for task in stage.tasks}) == 2


def test_a_task_that_was_planned_again_is_gone(tmp_path: Path) -> None:
    desk = painted_desk(tmp_path, [stage_of("s", [candidate("s", "match", 0)], tmp_path)])
    [old] = desk.next("anna", 1)
    assert isinstance(desk.tasks, Planned)
    again = candidate("s", "match", 0, image_sha256s=("f" * 64,) * 2)
    desk.tasks.plan([stage_of("s", [again], tmp_path)])
    with pytest.raises(Refused, match="images were made again"):
        desk.answer("anna", old["id"], "o0", "", 1.0)
