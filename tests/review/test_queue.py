"""Who is asked what, in which order: work for everyone, nothing twice without need."""

import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest

from tests.review.asked import candidate, stage_of
from twinset.contracts.errors import WrongUse
from twinset.generators.decisions.answers import Answer
from twinset.review.queue import LEASE_SECONDS, Elsewhere, ReviewQueue
from twinset.review.store import AnswerStore
from twinset.review.tasks import ReviewTask


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Room:
    """Annotators at work, without a page."""

    def __init__(self, folder: Path, tasks: Sequence[ReviewTask]) -> None:
        self.tasks, self.clock = tuple(tasks), Clock()
        self.store = AnswerStore(folder / "answers.sqlite")
        self.queue = ReviewQueue(self.store, self.clock)

    def next(self, annotator: str, count: int = 1) -> list[ReviewTask]:
        return self.queue.next(self.tasks, self.store.held(), annotator, count)

    def answer(self, annotator: str, task: ReviewTask, value: str = "0") -> None:
        asked = {"stage": task.stage, "task": task.candidate.key, "binding": task.binding}
        self.store.save(Answer(**asked, annotator=annotator, answer=value))

    def work(self, *annotators: str) -> dict[str, list[ReviewTask]]:
        """Have them answer in turns until nobody has a task."""
        done: dict[str, list[ReviewTask]] = {name: [] for name in annotators}
        for _ in range(len(self.tasks) * len(annotators) + 1):
            found = {name: tasks[0] for name in annotators if (tasks := self.next(name))}
            for name, task in found.items():
                self.answer(name, task)
                done[name].append(task)
            if not found:
                return done
        raise AssertionError("the queue never ends")


@pytest.fixture
def tasks(tmp_path: Path) -> Iterator[tuple[ReviewTask, ...]]:
    yield stage_of("s", [candidate("s", "best-image", n) for n in range(40)], tmp_path).tasks


def test_two_annotators_share_the_work(tmp_path: Path, tasks: Sequence[ReviewTask]) -> None:
    done = Room(tmp_path, tasks).work("anna", "ben")
    assert {name: len(found) for name, found in done.items()} == {"anna": 20, "ben": 20}
    assert {task.id for found in done.values() for task in found} == {task.id for task in tasks}


def test_the_order_is_each_annotators_own_and_stays(tmp_path: Path, tasks: Sequence[ReviewTask]) -> None:
    room = Room(tmp_path, tasks)
    orders = [
        [one.id for one in Room(tmp_path / str(n), tasks).next(name, 40)] for n, name in enumerate(("anna", "ben"))
    ]
    assert orders[0] != orders[1]
    assert sorted(orders[0]) == sorted(orders[1])
    assert [one.id for one in room.next("anna", 3)] == orders[0][:3]
    assert [one.id for one in room.next("anna", 3)] == orders[0][:3], "a reload shows the same tasks"


def test_a_task_that_was_shown_to_somebody_is_asked_of_others_after_a_while(
    tmp_path: Path, tasks: Sequence[ReviewTask]
) -> None:
    room = Room(tmp_path, tasks)
    assert len(room.next("anna", 40)) == 40
    assert room.next("ben") == []
    assert room.queue.counts(room.tasks, room.store.held(), "ben").left == 40
    room.clock.now += 60
    assert room.queue.elsewhere(room.tasks, room.store.held(), "ben") == [Elsewhere("anna", 40, LEASE_SECONDS - 60)]
    room.clock.now += LEASE_SECONDS
    assert len(room.next("ben", 40)) == 40


def test_a_restart_hands_out_no_task_that_somebody_was_shown(tmp_path: Path, tasks: Sequence[ReviewTask]) -> None:
    room = Room(tmp_path, tasks)
    shown = room.next("anna", 30)
    room.answer("anna", shown[0])
    room.store.close()
    again = Room(tmp_path, tasks)
    assert {one.id for one in again.next("ben", 40)} == {one.id for one in tasks} - {one.id for one in shown}
    again.clock.now += LEASE_SECONDS
    assert len(again.next("ben", 40)) == 39, "a lease ends as if nothing had been restarted"


def test_a_clock_that_is_set_back_keeps_no_task_from_others(tmp_path: Path, tasks: Sequence[ReviewTask]) -> None:
    room = Room(tmp_path, tasks)
    room.clock.now = 86_400.0
    room.next("anna", 40)
    room.clock.now = 0.0
    assert room.queue.elsewhere(room.tasks, room.store.held(), "ben") == []
    assert len(room.next("ben", 40)) == 40


def test_a_lease_without_a_time_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "answers.sqlite"
    AnswerStore(place).close()
    with closing(sqlite3.connect(place)) as connection:
        connection.execute("INSERT INTO leases VALUES ('s', 't', 'b', 'anna', 'tomorrow')")
        connection.commit()
    with pytest.raises(WrongUse, match="until of a lease is 'tomorrow', not a number"):
        AnswerStore(place)


def test_the_overlap_is_answered_by_several_and_everything_else_once(tmp_path: Path) -> None:
    stage = stage_of("s", [candidate("s", "best-image", n) for n in range(60)], tmp_path, overlap=0.3)
    twice = {task.id for task in stage.tasks if task.needed == 2}
    assert 5 < len(twice) < 35
    done = Room(tmp_path, stage.tasks).work("anna", "ben", "cleo")
    times = Counter(task.id for found in done.values() for task in found)
    assert times == {task.id: task.needed for task in stage.tasks}
    assert max(map(len, done.values())) - min(map(len, done.values())) <= len(twice)


def test_a_tie_is_asked_of_one_more_annotator_until_a_majority_is_there(tmp_path: Path) -> None:
    stage = stage_of("s", [candidate("s", "best-image", n) for n in range(4)], tmp_path, overlap=1.0)
    room, (tied, *others) = Room(tmp_path, stage.tasks), stage.tasks
    for name, value in (("anna", "0"), ("ben", "none")):
        for task in others:
            room.answer(name, task)
        room.answer(name, tied, value)
    assert room.next("anna") == [] and room.queue.counts(room.tasks, room.store.held(), "anna").waiting == 1
    assert room.next("cleo", 9) == [tied]
    assert room.next("dora", 9) == [], "cleo was shown it"
    room.answer("cleo", tied, "none")
    assert room.next("dora", 9) == [] and room.queue.counts(room.tasks, room.store.held(), "anna").waiting == 0


def test_questions_about_one_pair_are_far_apart(tmp_path: Path) -> None:
    asked = [candidate("s", "match", n, subject=f"pair-{n % 25}") for n in range(100)]
    order = Room(tmp_path, stage_of("s", asked, tmp_path).tasks).next("anna", 100)
    pairs = [one.candidate.subject for one in order]
    assert all(len({*pairs[at : at + 25]}) == 25 for at in range(76))
    firsts = {asked.index(one.candidate) // 25 for one in order[:25]}
    assert firsts == {0, 1, 2, 3}, "which question of a pair comes first is random"
    shared = Room(tmp_path / "shared", stage_of("s", asked, tmp_path).tasks).work("anna", "ben")
    for found in shared.values():
        mine = [one.candidate.subject for one in found]
        assert not any(one == after for one, after in pairwise(mine))


def test_one_stage_follows_another(tmp_path: Path) -> None:
    stages = [stage_of(name, [candidate(name, "keep-pair", n) for n in range(5)], tmp_path) for name in ("b", "a")]
    room = Room(tmp_path, [task for stage in stages for task in stage.tasks])
    assert [one.stage for one in room.next("anna", 10)] == ["b"] * 5 + ["a"] * 5
