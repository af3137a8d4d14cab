"""Who is asked what, in which order: work for everyone, nothing twice without need, instances whole."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.review.asked import candidate, painted_desk, stage_of, survey_of
from twinset.review.desk import LEASE_SECONDS, SURVEY_SECONDS
from twinset.review.showing import shown_options
from twinset.review.tasks import ReviewStage, ReviewTask


class Room:
    """Annotators at work, without a page."""

    def __init__(self, folder: Path, *stages: ReviewStage) -> None:
        self.now, self.tasks = 1e9, [task for stage in stages for task in stage.tasks]
        self.desk = painted_desk(folder, stages, clock=lambda: self.now)

    def next(self, annotator: str, count: int = 1) -> list[ReviewTask]:
        by_id = self.desk.tasks.now().by_id
        return [by_id[task["id"]] for task in self.desk.next(annotator, count)]

    def answer(self, annotator: str, tasks: Sequence[ReviewTask], value: str = "0") -> None:
        for task in tasks:
            values = [option.value for option in shown_options(task, annotator)]
            option = f"o{values.index(value)}" if value in values else "x0"
            self.desk.answer(annotator, task.id, option, "", 1.0)

    def work(self, *annotators: str) -> dict[str, list[ReviewTask]]:
        """Have them answer in turns until nobody has a task; what each answered."""
        done: dict[str, list[ReviewTask]] = {name: [] for name in annotators}
        while given := {name: tasks for name in annotators if (tasks := self.next(name))}:
            for name, tasks in given.items():
                self.answer(name, tasks)
                done[name] += tasks
        return done


def room_of(folder: Path, count: int, shape: str = "best-image", **settings: Any) -> Room:
    return Room(folder, stage_of("s", [candidate("s", shape, n) for n in range(count)], folder, **settings))


def instances(tasks: Sequence[ReviewTask]) -> Counter[str]:
    return Counter(task.candidate.subject for task in tasks)


def test_two_annotators_share_the_work_each_in_an_order_that_stays(tmp_path: Path) -> None:
    orders = [[t.id for t in room_of(tmp_path / name, 40).next(name, 40)] for name in ("anna", "ben")]
    assert orders[0] != orders[1] and sorted(orders[0]) == sorted(orders[1])
    room = room_of(tmp_path, 40)
    assert [[t.id for t in room.next("anna", 3)] for _ in range(2)] == [orders[0][:3]] * 2
    done = room.work("anna", "ben")
    assert {name: len(tasks) for name, tasks in done.items()} == {"anna": 20, "ben": 20}
    assert {task.id for tasks in done.values() for task in tasks} == {*orders[0]}


def test_a_shown_task_is_kept_for_a_while_also_over_a_restart(tmp_path: Path) -> None:
    room = room_of(tmp_path, 40)
    shown = room.next("anna", 30)
    room.answer("anna", shown[:1])
    room.desk.store.close()
    again = room_of(tmp_path, 40)
    assert {task.id for task in again.next("ben", 40)} == {task.id for task in room.tasks} - {t.id for t in shown}
    again.answer("ben", again.next("ben", 40))
    again.now += 60
    assert again.desk.rest("ben")["held"] == {"tasks": 29, "minutes": LEASE_SECONDS // 60 - 1}
    again.now += LEASE_SECONDS
    assert len(again.next("ben", 40)) == 29


def test_a_tie_is_asked_of_one_more_annotator_until_a_majority_is_there(tmp_path: Path) -> None:
    room = room_of(tmp_path, 4, overlap=1.0)
    tied, *agreed = room.tasks
    for name, value in (("anna", "0"), ("ben", "none")):
        room.answer(name, agreed)
        room.answer(name, [tied], value)
    assert room.next("anna") == []
    assert room.next("cleo", 9) == [tied]
    assert room.next("dora", 9) == [], "cleo was shown it"
    room.answer("cleo", [tied], "none")
    assert room.next("dora", 9) == [] and room.desk.is_decided(*room.desk.tasks.now().stages.values())


def test_questions_about_one_pair_are_far_apart_and_one_stage_follows_another(tmp_path: Path) -> None:
    asked = [candidate("s", "match", n, subject=f"pair-{n % 25}") for n in range(100)]
    stages = stage_of("s", asked, tmp_path), stage_of("a", [candidate("a", "keep-pair", n) for n in range(5)], tmp_path)
    order = Room(tmp_path, *stages).next("anna", 105)
    assert [task.stage for task in order] == ["s"] * 100 + ["a"] * 5
    pairs = [task.candidate.subject for task in order[:100]]
    assert all(len({*pairs[at : at + 25]}) == 25 for at in range(76))
    firsts = {asked.index(task.candidate) // 25 for task in order[:25]}
    assert firsts == {0, 1, 2, 3}, "which question of a pair comes first is random"


def test_two_annotators_answer_25_instances_each_first_all_about_text(tmp_path: Path) -> None:
    room = Room(tmp_path, survey_of(tmp_path, 60))
    assert room.desk.progress("anna")["total"] == 100
    done = room.work("anna", "ben")
    for tasks in done.values():
        assert len(tasks) == 100 and {*instances(tasks).values()} == {4} and len(instances(tasks)) == 25
        assert [len(task.candidate.images) for task in tasks] == [1] * 50 + [2] * 50
        for block in (tasks[:50], tasks[50:]):  # the two questions of an instance are apart
            assert len(instances(block[:25])) == len(instances(block[25:])) == 25
    assert not instances(done["anna"]) & instances(done["ben"])
    assert [*instances(done["anna"])] != sorted(instances(done["anna"])), "an order without a meaning"
    assert len(room.work("cleo")["cleo"]) == 40  # what is left


def test_who_comes_meanwhile_gets_other_instances_and_hears_of_the_rest(tmp_path: Path) -> None:
    room = Room(tmp_path, survey_of(tmp_path, 30))
    assert room.next("anna")
    tasks = room.next("ben", 200)
    assert len(instances(tasks)) == 5
    assert room.desk.rest("ben")["held"] == {"tasks": 80, "minutes": SURVEY_SECONDS // 60}
    # A pause that would end the lease of a single task takes nobody's instances away.
    room.now += 2 * LEASE_SECONDS
    assert room.next("ben", 200) == tasks


def test_who_leaves_in_the_middle_is_replaced_whole(tmp_path: Path) -> None:
    room = Room(tmp_path, survey_of(tmp_path, 25))
    first = room.next("anna", 60)
    room.answer("anna", first)
    assert room.next("ben") == []
    room.now += SURVEY_SECONDS + 1
    tasks = room.work("ben")["ben"]
    whole = sum(count == 4 for count in instances(first).values())
    assert {*instances(tasks).values()} == {4} and len(instances(tasks)) == 25 - whole
    assert room.next("anna") == []


def test_who_comes_back_goes_on_where_nobody_took_over(tmp_path: Path) -> None:
    room = Room(tmp_path, survey_of(tmp_path, 60))
    first = room.next("anna", 30)
    room.answer("anna", first)
    room.now += 100 * SURVEY_SECONDS
    assert not instances(room.next("ben", 100)) & instances(first), "what was left halfway comes last"
    rest = room.work("anna")["anna"]
    assert len(rest) == 70 and {*instances([*first, *rest]).values()} == {4}


def test_overlap_and_ties_are_of_whole_instances(tmp_path: Path) -> None:
    done = Room(tmp_path / "shared", survey_of(tmp_path / "shared", 40, overlap=0.5)).work("anna", "ben", "cleo")
    assert all({*instances(tasks).values()} == {4} for tasks in done.values())
    assert {*Counter(name for tasks in done.values() for name in instances(tasks)).values()} == {1, 2}
    room = Room(tmp_path, survey_of(tmp_path, 2, overlap=1.0))
    for name, value in (("anna", "0"), ("ben", "1")):
        for task in room.next(name, 99):
            room.answer(name, [task], value if task.candidate.subject == "subject-0" else "0")
    assert instances(room.next("cleo", 99)) == {"subject-0": 4}
    assert room.next("dora", 99) == [] == room.next("anna", 99)
